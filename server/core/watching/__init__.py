"""Watching: what a server knows within a view, as columns, and the changes from frame to frame."""
