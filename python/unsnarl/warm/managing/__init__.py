"""Runs in unsnarl's own interpreter: starts, finds and ends servers; may import the rest of unsnarl."""
