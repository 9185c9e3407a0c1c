"""IGPT and IPT: a quadtree with an inverted file in each leaf, in groups of like preference. See `index`."""

from index.baselines.igpt.index import Igpt, Ipt

__all__ = ["Igpt", "Ipt"]
