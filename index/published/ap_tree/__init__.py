"""The AP-Tree: clauses divided by keywords or by place, whichever costs less, node by node."""

from index.published.ap_tree.index import ApTree

__all__ = ["ApTree"]
