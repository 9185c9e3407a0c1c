"""IQF+: an inverted file with quadtrees, and lists of pairs of keywords."""

from index.iqf_plus.index import IqfPlusObjectIndex

__all__ = ["IqfPlusObjectIndex"]
