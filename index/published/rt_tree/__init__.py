"""The R^t-trees for clauses, and the structures compared with them: see `rt_tree.index`."""

from index.published.rt_tree.index import KINDS, RtTree

__all__ = ["KINDS", "RtTree"]
