"""Runs in unsnarl's own interpreter: starts, looks up and ends servers. Only here is the rest of unsnarl imported."""
