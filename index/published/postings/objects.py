"""Objects in posting lists: the operations of all shapes.

Operations: insert O(lists of an object), amortised; remove O(1), and a sweep of some entries for each
inserted or removed row, once a fifth of the objects in lists are removed.

Warnings: removed objects keep their memory until they are swept. If no square is given, and the objects
no longer suit the one that was laid about them, all are inserted again at once.
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
"""The square is tested again when the number of objects has grown by this factor."""
_GONE_SHARE = 0.2
"""From this fraction of removed objects on, lists are swept."""
_SWEEP = 1_024
_SWEEP_EACH = 8
"""Entries examined in a call: _SWEEP, plus _SWEEP_EACH times the entries of an object for each of its
rows. So at most a third of the objects in lists are removed ones."""


class PostedObjects(PlaceTable):
    """See `index.contracts.PlaceIndex`.

    Parameters
    ----------
    enter
        The kernel that inserts objects into lists.
    within
        The kernel that finds the objects in boxes.
    shape, side, long
        See `PostingArrays`.
    square
        The square that contains most objects; by default it is laid about them.
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
        """The removed objects that will be in no list any more after the current sweep."""

    def remove(self, ids: Ints) -> None:
        """Remove objects; their entries are swept gradually."""
        slots = self._table.take(ids)
        self._arrays.now().is_gone[slots] = 1
        self._gone.append(slots)
        self._sweep(len(slots))

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        gone = sum(slots.nbytes for slots in (*self._gone, *self._sweeping))
        return self._arrays.memory_bytes() + gone

    def check(self) -> None:
        """Verify every invariant. O(entries) in Python.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
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
        """Test from time to time whether the objects have moved away; if so, choose another square."""
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
        """Return the slots of the present objects."""
        used = self._table.used()
        found: Slots = used[self._arrays.now().is_gone[used] == 0]
        return found

    def _plant(self) -> None:
        """Insert all objects again."""
        for slots in (*self._gone, *self._sweeping):
            self._table.discard(slots)
        self._gone, self._sweeping = [], []
        self._arrays.plant(self._arrays.square)
        used = self._table.used()
        self._arrays.run(word_kernels.count_words, used)
        self._arrays.run(self._run_enter, used)

    def _sweep(self, row_count: int) -> None:
        """Sweep some lists, if many objects are removed."""
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
