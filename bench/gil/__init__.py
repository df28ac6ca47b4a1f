"""Measuring programs about the GIL: each measures one variant of one case once, and prints one JSON object.

The runner (``python -m bench``) starts each run as a process of its own. A program never compares variants.
"""
