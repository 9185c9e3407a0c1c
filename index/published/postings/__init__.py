"""Posting lists by keyword and by place: the common part of grid files and quadtrees of objects."""

from index.published.postings.objects import PostedObjects

__all__ = ["PostedObjects"]
