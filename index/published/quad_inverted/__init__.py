"""IQ-Tree: a quadtree whose cells have an inverted list of clauses by their least frequent keyword."""

from index.published.quad_inverted.index import QuadInverted

__all__ = ["QuadInverted"]
