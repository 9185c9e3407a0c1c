"""Posting lists by keyword and by place: what the grid files and the quadtrees of objects share."""

from index.published.postings.objects import PostedObjects

__all__ = ["PostedObjects"]
