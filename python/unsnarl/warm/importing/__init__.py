"""Runs in the learning process and in the server: what both need to import a command's modules."""
