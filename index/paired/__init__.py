"""Pairs: an index of clauses and one of objects, queried in turn."""

from index.paired.index import PairedIndex

__all__ = ["PairedIndex"]
