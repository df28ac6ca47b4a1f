"""Measurements of primitives between processes: speed next to multiprocessing's, and futex wake-ups."""
