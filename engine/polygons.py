"""Store polygons in arrays: rings one after another, vertices one after another.

Operations: append O(vertices) amortised. Discarded rings take space until they are more than half of all.
Then the owner packs the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from index.batches import Floats, Ints
from index.tables.growth import longer

_ROOM_MIN = 16


class Rings(NamedTuple):
    """Polygons of many rows, on the plane.

    Row i has the rings `offsets[i] : offsets[i + 1]`, the outer one first, then its holes; ring j has the
    vertices `vertex_offsets[j] : vertex_offsets[j + 1]`. A row that is not a polygon has none.
    """

    offsets: Ints
    vertex_offsets: Ints
    x_m: Floats
    y_m: Floats


class RingPool(NamedTuple):
    """The arrays for kernels: ring j has the vertices `offsets[j] : offsets[j + 1]`."""

    offsets: Ints
    x_m: Floats
    y_m: Floats


class Polygons:
    """A pool of polygons, each a span of rings. The owner of a polygon holds its start and count."""

    def __init__(self) -> None:
        self._offsets: Ints = np.zeros(_ROOM_MIN, dtype=np.int64)
        self._x_m: Floats = np.zeros(_ROOM_MIN)
        self._y_m: Floats = np.zeros(_ROOM_MIN)
        self._ring_count = 0
        self._garbage_count = 0

    @property
    def pool(self) -> RingPool:
        """Return the arrays."""
        return RingPool(self._offsets, self._x_m, self._y_m)

    def append(self, rings: Rings) -> Ints:
        """Add polygons; return the first ring of each row."""
        first = self._ring_count
        vertices = int(self._offsets[first])
        last = vertices + len(rings.x_m)
        self._offsets = longer(self._offsets, first + len(rings.vertex_offsets))
        self._x_m, self._y_m = longer(self._x_m, last), longer(self._y_m, last)
        self._offsets[first : first + len(rings.vertex_offsets)] = vertices + rings.vertex_offsets
        self._x_m[vertices:last], self._y_m[vertices:last] = rings.x_m, rings.y_m
        self._ring_count += len(rings.vertex_offsets) - 1
        return first + rings.offsets[:-1]

    def discard(self, ring_count: int) -> None:
        """Record that `ring_count` rings are not used any more."""
        self._garbage_count += ring_count

    @property
    def is_wasteful(self) -> bool:
        """Return whether more than half of the rings are garbage."""
        return 2 * self._garbage_count > self._ring_count

    def pack(self, starts: Ints, counts: Ints) -> Ints:
        """Keep only these polygons; return the new start of each. O(vertices)."""
        rings = np.repeat(starts - _before(counts), counts) + np.arange(counts.sum())
        sizes = self._offsets[rings + 1] - self._offsets[rings]
        vertices = np.repeat(self._offsets[rings] - _before(sizes), sizes) + np.arange(sizes.sum())
        kept = Rings(
            np.append(_before(counts), counts.sum()),
            np.append(_before(sizes), sizes.sum()),
            self._x_m[vertices],
            self._y_m[vertices],
        )
        self._ring_count = self._garbage_count = 0
        return self.append(kept)

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""
        return self._offsets.nbytes + self._x_m.nbytes + self._y_m.nbytes


def _before(counts: Ints) -> Ints:
    """Return the exclusive prefix sums of counts."""
    before: Ints = np.cumsum(counts) - counts
    return before
