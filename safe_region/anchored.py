"""The anchored region: how a device knows, alone, that its result is exact.

The server evaluated the subscription at the anchor a and left the device a buffer B and a reach: every
live qualifying object outside B has (length at a, id) >= reach. An object's length changes by at most
the distance moved, so at p every object outside B has a length of at least reach - |a p|. The k best of
B are therefore the k best of all whenever

    f_k(B, p) + |a p| < reach * (1 - REACH_SLACK)                                              (*)

with f_k the k-th smallest length; and at p = a itself whenever B holds k objects, because each of them
is below the reach. An infinite reach says that B holds everything that qualifies.

A device that knows its position up to rho metres only may be anywhere within rho of p, where f_k and the
distance from the anchor are each at most rho more. It tests

    f_k(B, p) + |a p| + 2 rho < reach * (1 - REACH_SLACK)

and then B is enough wherever it is; that p = a says nothing about where it is. What a device tells the
server instead of its position (a blurred anchor) does not matter here: any anchor is right for which (*)
holds at the position that the device itself takes for its own.

The strict sign and the slack matter: with <= a tie between f_k and the reach would be decided by ids
that the device does not know; the slack covers rounding (lengths carry a relative error of some 1e-16).

Plain Python: this file runs on devices. Cost: O(|B|) a test.
Source: generalises the approximate safe region of lamps.txt section 3 (k+1 objects, ellipses with a
common focus) to a buffer of k+b.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum
from heapq import nsmallest
from typing import NamedTuple

from safe_region.frame import Point
from safe_region.scoring import REACH_SLACK, length


class RegionMode(IntEnum):
    """How a subscription's safe region works. The numbers equal those on the wire."""

    ANCHORED = 1
    """The region of this module: a buffer beyond the k best, and silence while (*) holds."""
    ELLIPSE = 2
    """As Lamps does it: a buffer of the k best; the server asks where the device is before it decides
    about a new object. The same test (*), with b = 0."""


class Buffered(NamedTuple):
    """An object in a buffer: its plane position, its text share in metres, the end of its life."""

    object_id: int
    x_m: float
    y_m: float
    r_m: float
    expiry_ms: int


class Evaluation(NamedTuple):
    """What a region says about one position."""

    best: list[tuple[float, int]]
    """The k best of the buffer as (length in metres, object id), best first."""
    margin_m: float
    """reach - f_k - |a p| - 2 rho: how much room is left. Half of it is a radius of silence."""
    exact: bool
    """Whether `best` is the result: the device may stay silent."""


class AnchoredRegion:
    """One subscription's buffer, anchor and reach, as a device holds them.

    Parameters
    ----------
    k
        How many objects the subscription asks for.
    """

    __slots__ = ("anchor", "buffer", "k", "reach_id", "reach_m")

    def __init__(self, k: int) -> None:
        self.k = k
        self.anchor = Point(0.0, 0.0)
        self.reach_m = 0.0
        self.reach_id = 0
        self.buffer: dict[int, Buffered] = {}

    def update(
        self,
        anchor: Point,
        reach_m: float,
        reach_id: int,
        add: Iterable[Buffered] = (),
        drop: Iterable[int] = (),
    ) -> None:
        """Take over what a delta says."""
        self.anchor = anchor
        self.reach_m = reach_m
        self.reach_id = reach_id
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
        """Rank the live buffer at a position and test (*).

        Parameters
        ----------
        x_m, y_m
            The position, on the plane.
        now_ms
            Objects that have expired by then do not count.
        uncertainty_m
            rho: how far from there the device may be.
        """
        lengths = [
            (length(x_m - entry.x_m, y_m - entry.y_m, entry.r_m), entry.object_id)
            for entry in self.buffer.values()
            if entry.expiry_ms > now_ms
        ]
        best = nsmallest(self.k, lengths)
        if math.isinf(self.reach_m):
            return Evaluation(best, math.inf, exact=True)
        if len(best) < self.k:
            return Evaluation(best, -math.inf, exact=False)
        moved_m = length(x_m - self.anchor.x_m, y_m - self.anchor.y_m, 0.0)
        used_m = best[-1][0] + moved_m + 2.0 * uncertainty_m
        is_anchor = moved_m == 0.0 and uncertainty_m == 0.0
        exact = is_anchor or used_m < self.reach_m * (1.0 - REACH_SLACK)
        return Evaluation(best, self.reach_m * (1.0 - REACH_SLACK) - used_m, exact)


def inscribed_radius_m(evaluation: Evaluation) -> float:
    """Radius of a circle about the evaluated position that lies inside the region.

    Moving by h changes f_k and |a p| by at most h each, so (*) holds while 2 h stays below the margin.
    """
    return max(0.0, evaluation.margin_m / 2.0)
