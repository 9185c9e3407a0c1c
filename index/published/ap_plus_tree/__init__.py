"""The AP+-Tree: an AP-Tree that keeps objects where clauses will look for them."""

from index.published.ap_plus_tree.index import ApPlusTree

__all__ = ["ApPlusTree"]
