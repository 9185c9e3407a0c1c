"""IQ-tree: one quadtree whose nodes know which keywords occur below them."""

from index.published.iq_tree.index import IqTreeObjectIndex

__all__ = ["IqTreeObjectIndex"]
