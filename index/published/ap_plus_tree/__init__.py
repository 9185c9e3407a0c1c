"""The AP+-Tree: an AP-Tree that stores objects at the nodes where clauses search for them."""

from index.published.ap_plus_tree.index import ApPlusTree

__all__ = ["ApPlusTree"]
