"""Kept results, and the tables, plots and pages made of them. Starts nothing."""
