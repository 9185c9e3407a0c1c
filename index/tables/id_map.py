"""A map from int64 ids to int32 numbers, in arrays, for kernels and for batches.

Operations: each O(1) a key expected, growth by doubling. About 20 bytes a key.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.contracts import InconsistentIndexError
from index.tables import id_map_kernels as kernels
from index.tables.id_map_kernels import LOAD_MAX, NO_KEY, NO_VALUE, Values

_CELLS_MIN = 16


def new_cells(count: int) -> tuple[Ints, Values]:
    """Return the keys and the values of an empty table; `count` is a power of two."""
    return np.full(count, NO_KEY, dtype=np.int64), np.zeros(count, dtype=np.int32)


def rehashed(keys: Ints, values: Values, count: int) -> tuple[Ints, Values]:
    """Return a table of this many cells with the same content. O(cells)."""
    cells = new_cells(count)
    kernels.copy_all(keys, values, *cells)
    return cells


class IdMap:
    """Ids to numbers. Kernels read `keys` and `values` directly."""

    def __init__(self) -> None:
        self.keys, self.values = new_cells(_CELLS_MIN)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def find(self, ids: Ints) -> Values:
        """Return the numbers of ids.

        Raises
        ------
        KeyError
            If an id is absent.
        """
        found = np.empty(len(ids), dtype=np.int32)
        absent = kernels.find_all(self.keys, self.values, ids, found)
        if absent >= 0:
            raise KeyError(f"id {ids[absent]} is not in the index")
        return found

    def present(self, ids: Ints) -> npt.NDArray[np.bool_]:
        """Return whether each id is present."""
        there: npt.NDArray[np.bool_] = self.numbers(ids) != NO_VALUE
        return there

    def numbers(self, ids: Ints) -> Values:
        """Return the numbers of ids, NO_VALUE for those that are absent."""
        found = np.empty(len(ids), dtype=np.int32)
        kernels.find_all(self.keys, self.values, ids, found)
        return found

    def contains(self, one: int) -> bool:
        """Return whether an id is present."""
        return bool(self.present(np.array([one], dtype=np.int64))[0])

    def insert(self, ids: Ints, numbers: Values) -> None:
        """Add ids.

        Raises
        ------
        KeyError
            If an id is already present, or twice in the batch. Nothing is inserted.
        """
        self._reserve(self._count + len(ids))
        present = kernels.put_all(self.keys, self.values, ids, numbers)
        if present >= 0:
            raise KeyError(f"id {ids[present]} is already in the index")
        self._count += len(ids)

    def remove(self, ids: Ints) -> Values:
        """Remove ids; return their numbers.

        Raises
        ------
        KeyError
            If an id is absent, or twice in the batch. Nothing is removed.
        """
        found = np.empty(len(ids), dtype=np.int32)
        absent = kernels.pop_all(self.keys, self.values, ids, found)
        if absent >= 0:
            raise KeyError(f"id {ids[absent]} is not in the index")
        self._count -= len(ids)
        return found

    def check(self) -> None:
        """Verify that a look-up finds every key at its cell."""
        there = self.keys[self.keys != NO_KEY]
        if len(there) != self._count or len(np.unique(there)) != self._count:
            raise InconsistentIndexError("the id map has a wrong count of keys")
        cells, found = np.arange(len(self.keys), dtype=np.int32), np.empty(len(there), dtype=np.int32)
        kernels.find_all(self.keys, cells, there, found)
        lost = there[found != np.flatnonzero(self.keys != NO_KEY)]
        if len(lost) > 0:
            raise InconsistentIndexError(f"id {lost[0]} cannot be found")

    def _reserve(self, count: int) -> None:
        cells = len(self.keys)
        while count > cells * LOAD_MAX:
            cells *= 2
        if cells > len(self.keys):
            self.keys, self.values = rehashed(self.keys, self.values, cells)
