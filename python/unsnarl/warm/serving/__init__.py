"""Runs in the server of one key: imports once, listens, forks the workers."""
