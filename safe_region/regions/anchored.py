"""Test on the device, without the server, whether a top-k result is exact: the anchored region.

The server evaluated the subscription at the anchor a and sent the device a buffer B and a reach: every
live qualifying object outside B has (length at a, id) >= reach. An object's length changes by at most the
distance moved, so at p every object outside B has a length of at least reach - |a p|. The k best of B are
therefore the k best of all whenever

    f_k(B, p) + |a p| < reach * (1 - REACH_SLACK)                                              (*)

with f_k the k-th smallest length; and at p = a itself whenever B holds k objects, because each of them is
below the reach. An infinite reach means that B holds all qualifying objects.

An object that is dominated at every place by k others in B, which also live longer, may be missing from B
whatever its length (`engine/top_k/prune_kernels.py`). While it lives it is nowhere among the k best, so
the test stays valid.

A device that knows its position up to rho metres only may be anywhere within rho of p. There f_k and the
distance from the anchor are each at most rho larger. The device tests

    f_k(B, p) + |a p| + 2 rho < reach * (1 - REACH_SLACK)

and then B is enough wherever the device is. In this case p = a proves nothing, because the device may be
elsewhere. The device may report a blurred position, which becomes the anchor. This does not affect the
test: any anchor is correct for which (*) holds at the position that the device itself assumes.

The strict inequality and the slack are needed. With <= a tie between f_k and the reach would be decided
by ids that the device does not know. The slack covers rounding (lengths carry a relative error of some
1e-16).

Plain Python: this file runs on devices. Cost: O(|B|) a test.
Source: generalises the approximate safe region of lamps.txt section 2.2 (k+1 objects, ellipses with a
common focus) to a buffer of k+b.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from heapq import nsmallest

from safe_region.earth.frame import Point
from safe_region.regions.region import Buffered, Evaluation, Region
from safe_region.scoring.formulas import REACH_SLACK, length


class AnchoredRegion(Region):
    """The buffer, anchor and reach of one top-k subscription, as a device holds them.

    Parameters
    ----------
    k
        The number of objects that the subscription requests.
    """

    __slots__ = ("k", "reach_id", "reach_m")

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k
        self.reach_m = 0.0
        self.reach_id = 0

    def update(
        self,
        anchor: Point,
        reach_m: float,
        reach_id: int,
        add: Iterable[Buffered] = (),
        drop: Iterable[int] = (),
    ) -> None:
        """Apply a delta."""
        self.hold(anchor, add, drop)
        self.reach_m = reach_m
        self.reach_id = reach_id

    def evaluate(self, x_m: float, y_m: float, now_ms: int, uncertainty_m: float = 0.0) -> Evaluation:
        """Rank the live buffer at a position and test (*); see `Region.evaluate`."""
        lengths = [
            (length(x_m - entry.x_m, y_m - entry.y_m, entry.r_m), entry.object_id)
            for entry in self.buffer.values()
            if entry.expiry_ms > now_ms
        ]
        best = nsmallest(self.k, lengths)
        if math.isinf(self.reach_m):
            return Evaluation(best, math.inf, exact=True)
        if len(best) < self.k:
            return Evaluation(best, -math.inf, exact=False, is_lacking=True)
        moved_m = length(x_m - self.anchor.x_m, y_m - self.anchor.y_m, 0.0)
        used_m = best[-1][0] + moved_m + 2.0 * uncertainty_m
        is_anchor = moved_m == 0.0 and uncertainty_m == 0.0
        exact = is_anchor or used_m < self.reach_m * (1.0 - REACH_SLACK)
        return Evaluation(best, self.reach_m * (1.0 - REACH_SLACK) - used_m, exact)


class StationaryRegion(AnchoredRegion):
    """The region of a stationary subscription: the point where the server evaluated it.

    The device holds its result, which the server keeps correct. When one of k objects expires, the server
    sends the object that takes its place, or reports that there is none. Until then the result may be
    short. If the result has fewer than k objects, there are no others, so the server sends nothing when
    one of them expires.

    Parameters
    ----------
    k
        The number of objects that the subscription requests.
    """

    __slots__ = ("_expired", "_is_full")

    def __init__(self, k: int) -> None:
        super().__init__(k)
        self._is_full = False  # k objects, when the server last decided the result
        self._expired: dict[int, int] = {}  # dropped since then: id -> expiry time

    def settle(self, time_ms: int, dropped: Iterable[int], *, is_snapshot: bool) -> None:
        """Record that the held objects were the result at a time, except for those expired since."""
        gone = set(self.buffer) | set(dropped)
        self._expired = {
            object_id: expiry_ms
            for object_id, expiry_ms in self._expired.items()
            if expiry_ms > time_ms and object_id not in gone and not is_snapshot
        }
        held = sum(entry.expiry_ms > time_ms for entry in self.buffer.values())
        self._is_full = held + len(self._expired) >= self.k

    def forget_expired(self, now_ms: int) -> list[int]:
        """Drop the objects that have expired by now and return their ids."""
        for entry in self.buffer.values():
            if entry.expiry_ms <= now_ms:
                self._expired[entry.object_id] = entry.expiry_ms
        return super().forget_expired(now_ms)

    def evaluate(self, x_m: float, y_m: float, now_ms: int, uncertainty_m: float = 0.0) -> Evaluation:
        """Rank the held objects, which are the result at the anchor. See `Region.evaluate`."""
        best = super().evaluate(x_m, y_m, now_ms).best
        moved_m = length(x_m - self.anchor.x_m, y_m - self.anchor.y_m, 0.0)
        is_there = moved_m == 0.0 and uncertainty_m == 0.0
        is_due = is_there and self._is_full and len(best) < self.k
        exact = is_there and not is_due
        return Evaluation(best, 0.0 if exact else -math.inf, exact, is_due=is_due)
