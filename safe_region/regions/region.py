"""Define the state that every safe region holds, and its view from one position.

Plain Python: this file runs on devices.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from safe_region.earth.frame import Point
from safe_region.geometry.areas import AreaShape


class RegionMode(IntEnum):
    """The method by which a subscription's safe region works. The numbers equal those on the wire."""

    ANCHORED = 1
    """The device holds more objects than its result, and sends no report while they are enough."""
    ELLIPSE = 2
    """The method of Lamps: the buffer has the k best objects, and the server requests the device's
    position before it decides about a new object. The test is that of `anchored`, with b = 0."""
    NEAREST = 3
    """For moving ranges, the method of the AP+-Tree-Safe, made exact: the device holds its result, and
    its region is a circle that ends where an object would enter or leave. The server requests the
    device's position before it decides about a new object. The test is that of `ranges`, with no object
    within the slack."""

    STATIONARY = 4
    """For stationary subscriptions, the method of Skype: the device holds its result at the place where
    the server evaluated it, and the server alone keeps that result correct. A device that moves has to
    send a report each time."""

    @property
    def needs_exact_position(self) -> bool:
        """Return whether the server must know the device's position, and requests it."""
        return self is not RegionMode.ANCHORED


class Buffered(NamedTuple):
    """An object in a buffer: plane position, constant part of its length in metres, and expiry time.

    An object with an area has its position at a point inside the area; lengths are measured to this
    point.
    """

    object_id: int
    x_m: float
    y_m: float
    r_m: float
    expiry_ms: int
    area: AreaShape | None = None


class Evaluation(NamedTuple):
    """The evaluation of a region at one position."""

    best: list[tuple[float, int]]
    """The objects in the result as far as the device knows, as (length in metres, object id), best
    first."""
    margin_m: float
    """The distance that is left in the test. The device may move by half of it in any direction without a
    report."""
    exact: bool
    """Whether `best` is the result: the device may stay silent."""
    is_lacking: bool = False
    """Whether the device holds too few objects, wherever it is: a report helps, however vague its
    position is."""
    is_capped: bool = False
    """Whether `best` is a part of a result that is too large, and a report would not help."""
    is_due: bool = False
    """Whether `best` may lack objects that the server sends without a report, and a report would not
    help."""


class Region:
    """The objects that a device holds for a subscription. Each subclass defines the test of its kind."""

    __slots__ = ("anchor", "buffer")

    def __init__(self) -> None:
        self.anchor = Point(0.0, 0.0)
        self.buffer: dict[int, Buffered] = {}

    def hold(self, anchor: Point, add: Iterable[Buffered], drop: Iterable[int]) -> None:
        """Apply the objects of a delta. The ids in `drop` need not be held any more."""
        self.anchor = anchor
        for object_id in drop:
            self.buffer.pop(object_id, None)
        for entry in add:
            self.buffer[entry.object_id] = entry

    def forget_expired(self, now_ms: int) -> list[int]:
        """Drop the objects that have expired by now and return their ids."""
        gone = [entry.object_id for entry in self.buffer.values() if entry.expiry_ms <= now_ms]
        for object_id in gone:
            del self.buffer[object_id]
        return gone

    def evaluate(self, x_m: float, y_m: float, now_ms: int, uncertainty_m: float = 0.0) -> Evaluation:
        """Return the objects in the result at a position, and whether they are the whole result.

        Parameters
        ----------
        x_m, y_m
            The position, on the plane.
        now_ms
            Objects that have expired by this time do not count.
        uncertainty_m
            rho: the largest distance of the device from this position.
        """
        raise NotImplementedError


def inscribed_radius_m(evaluation: Evaluation) -> float:
    """Return the radius of a circle about the evaluated position that lies inside the region.

    A move of h changes a region's test by at most 2 h, so the test holds while 2 h stays below the
    margin.
    """
    return max(0.0, evaluation.margin_m / 2.0)
