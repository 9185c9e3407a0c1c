"""Objects in posting lists: what all shapes do with them.

Operations: insert O(lists where an object is entered), amortised; remove O(1), and a sweep of some
entries for each row that comes or goes, once a fifth of the objects in lists are gone.

Warnings: what is removed keeps its memory until it is swept. If no square is given, and the objects no
longer suit the one that was laid about them, all are entered anew at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from index.batches import Ints
from index.published.postings import entry_kernels, word_kernels
from index.published.postings.arrays import PostingArrays, Step
from index.published.postings.invariants import check_objects
from index.published.postings.layout import (
    ENTRY_COUNT,
    OBJECT_DTYPE,
    OBJECT_ENTRY_DTYPE,
    SWEPT,
    Files,
)
from index.square import Square
from index.tables.buckets import square_of
from index.tables.objects import PlaceTable
from index.tables.slots import Slots
from index.tables.within_kernels import BoxQueries

Within = Callable[[Files, BoxQueries, int, Ints, Ints], int]

_CHANGE = 2.0
"""The square is looked at anew when there are so many times more objects."""
_GONE_SHARE = 0.2
"""From this share of objects that are gone on, lists are swept."""
_SWEEP = 1_024
_SWEEP_EACH = 8
"""Entries that are looked at in a call; and for each of its rows, times what an object has. So a third of
the objects in lists are gone at most."""


class PostedObjects(PlaceTable):
    """See `index.contracts.PlaceIndex`.

    Parameters
    ----------
    enter
        The kernel that enters objects in lists.
    within
        The kernel that answers what lies in boxes.
    shape, side, long
        See `PostingArrays`.
    square
        Where most objects are; by default it is laid about them.
    """

    def __init__(
        self, enter: Step, within: Within, *, shape: int, side: int, long: int, square: Square | None
    ) -> None:
        self._is_fixed = square is not None
        self._arrays = PostingArrays(
            OBJECT_DTYPE,
            OBJECT_ENTRY_DTYPE,
            shape=shape,
            side=side,
            long=long,
            square=square or Square(0.0, 0.0, 1.0),
        )
        super().__init__(self._arrays.table)
        self._run_enter = enter
        self._run_within = within
        self._squared_count = 0
        self._gone: list[Slots] = []
        self._sweeping: list[Slots] = []
        """Of what is gone: what is not in any list any more when all have been swept."""

    def remove(self, ids: Ints) -> None:
        """Remove objects; their entries are swept by and by."""
        slots = self._table.take(ids)
        self._arrays.now().is_gone[slots] = 1
        self._gone.append(slots)
        self._sweep(len(slots))

    def memory_bytes(self) -> int:
        """Size of all arrays."""
        gone = sum(slots.nbytes for slots in (*self._gone, *self._sweeping))
        return self._arrays.memory_bytes() + gone

    def check(self) -> None:
        """Verify every invariant. O(entries) in Python.

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """
        gone = _joined([*self._gone, *self._sweeping])
        self._table.check(gone)
        check_objects(self._arrays.now(), self._table, gone)

    def _enter(self, slots: Slots) -> None:
        if self._is_misfit():
            self._plant()
        else:
            self._arrays.run(word_kernels.count_words, slots)
            self._arrays.run(self._run_enter, slots)
        self._sweep(len(slots))

    def _fill_within(self, queries: BoxQueries, row: int, offsets: Ints, found: Ints) -> int:
        return self._run_within(self._arrays.now(), queries, row, offsets, found)

    def _is_misfit(self) -> bool:
        """Look now and then whether objects have come to lie elsewhere; if so take another square."""
        if self._is_fixed or len(self) <= self._squared_count * _CHANGE:
            return False
        self._squared_count = len(self)
        rows = self._table.rows[self._live()]
        square = square_of(rows["x_m"], rows["y_m"])
        if self._arrays.square.fits(square):
            return False
        self._arrays.square = square
        return True

    def _live(self) -> Slots:
        """Return the slots of the objects that are there."""
        used = self._table.used()
        found: Slots = used[self._arrays.now().is_gone[used] == 0]
        return found

    def _plant(self) -> None:
        """Enter all objects anew."""
        for slots in (*self._gone, *self._sweeping):
            self._table.discard(slots)
        self._gone, self._sweeping = [], []
        self._arrays.plant(self._arrays.square)
        used = self._table.used()
        self._arrays.run(word_kernels.count_words, used)
        self._arrays.run(self._run_enter, used)

    def _sweep(self, row_count: int) -> None:
        """Look through some lists for objects that are gone, if there are many of those."""
        gone_count = sum(map(len, self._gone))
        if not self._sweeping:
            if gone_count <= _GONE_SHARE * (len(self) + gone_count):
                return
            self._gone, self._sweeping = [], self._gone
            self._arrays.now().meta[SWEPT] = 0
        files = self._arrays.now()
        entered = len(self) + sum(map(len, (*self._gone, *self._sweeping)))
        each = int(files.meta[ENTRY_COUNT]) // max(1, entered) + 1
        if entry_kernels.sweep(files, _SWEEP + _SWEEP_EACH * row_count * each):
            slots = _joined(self._sweeping)
            self._sweeping = []
            word_kernels.release_words(files, slots)
            files.is_gone[slots] = 0
            self._table.discard(slots)
            self._squared_count = min(self._squared_count, len(self))


def _joined(parts: list[Slots]) -> Slots:
    return np.concatenate([np.empty(0, dtype=np.int32), *parts])
