"""IQF: an inverted file, and a quadtree for each frequent keyword."""

from index.published.iqf.index import IqfObjectIndex

__all__ = ["IqfObjectIndex"]
