"""The program that a verb runs: parses its command line, finds its target, executes it. Imports no verb."""
