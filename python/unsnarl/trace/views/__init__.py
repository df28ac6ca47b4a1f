"""How a trace is shown: one module a format, none knows another."""
