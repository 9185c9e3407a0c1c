"""The SQ-tree of Lamps: a quadtree of subscriptions by region, inverted files and thresholds at nodes."""

from index.published.sq_tree.index import SqTree

__all__ = ["SqTree"]
