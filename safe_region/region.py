"""What every safe region has: what a device holds of a subscription, and how it looks from one position.

Plain Python: this file runs on devices.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from safe_region.areas import AreaShape
from safe_region.frame import Point


class RegionMode(IntEnum):
    """How a subscription's safe region works. The numbers equal those on the wire."""

    ANCHORED = 1
    """The device holds more than its result, and is silent while that is enough."""
    ELLIPSE = 2
    """As Lamps does it: a buffer of the k best; the server asks where the device is before it decides
    about a new object. The test of `anchored`, with b = 0."""
    NEAREST = 3
    """Of ranges that move, as the AP+-Tree-Safe does it: the device holds its result, and its region is a
    circle that ends where an object would enter or leave; the server asks where the device is before it
    decides about a new object. The test of `ranges`, with nothing within the slack."""

    STATIONARY = 4
    """Of stationary subscriptions, as Skype has them: the device holds its result there where it was
    evaluated, and the server keeps that right alone. A device that moves has to say so each time."""

    @property
    def needs_exact_position(self) -> bool:
        """Whether the server must know where the device is, and asks it."""
        return self is not RegionMode.ANCHORED


class Buffered(NamedTuple):
    """An object in a buffer: its plane position, its text share in metres, and until when it counts.

    One with an area is at a point inside it, which counts for lengths.
    """

    object_id: int
    x_m: float
    y_m: float
    r_m: float
    expiry_ms: int
    area: AreaShape | None = None


class Evaluation(NamedTuple):
    """What a region says about one position."""

    best: list[tuple[float, int]]
    """What is in the result as far as the device knows, as (length in metres, object id), best first."""
    margin_m: float
    """How much room is left. Half of it is a radius of silence."""
    exact: bool
    """Whether `best` is the result: the device may stay silent."""
    is_lacking: bool = False
    """Whether too little is held, wherever the device is: a report helps, however vague."""
    is_capped: bool = False
    """Whether `best` is a part of a result that is too large, and a report would not help."""
    is_due: bool = False
    """Whether `best` may lack what the server sends by itself, and a report would not help."""


class Region:
    """What a device holds of a subscription. Each kind of region says what follows from it."""

    __slots__ = ("anchor", "buffer")

    def __init__(self) -> None:
        self.anchor = Point(0.0, 0.0)
        self.buffer: dict[int, Buffered] = {}

    def hold(self, anchor: Point, add: Iterable[Buffered], drop: Iterable[int]) -> None:
        """Take over what a delta says of objects. What is dropped need not be held any more."""
        self.anchor = anchor
        for object_id in drop:
            self.buffer.pop(object_id, None)
        for entry in add:
            self.buffer[entry.object_id] = entry

    def forget_expired(self, now_ms: int) -> list[int]:
        """Drop what has expired by now; return the ids."""
        gone = [entry.object_id for entry in self.buffer.values() if entry.expiry_ms <= now_ms]
        for object_id in gone:
            del self.buffer[object_id]
        return gone

    def evaluate(self, x_m: float, y_m: float, now_ms: int, uncertainty_m: float = 0.0) -> Evaluation:
        """Return what is in the result at a position, and whether that is all.

        Parameters
        ----------
        x_m, y_m
            The position, on the plane.
        now_ms
            Objects that have expired by then do not count.
        uncertainty_m
            rho: how far from there the device may be.
        """
        raise NotImplementedError


def inscribed_radius_m(evaluation: Evaluation) -> float:
    """Radius of a circle about the evaluated position that lies inside the region.

    Moving by h changes a region's test by at most 2 h, so it holds while 2 h stays below the margin.
    """
    return max(0.0, evaluation.margin_m / 2.0)
