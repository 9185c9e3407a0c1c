"""Objects in all cells of quadtrees: the MsgIndexes of the IQ+-Tree and the RQ+-Tree.

The baselines of ap-tree.txt section 5.2.1 that are quadtrees, as described there: "as to the MsgIndex, we
follow the same structure as IQ-Tree and RQ-Tree; that is, for each alive message m, we index m into all
the cells which can be penetrated by m". So an object is in all cells that contain it, from the root down,
under each of its keywords, and a query that is attached to a cell finds all its possible matches in that
cell's list. The SubIndexes are `QuadInverted` and `InvertedQuad`, which place a moved clause again in the
best cells for it; `index.paired` combines the halves and evaluates by differences.

Our choices:

1. A query, a strip of a range that moves, is not attached to cells: for each query the cells with the
   least cost of scanning are chosen, by the model that chooses the cells of clauses: entries to verify
   against cells to visit. Here the numbers of entries are known, not estimated. From a cell the walk
   descends to the children if the entries elsewhere in the cell, estimated by area, cost more than the
   visits to the children. If a strip covers a cell, that cell is scanned, not its parts.
2. The ranked keyword is the one that the fewest objects have.
3. IQ+: a cell is divided when more than `long` objects lie in it, whatever their keywords. It keeps one
   list of all of them, from which its children are filled. RQ+: a keyword has a tree of its own; a cell
   is divided when its list is longer than `long`. So an object is in O(log(objects / long)) cells for
   each keyword, in the RQ+-Tree only for frequent keywords; at most in `DEEP` + 1.
4. Trees are regular: cells are quarters, those at the border are unbounded. Cells stay divided after
   removals; the tree of a keyword is freed with its last object.
5. The inverted lists of all cells of the IQ+-Tree are one hash of lists, keyed by (cell, keyword); the
   tree of a keyword, in the RQ+-Tree, is one of lists.
6. Entries have the object's position and a signature of its keywords beside the slot. Removed objects are
   swept out of lists gradually.
"""

from index.published.quad_files.objects import IqObjects, RqObjects

__all__ = ["IqObjects", "RqObjects"]
