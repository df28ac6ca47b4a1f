"""Compares two recordings of a program: what changed, as text, as a page and as data."""
