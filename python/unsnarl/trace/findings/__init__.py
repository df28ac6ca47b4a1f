"""Conclusions from a trace, one module per subject. Pure: a ``Process`` in, findings out."""
