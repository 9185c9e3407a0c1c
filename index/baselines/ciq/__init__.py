"""CIQ: covering cells of a quadtree with a textual bound for each subscription. See `index`."""

from index.baselines.ciq.index import Ciq

__all__ = ["Ciq"]
