"""The R^t-trees for clauses, and what they are compared with: see `index.published.rt_tree.index`."""

from index.published.rt_tree.index import KINDS, RtTree

__all__ = ["KINDS", "RtTree"]
