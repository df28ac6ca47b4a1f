"""Views: each file formats one kind of result, and measures nothing."""
