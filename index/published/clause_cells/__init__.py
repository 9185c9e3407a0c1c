"""Clauses in cells of quadtrees, where a cost model says: what the IQ-Tree and the RQ-Tree share."""

from index.published.clause_cells.trees import CellTrees

__all__ = ["CellTrees"]
