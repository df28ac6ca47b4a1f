"""Runs in the forked worker: takes one request, becomes the command, ends as it would."""
