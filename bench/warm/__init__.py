"""Measurements of warm commands: start-up of real commands, limits, and Mercurial's own tests."""
