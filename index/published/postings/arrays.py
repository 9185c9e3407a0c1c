"""The arrays of posting lists: their creation and growth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from index.batches import Ints
from index.published.postings import layout
from index.published.postings.layout import LIST_DTYPE, WORD_DTYPE, Files
from index.square import Square
from index.tables import SlotTable
from index.tables.growth import as_long, longer
from index.tables.id_map import new_cells, rehashed
from index.tables.runs import lengthened, new_runs
from index.tables.slots import Slots

_ROOM_MIN = 16

Step = Callable[[Files, Slots, Ints], bool]
"""Processes rows of the table, from a cursor on; returns whether all are done, else more space is needed.
"""


class PostingArrays:
    """A table, and the lists that contain its rows.

    Parameters
    ----------
    row_dtype, entry_dtype
        Of the table, and of entries.
    shape
        Named in `layout`.
    side
        Cells of a row of the grid, or of a row of the smallest cells.
    long
        The number of entries from which a list is divided, or that of objects from which a cell is.
    square
        The square of the grid, or of the roots.
    """

    def __init__(
        self,
        row_dtype: np.dtype[np.void],
        entry_dtype: np.dtype[np.void],
        *,
        shape: int,
        side: int,
        long: int,
        square: Square,
    ) -> None:
        if side < 1 or long < 1:
            raise ValueError(f"side is {side} and long {long}, must be positive")
        self.table = SlotTable(row_dtype)
        self.square = square
        self._entry_dtype = entry_dtype
        self._shape = (shape, side, long)
        self._files = self._planted()

    def plant(self, square: Square) -> None:
        """Create the arrays without entries and keywords."""
        self.square = square
        self._files = self._planted()

    def now(self) -> Files:
        """Return all arrays, as kernels take them."""
        files, table = self._files, self.table
        if len(files.is_gone) < len(table.rows):
            files = files._replace(is_gone=as_long(files.is_gone, len(table.rows)))
        self._files = files._replace(rows=table.rows, pool=table.pool)
        return self._files

    def run(self, step: Step, slots: Slots) -> None:
        """Run a kernel on rows of the table, and lengthen arrays until it is done."""
        cursor = np.zeros(layout.CURSOR_SIZE, dtype=np.int64)
        while not step(self.now(), slots, cursor):
            self._grow()

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        files = self.now()
        own = (array for one in files[2:] for array in (one if isinstance(one, tuple) else (one,)))
        return sum(array.nbytes for array in own) + self.table.memory_bytes()

    def _planted(self) -> Files:
        shape, side, long = self._shape
        meta = np.zeros(layout.META_SIZE, dtype=np.int64)
        meta[[layout.SHAPE, layout.SIDE, layout.LONG]] = shape, side, long
        meta[[layout.LIST_FREE, layout.GROUP_FREE]] = layout.NO_LIST
        meta[layout.WORD_FREE] = layout.NO_WORD
        meta[layout.DIRECTORY_FREE] = layout.NO_DIRECTORY
        is_tree = shape == layout.TREE_OF_LISTS
        meta[layout.CELL_END] = is_tree
        west_m, south_m = self.square.x_m - self.square.half_m, self.square.y_m - self.square.half_m
        return Files(
            self.table.rows,
            self.table.pool,
            np.zeros(_ROOM_MIN, dtype=LIST_DTYPE),
            *new_cells(2 * _ROOM_MIN),
            np.zeros(0, dtype=np.int32),
            np.full(1 if is_tree else 0, layout.NO_CELL, dtype=np.int32),
            new_runs(self._entry_dtype, _ROOM_MIN),
            np.zeros(_ROOM_MIN, dtype=WORD_DTYPE),
            *new_cells(2 * _ROOM_MIN),
            np.zeros(len(self.table.rows), dtype=np.int8),
            np.array([west_m, south_m, 2.0 * self.square.half_m]),
            meta,
        )

    def _grow(self) -> None:
        """Lengthen the arrays that a kernel reported as full."""
        files, (_, side, _) = self._files, self._shape
        wanted = files.meta[layout.LISTS_WANTED :].tolist()
        files.meta[layout.LISTS_WANTED :] = 0
        lists, keys, records, words, word_keys, directories, cells = wanted
        if lists:
            files = files._replace(lists=longer(files.lists, len(files.lists) + lists))
        if keys:
            count = 2 * len(files.list_keys)
            while count < 2 * (len(files.list_keys) + keys):
                count *= 2
            hashed = rehashed(files.list_keys, files.list_values, count)
            files = files._replace(list_keys=hashed[0], list_values=hashed[1])
        if records:
            files = files._replace(entries=lengthened(files.entries, records))
        if words:
            files = files._replace(words=longer(files.words, len(files.words) + words))
        if word_keys:
            hashed = rehashed(files.word_keys, files.word_values, 2 * len(files.word_keys))
            files = files._replace(word_keys=hashed[0], word_values=hashed[1])
        if directories:
            size = side * side
            needed = len(files.directories) + directories * size
            files = files._replace(directories=longer(files.directories, needed, size))
        if cells:
            files = files._replace(cells=longer(files.cells, len(files.cells) + cells))
        self._files = files
