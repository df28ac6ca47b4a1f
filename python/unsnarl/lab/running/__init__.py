"""Carries out runs: what is started, confined, timed and kept. Imports no table, plot or page."""
