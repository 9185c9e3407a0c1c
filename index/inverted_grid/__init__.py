"""The inverted grid: clauses under their rarest keyword, long lists parted by place or next keyword."""

from index.inverted_grid.index import InvertedGrid

__all__ = ["InvertedGrid"]
