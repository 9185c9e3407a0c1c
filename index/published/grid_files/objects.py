"""Objects in grid files: the MsgIndexes of the SS-Index and the KK-Index.

Operations: insert O(keywords) an object, remove see `index.published.postings.objects`; within O(cells
that the box intersects) look-ups a row, and the entries of the lists found.
"""

from __future__ import annotations

from index.published.grid_files.object_kernels import enter, within
from index.published.grid_files.sides import SIDE, long_of
from index.published.postings import PostedObjects
from index.published.postings.layout import GRID_OF_LISTS, LISTS_OF_GRIDS
from index.square import Square


class SsObjects(PostedObjects):
    """The MsgIndex of the SS-Index: a grid, in each cell a list of each keyword.

    Parameters
    ----------
    square
        The square of the grid; by default it is laid about the objects.
    side
        Cells of a row.
    """

    def __init__(self, square: Square | None = None, side: int = SIDE) -> None:
        super().__init__(enter, within, shape=GRID_OF_LISTS, side=side, long=long_of(side), square=square)


class KkObjects(PostedObjects):
    """The MsgIndex of the KK-Index: a list of each keyword, a long one divided by a grid.

    Parameters
    ----------
    square
        The square of the grids; by default it is laid about the objects.
    side
        Cells of a row.
    """

    def __init__(self, square: Square | None = None, side: int = SIDE) -> None:
        super().__init__(
            enter, within, shape=LISTS_OF_GRIDS, side=side, long=long_of(side), square=square
        )
