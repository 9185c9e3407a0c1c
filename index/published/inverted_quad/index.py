"""The RQ-Tree for clauses: a ranked-key inverted list whose posting lists are quadtrees.

The keyword-prioritised baseline of ap-tree.txt, as described there in section 5.1.1: clauses are divided
among posting lists by their least frequent keywords, and a quadtree is built for each posting list with
the cost model of the IQ-Tree. Objects visit their cells in the trees of their keywords.

Operations: insert O(cells drafted) a clause, at most `DRAFTS_MAX`; remove O(entries of the cells it is
in), move both; match O(keywords * depth) an object, and the clauses verified.

Our choices are those of `index.published.quad_inverted.index`, 1 to 3, 5 and 6. The cost model weights an
entry in a cell of a key's tree by the same rate, that of objects in the cell with the key, so that a
clause has the same cells in both structures if their workloads were the same. Here a cell has one list;
it is in the row beside the cell's. A keyword that is no clause's key has no tree; all trees have the same
root square.
"""

from __future__ import annotations

from index.published.clause_cells import CellTrees
from index.published.clause_cells.trees import LIFETIME
from index.published.inverted_quad.kernels import match
from index.square import Square


class InvertedQuad(CellTrees):
    """See `index.contracts.ClauseIndex`.

    Parameters
    ----------
    square
        The root of every tree; by default it is laid about the clauses.
    lifetime
        Objects between two updates of a clause, for the cost model.
    """

    def __init__(self, square: Square | None = None, lifetime: float = LIFETIME) -> None:
        super().__init__(match, keyword_first=True, square=square, lifetime=lifetime)
