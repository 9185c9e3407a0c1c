"""Bucket quadtrees: what object indexes keep their entries in, and how they scan them."""

from index.tables.buckets.trees import BucketTrees, objects_of, square_of

__all__ = ["BucketTrees", "objects_of", "square_of"]
