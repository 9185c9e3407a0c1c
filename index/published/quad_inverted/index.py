"""The IQ-Tree for clauses: a quadtree whose cells have ranked-key inverted lists.

The baseline of ap-tree.txt, as described there in sections 3.1 and 5.1.1: clauses are organised by a
quadtree; each is attached to one or several cells by a cost model that balances matching and update
costs; in a cell it is in the posting list of its least frequent keyword. Objects look through the cells
they are in, and there through the lists of their keywords. The paper that defines it (Chen, Cong, Cao,
SIGMOD 2013) is not among ours: what follows is our reading. (The object index of that name is another
structure: `index.published.iq_tree`.)

Operations: insert O(cells drafted) a clause, at most `DRAFTS_MAX`; remove O(entries of the lists it is
in), move both; match O(depth * keywords) look-ups an object, and the clauses verified.

Our choices:

1. The cost model is that of `clause_cells.placing_kernels`: verifications that a clause will cause until
   it is updated, against entries and cells that an update takes. The least sum over all ways to cover a
   box by cells is found exactly, up to `DRAFTS_MAX` cells weighed. The number of verifications stands
   for I/Os, as in footnote 11. `lifetime` is how many objects come between two updates of a clause.
2. How often objects have a keyword, and where they are, is counted as they are matched, as if the one had
   nothing to do with the other; clauses count as objects too, so that there is something to begin with.
3. Least frequent is the keyword that the fewest clauses require when the clause is placed, those of its
   batch included. A clause stays under its key, and in its cells, until it is moved, or until the root
   no longer suits the clauses and all are placed anew.
4. The inverted lists of all cells are one hash of lists, keyed by (cell, keyword): no allocation for each
   cell. An entry has the clause's box beside its number, so that most are ruled out where they lie.
5. Cells are half-open and those at the border of the root's square reach to infinity, so that they cover
   the plane; boxes are closed. Of an object with an area all cells are visited that it meets; a clause
   is found where the lower left corner of the common box is.
6. A cell exists while something is entered there or below, or in one of its three siblings.
"""

from __future__ import annotations

from index.published.clause_cells import CellTrees
from index.published.clause_cells.trees import LIFETIME
from index.published.quad_inverted.kernels import match
from index.square import Square


class QuadInverted(CellTrees):
    """See `index.contracts.ClauseIndex`.

    Parameters
    ----------
    square
        The root; by default it is laid about the clauses.
    lifetime
        Objects between two updates of a clause, for the cost model.
    """

    def __init__(self, square: Square | None = None, lifetime: float = LIFETIME) -> None:
        super().__init__(match, keyword_first=False, square=square, lifetime=lifetime)
