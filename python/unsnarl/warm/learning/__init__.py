"""Runs in the learning process, which is thrown away: watches what a command's imports do."""
