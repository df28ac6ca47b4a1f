"""Runs in the forked worker: receives one request, becomes the command, ends as the command would."""
