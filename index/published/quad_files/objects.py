"""Objects in all cells of quadtrees: see `index.published.quad_files` for the plan.

Operations: insert O(keywords * depth) an object amortised, remove see `index.published.postings.objects`;
within O(cells that are worth it) a row, and the entries of the lists found.
"""

from __future__ import annotations

from index.published.postings import PostedObjects
from index.published.postings.layout import LISTS_OF_TREES, TREE_OF_LISTS
from index.published.quad_files import many_trees_kernels, one_tree_kernels
from index.published.quad_files.cell_kernels import SIDE
from index.square import Square

_LONG_CELL = 1_000
"""Counted as for `cell_kernels.PASS`: 207, 389 and 487 entries scanned, and 1,400, 1,109 and 1,009 bytes
an object, for 500, this, and 2,000. With two of 5,000 keywords: 49, 61 and 71; 2,233, 1,596 and 1,548."""
_LONG_LIST = 64
"""Likewise: 126, 166 and 267 entries scanned, and 1,103, 1,091 and 923 bytes an object, for 32, this, and
128. With two of 5,000 keywords: 50, 88 and 164; 943, 931 and 790."""


class IqObjects(PostedObjects):
    """The MsgIndex of the IQ+-Tree: one quadtree, in each cell a list of each keyword.

    Parameters
    ----------
    square
        The root; by default it is laid about the objects.
    long
        The number of objects from which a cell is divided.
    """

    def __init__(self, square: Square | None = None, long: int = _LONG_CELL) -> None:
        kernels = (one_tree_kernels.enter, one_tree_kernels.within)
        super().__init__(*kernels, shape=TREE_OF_LISTS, side=SIDE, long=long, square=square)


class RqObjects(PostedObjects):
    """The MsgIndex of the RQ+-Tree: a list of each keyword, a long one the root of a quadtree of lists.

    Parameters
    ----------
    square
        The roots; by default they are laid about the objects.
    long
        The number of entries from which a list is divided.
    """

    def __init__(self, square: Square | None = None, long: int = _LONG_LIST) -> None:
        kernels = (many_trees_kernels.enter, many_trees_kernels.within)
        super().__init__(*kernels, shape=LISTS_OF_TREES, side=SIDE, long=long, square=square)
