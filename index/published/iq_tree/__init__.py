"""IQ-tree: one quadtree whose nodes record the keywords that occur below them."""

from index.published.iq_tree.index import IqTreeObjectIndex

__all__ = ["IqTreeObjectIndex"]
