"""Orders of tokens, by which the first token of a clause is chosen (section 4.2).

A clause keeps the order of its insertion, whatever follows: the tokens that are removed from nodes must
be those that were inserted.

random          by a hash of the clause and the token
df              most frequent first, among the present clauses and those of the batch
idf             least frequent first
local           least frequent first in the cell of a grid of 100 x 100 that contains the box's centre

Operations: sort O(tokens log tokens) a batch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Boxes, Floats, Ints, KeywordLists
from index.square import Square
from index.tables.buckets import square_of
from index.tables.growth import longer
from index.tables.id_map import new_cells, rehashed
from index.tables.id_map_kernels import LOAD_MAX, NO_KEY, NO_VALUE, Values, find, find_cell
from safe_region.jit import kernel

ORDERS = ("random", "df", "idf", "local")
SIDE = 100
"""Cells of a side of the grid: 10,000 as in section 6.1."""
_KEYS_MIN = 64
_MIX = 0x9E3779B97F4A7C15


@kernel
def _add(keys: Ints, values: Values, wanted: Ints, change: int) -> int:
    """Count tokens in cells; return the number of new ones."""
    new_count = 0
    for i in range(wanted.shape[0]):
        cell = find_cell(keys, wanted[i])
        if keys[cell] == NO_KEY:
            keys[cell] = wanted[i]
            values[cell] = 0
            new_count += 1
        values[cell] += change
    return new_count


@kernel
def _look_up(keys: Ints, values: Values, wanted: Ints, counts: Ints) -> None:
    """Write the counts of tokens in cells."""
    for i in range(wanted.shape[0]):
        found = find(keys, values, wanted[i])
        counts[i] = 0 if found == NO_VALUE else found


class Order:
    """Counts the tokens of clauses, and sorts those of each.

    Parameters
    ----------
    name
        One of ORDERS.
    square
        The square of the grid; by default about the first clauses. Clauses outside count at its border.
    """

    def __init__(self, name: str, square: Square | None) -> None:
        if name not in ORDERS:
            raise ValueError(f"order is {name!r}, must be one of {', '.join(ORDERS)}")
        self.name = name
        self._square = square
        self._frequencies: Ints = np.zeros(0, dtype=np.int64)
        self._keys, self._values = new_cells(_KEYS_MIN)
        self._count = 0

    def count(self, boxes: Boxes, required: KeywordLists, change: int) -> None:
        """Count the tokens of clauses that are inserted (1) or removed (-1)."""
        if self.name == "random" or not len(required.ids):
            return
        self._frequencies = longer(self._frequencies, int(required.ids.max()) + 1)
        np.add.at(self._frequencies, required.ids, change)
        if self.name == "local":
            wanted = self._cells(boxes, required)
            while self._count + len(wanted) > LOAD_MAX * len(self._keys):
                self._keys, self._values = rehashed(self._keys, self._values, 2 * len(self._keys))
            self._count += _add(self._keys, self._values, wanted, change)

    def sort(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> Ints:
        """Return the order of the tokens of each clause; they are counted already."""
        if not len(ids):
            return np.empty(0, dtype=np.int64)
        rows = np.repeat(np.arange(len(required)), np.diff(required.offsets))
        if self.name == "random":
            weights = _mixed(ids[rows], required.ids)
        else:
            weights = self._frequencies[required.ids]
        if self.name == "df":
            weights = -weights
        columns = [required.ids.astype(np.int64), weights, rows]
        if self.name == "local":
            here = np.empty(len(rows), dtype=np.int64)
            _look_up(self._keys, self._values, self._cells(boxes, required), here)
            columns.insert(2, here)
        order: Ints = np.lexsort(columns) - required.offsets[:-1][rows]
        return order

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self._frequencies.nbytes + self._keys.nbytes + self._values.nbytes

    def _cells(self, boxes: Boxes, required: KeywordLists) -> Ints:
        """Return the cells in which tokens are counted."""
        x_m, y_m = boxes.x1_m / 2 + boxes.x2_m / 2, boxes.y1_m / 2 + boxes.y2_m / 2
        if self._square is None:
            self._square = square_of(x_m, y_m)
        column = _column(x_m, self._square.x_m, self._square.half_m)
        cells = column * SIDE + _column(y_m, self._square.y_m, self._square.half_m)
        found: Ints = np.repeat(cells, np.diff(required.offsets)) << 32 | required.ids
        return found


def _column(values_m: Floats, middle_m: float, half_m: float) -> Ints:
    share = (values_m - middle_m) / (2 * half_m) + 0.5
    return np.clip(np.floor(share * SIDE), 0, SIDE - 1).astype(np.int64)


def _mixed(ids: Ints, tokens: npt.NDArray[np.int32]) -> Ints:
    """Return pseudorandom numbers."""
    with np.errstate(over="ignore"):
        mixed = (ids.astype(np.uint64) + np.uint64(1)) * np.uint64(_MIX) ^ tokens.astype(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(_MIX)
    return (mixed >> np.uint64(1)).astype(np.int64)
