"""The formats of a trace: one module per format. Pure: processes and findings in, text out."""
