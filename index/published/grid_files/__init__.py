"""SS-Index and KK-Index: grid files of inverted lists, and inverted lists of grid files.

The two baselines of ap-tree.txt section 5.2.1 that are not quadtrees, as described there. Each has two
halves, a SubIndex of clauses and a MsgIndex of objects, which `index.paired` puts together and evaluates
by differences. SS: a grid; in each cell an inverted list. KK: an inverted list; each list has a grid.
Clauses are in all cells that their boxes meet, under their ranked keyword; objects are in the one cell
where they are, under each of their keywords. 40 * 40 cells, as the paper has tuned it.

Our choices:

1. Ranked is the keyword that the fewest have: of a clause, the fewest clauses when it is placed, those of
   its batch included; of what is looked for among objects, the fewest objects.
2. SS: the inverted lists of all cells are one hash of lists, keyed by (cell, keyword): no allocation for
   each cell.
3. KK: a list gets a grid when it is longer than an eighth of the cells; until then it is scanned, as a
   grid would be larger than the list. It keeps the grid until its last entry has gone.
4. Cells at the border reach to infinity. An area is looked for in all cells that it meets.
5. Entries have the clause's box, or the object's place and a signature of its keywords, beside the slot:
   most are ruled out where they lie. float32, rounded so that nothing is ruled out in vain.
6. Objects that are gone are swept out of lists by and by; clauses leave at once.
"""

from index.published.grid_files.clauses import KkClauses, SsClauses
from index.published.grid_files.objects import KkObjects, SsObjects

__all__ = ["KkClauses", "KkObjects", "SsClauses", "SsObjects"]
