"""Define places of ranges, and pairs of a subscription and an object that matches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.boolean.layout import Rows
from index.batches import Floats, Ints
from index.tables.slots import Slots

PAIR_BITS = 32
"""A pair of two numbers as one: the first is above this many bits, for the second."""


class Places(NamedTuple):
    """Subscriptions, the middles of their ranges, and the reach of these (see `pair_kernels.Ranges`)."""

    slots: Slots
    x_m: Floats
    y_m: Floats
    reach_m: Floats

    def part(self, which: Rows) -> Places:
        """Return some of the rows."""
        return Places(self.slots[which], self.x_m[which], self.y_m[which], self.reach_m[which])


class Pairs(NamedTuple):
    """Subscriptions and objects that match, each pair once, by subscription.

    `rows` are numbers of the requested subscriptions, or their slots. Distances are from the middle of
    the range. That of the object's point decides the order. That of the nearest point of its area decides
    how far a circle must reach; for moving rectangles it is the excess over the rectangle.
    """

    rows: Ints
    objects: Ints
    distance_m: Floats
    nearest_m: Floats

    @classmethod
    def nothing(cls) -> Pairs:
        """Return no pairs."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, none, np.empty(0), np.empty(0))

    def of(self, owners: Rows) -> Pairs:
        """Return the same pairs with the owners in place of the rows."""
        return self._replace(rows=owners.astype(np.int64)[self.rows])

    def without_rows(self, rows: Rows) -> Pairs:
        """Return the pairs of other rows."""
        return self.part(~np.isin(self.rows, rows))

    def keys(self) -> Ints:
        """Return one number for each pair, increasing."""
        found: Ints = self.rows << PAIR_BITS | self.objects
        return found

    def part(self, which: Rows | slice) -> Pairs:
        """Return some of the pairs."""
        columns = (self.distance_m[which], self.nearest_m[which])
        return Pairs(self.rows[which], self.objects[which], *columns)

    def without(self, other: Pairs) -> Pairs:
        """Return the pairs that are not in another set."""
        return self.part(~np.isin(self.keys(), other.keys(), assume_unique=True))


def joined(one: Pairs, other: Pairs) -> Pairs:
    """Return the pairs of both."""
    return Pairs(
        np.concatenate([one.rows, other.rows]),
        np.concatenate([one.objects, other.objects]),
        np.concatenate([one.distance_m, other.distance_m]),
        np.concatenate([one.nearest_m, other.nearest_m]),
    )
