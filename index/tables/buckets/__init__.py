"""Bucket quadtrees: the structure in which object indexes keep their entries, and its scans."""

from index.tables.buckets.trees import BucketTrees, objects_of, square_of

__all__ = ["BucketTrees", "objects_of", "square_of"]
