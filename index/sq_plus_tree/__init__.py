"""The SQ+-tree: anchors by keyword combination, in quadtrees with thresholds by object size."""

from index.sq_plus_tree.index import SqPlusTree

__all__ = ["SqPlusTree"]
