"""Stored results, and the tables, plots and pages made from them. Starts no measured process."""
