"""Carries out runs: starts, confines and times processes. Imports no table, plot or page."""
