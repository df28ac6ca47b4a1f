"""Runs in the learning process, which is thrown away afterwards: watches what a command's imports do."""
