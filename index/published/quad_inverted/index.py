"""The IQ-Tree for clauses: a quadtree whose cells have ranked-key inverted lists.

The baseline of ap-tree.txt, as described there in sections 3.1 and 5.1.1: clauses are organised by a
quadtree; each is attached to one or several cells by a cost model that balances matching and update
costs; in a cell it is in the posting list of its least frequent keyword. Objects visit the cells that
contain them, and there the lists of their keywords. The paper that defines it (Chen, Cong, Cao, SIGMOD
2013) is not among ours: this is our reading. (The object index of that name is another structure:
`index.published.iq_tree`.)

Operations: insert O(cells drafted) a clause, at most `DRAFTS_MAX`; remove O(entries of the lists it is
in), move both; match O(depth * keywords) look-ups an object, and the clauses verified.

Our choices:

1. The cost model is that of `clause_cells.placing_kernels`: verifications that a clause will cause until
   it is updated, against entries and cells that an update takes. The least sum over all ways to cover a
   box by cells is found exactly, up to `DRAFTS_MAX` cells evaluated. The number of verifications
   represents I/Os, as in footnote 11. `lifetime` is the number of objects between two updates of a
   clause.
2. The frequencies of keywords among objects, and the positions of objects, are counted during matching,
   as if they were independent of each other; clauses count as objects too, so that there are initial
   values.
3. The least frequent keyword is the one that the fewest clauses require when the clause is placed, those
   of its batch included. A clause stays under its key, and in its cells, until it is moved, or until the
   root no longer suits the clauses and all are placed again.
4. The inverted lists of all cells are one hash of lists, keyed by (cell, keyword): no allocation for each
   cell. An entry has the clause's box beside its number, so that most are excluded without access to the
   clause.
5. Cells are half-open and those at the border of the root's square are unbounded, so that they cover the
   plane; boxes are closed. An object with an area visits all cells that it intersects; a clause is found
   in the cell with the lower left corner of the intersection of the boxes.
6. A cell exists while there are entries in it or below, or in one of its three siblings.
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
