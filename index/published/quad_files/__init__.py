"""Objects in all cells of quadtrees: the MsgIndexes of the IQ+-Tree and the RQ+-Tree.

The baselines of ap-tree.txt section 5.2.1 that are quadtrees, as described there: "as to the MsgIndex,
we follow the same structure as IQ-Tree and RQ-Tree; that is, for each alive message m, we index m into
all the cells which can be penetrated by m". So an object is in the cells that it lies in, from the root
down, under each of its keywords, and what is attached to a cell finds in that cell's list all that can
match. The SubIndexes are `QuadInverted` and `InvertedQuad`, which place a clause that moves anew, in the
cells that are best for it; `index.paired` puts the halves together and evaluates by differences.

Our choices:

1. What is looked for, a strip of a range that moves, is not attached to cells: for each the cells are
   chosen that cost least to look through, by the model that chooses those of clauses: entries that are
   verified against cells that are passed. Here numbers of entries are known, not estimated. From a cell
   the walk goes on to the children if the entries that lie elsewhere in it, as many as its area says,
   outweigh the children passed. A strip that covers a cell is looked for there, not in its parts.
2. Ranked is the keyword that the fewest objects have.
3. IQ+: a cell is parted when more than `long` objects lie in it, whatever their keywords. It keeps one
   list of all of them, which knows whom to enter in its children. RQ+: a keyword has a tree of its own; a
   cell is parted when its list is longer than `long`. So an object is in O(log(objects / long)) cells for
   each keyword, of the RQ+-Tree only for keywords that many have; at most in `DEEP` + 1.
4. Trees are regular: cells are quarters, those at the border reach to infinity. Cells stay parted when
   objects have gone; the tree of a keyword ends with its last object.
5. The inverted lists of all cells of the IQ+-Tree are one hash of lists, keyed by (cell, keyword); the
   tree of a keyword, in the RQ+-Tree, is one of lists.
6. Entries have the object's place and a signature of its keywords beside the slot. Objects that are gone
   are swept out of lists by and by.
"""

from index.published.quad_files.objects import IqObjects, RqObjects

__all__ = ["IqObjects", "RqObjects"]
