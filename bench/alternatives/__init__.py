"""Measures unsnarl and its alternatives in one alternation: an echo beside CPU-bound work, and the work done."""
