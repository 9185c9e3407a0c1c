"""CIQ: covering cells of a quadtree, with a textual bound for each subscription and cell."""

from index.published.ciq.index import Ciq

__all__ = ["Ciq"]
