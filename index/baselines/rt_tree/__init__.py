"""The R^t-trees for clauses, and what they are compared with: see `index.baselines.rt_tree.index`."""

from index.baselines.rt_tree.index import KINDS, RtTree

__all__ = ["KINDS", "RtTree"]
