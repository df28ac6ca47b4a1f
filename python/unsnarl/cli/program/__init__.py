"""The program that a verb runs: its command line, its target, and the step that becomes it. Imports no verb."""
