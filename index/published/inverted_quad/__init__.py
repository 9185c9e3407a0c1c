"""RQ-Tree: an inverted list of clauses by their least frequent keyword, each posting list a quadtree."""

from index.published.inverted_quad.index import InvertedQuad

__all__ = ["InvertedQuad"]
