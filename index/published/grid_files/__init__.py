"""SS-Index and KK-Index: grid files of inverted lists, and inverted lists of grid files.

The two baselines of ap-tree.txt section 5.2.1 that are not quadtrees, as described there. Each has two
halves, a SubIndex of clauses and a MsgIndex of objects, which `index.paired` combines and evaluates by
differences. SS: a grid with an inverted list in each cell. KK: an inverted list with a grid for each
list. Clauses are in all cells that their boxes intersect, under their ranked keyword; objects are in the
cell of their position, under each of their keywords. 40 * 40 cells, as tuned in the paper.

Our choices:

1. The ranked keyword is the one with the fewest items: for a clause, the fewest clauses when it is
   placed, those of its batch included; for a query of objects, the fewest objects.
2. SS: the inverted lists of all cells are one hash of lists, keyed by (cell, keyword): no allocation for
   each cell.
3. KK: a list gets a grid when it is longer than an eighth of the cells; until then it is scanned, as a
   grid would be larger than the list. It keeps the grid until its last entry is removed.
4. Cells at the border are unbounded. An area is searched in all cells that it intersects.
5. Entries have the clause's box, or the object's position and a signature of its keywords, beside the
   slot: most are excluded without access to their rows. float32, rounded so that no match is excluded.
6. Removed objects are swept out of lists gradually; clauses are removed at once.
"""

from index.published.grid_files.clauses import KkClauses, SsClauses
from index.published.grid_files.objects import KkObjects, SsObjects

__all__ = ["KkClauses", "KkObjects", "SsClauses", "SsObjects"]
