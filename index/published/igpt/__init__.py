"""IGPT and IPT: a quadtree with an inverted file in each leaf, whose lists are alpha groups."""

from index.published.igpt.index import Igpt, Ipt

__all__ = ["Igpt", "Ipt"]
