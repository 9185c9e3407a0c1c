"""RQ-Tree: an inverted list of clauses by their least frequent keyword, each posting list a quadtree."""

from index.baselines.inverted_quad.index import InvertedQuad

__all__ = ["InvertedQuad"]
