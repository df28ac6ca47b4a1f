"""Runs the traced program, or attaches to it, from unsnarl's own process: knows no finding and no view."""
