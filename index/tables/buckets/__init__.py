"""Bucket quadtrees: what object indexes keep their entries in, and how they scan them."""

from index.tables.buckets.trees import BucketTrees, Square, objects_of, square_of

__all__ = ["BucketTrees", "Square", "objects_of", "square_of"]
