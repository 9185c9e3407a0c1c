"""Clauses in cells of quadtrees, chosen by a cost model: the common part of IQ-Tree and RQ-Tree."""

from index.published.clause_cells.trees import CellTrees

__all__ = ["CellTrees"]
