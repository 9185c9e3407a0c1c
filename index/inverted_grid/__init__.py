"""The inverted grid: clauses under their rarest keyword, long lists divided by place or next keyword."""

from index.inverted_grid.index import InvertedGrid

__all__ = ["InvertedGrid"]
