"""Views: each file turns one kind of result into text or a picture, and measures nothing."""
