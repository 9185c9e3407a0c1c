"""Test on the device, without the server, whether it holds all matches of a boolean subscription.

A range that is fixed in place does not depend on the device's position: the device holds the result.

An anchored range moves with the device. The server evaluated the subscription at the anchor a and sent
the device every live match within its range enlarged by a slack s: for a circle of radius R, all o with
|a o| <= R + s. At p an object that is not held is farther than (R + s) - |a p|. So the device holds all
matches within R whenever

    R + |a p| < (R + s) * (1 - REACH_SLACK)

and at p = a itself, because s is not negative. A device that knows its position up to rho metres only
tests

    R + |a p| + 2 rho < (R + s) * (1 - REACH_SLACK)

as for top-k subscriptions (one rho would be enough for the held objects). The margin of the test is
relative to R + s, and not to s: rounding errors are as large as the numbers that are added.

An object with an area lies within a circle if its area is at most the radius away, wherever its point is.
The tests above hold for it as well: the distance to an area changes by at most the distance moved. But
the nearest point of a polygon's edge is computed, and rounded, so its distance may be off by some units
in the last place of the coordinates, however small R + s is: 1e-11 m at 100 km. The area that matters is
one that is *not* held, so a device never knows whether there is any. Therefore the test always adds
1e-9 m, which suffices for areas of up to 100 km, and 1e-14 of the device's coordinates, which is some
forty times the rounding error of one coordinate:

    R + |a p| + 2 rho + 1e-9 + 1e-14 (|p_x| + |p_y|) < (R + s) * (1 - REACH_SLACK)

A moving rectangle of width 2 h_x and height 2 h_y has the same test along each axis. The device holds the
matches within the rectangle enlarged by s on all sides, and it is silent if, on both axes,

    h + |d| + 2 rho + 1e-9 + 1e-14 (|p_x| + |p_y|) < (h + s) * (1 - REACH_SLACK)

where d is its distance from the anchor along the axis. A point o lies in the rectangle if |o - p| <= h on
both axes. A difference of two float64 has the correct sign, so at the anchor this is the same test as the
server's |o - a| - h <= s with s = 0. A polygon lies in the rectangle if it meets the box with the corners
p - h and p + h, rounded; both sides decide this exactly. With a slack the server computes the distance of
a polygon from the box, whose error is as small as that of other distances.

When there are more matches than the server sends, the device holds those nearest to the anchor. Those
within the range are a part of the result. Another report helps only when the device has moved on, or when
a tenth of the held objects is gone.

Plain Python: this file runs on devices. Cost: O(|B|) a test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from safe_region.earth.frame import Point
from safe_region.geometry.areas import area_distance, area_meets_box
from safe_region.geometry.shapes import PolygonShape, RectangleShape
from safe_region.regions.region import Buffered, Evaluation, Region
from safe_region.scoring.formulas import REACH_SLACK, length

CAPPED_SHARE = 0.9
"""A fraction of the most that the server sends: a result that is too large counts as such until it has
fewer objects than this."""

ROUNDING_M = 1e-9
ROUNDING_SHARE = 1e-14
"""More than twice the error of distances to areas: an absolute part, and a fraction of the
coordinates."""

STEP_SHARE = 0.1
"""A fraction of the radius: a device moves this far before it requests another part of a result that is
too large."""


class FixedRegion(Region):
    """The objects that a device holds for a boolean subscription with a fixed range: its result."""

    __slots__ = ("matches_max", "slack_m", "too_many")

    def __init__(self) -> None:
        super().__init__()
        self.slack_m = 0.0
        self.too_many = False
        self.matches_max = 0

    def update(
        self,
        anchor: Point,
        slack_m: float,
        too_many: bool,  # noqa: FBT001 - part of the bound
        matches_max: int,
        add: Iterable[Buffered] = (),
        drop: Iterable[int] = (),
    ) -> None:
        """Apply a delta; `matches_max` is the most objects that the server sends."""
        self.hold(anchor, add, drop)
        self.slack_m = slack_m
        self.too_many = too_many
        self.matches_max = matches_max

    def evaluate(self, x_m: float, y_m: float, now_ms: int, uncertainty_m: float = 0.0) -> Evaluation:  # noqa: ARG002
        """List the live buffer, nearest to the middle of the range first; see `Region.evaluate`."""
        best = sorted(self.live(self.anchor.x_m, self.anchor.y_m, now_ms))
        if self.too_many:
            return self.partial(best, len(best), math.inf)
        return Evaluation(best, self.slack_m, exact=self.slack_m == math.inf)

    def matches(self, object_id: int, x_m: float, y_m: float) -> bool:  # noqa: ARG002
        """Return whether a held object is in the result of a device at a place: always true."""
        return True

    def live(self, x_m: float, y_m: float, now_ms: int) -> list[tuple[float, int]]:
        """Return the live held objects as (distance from a point in metres, object id)."""
        return [
            (length(x_m - entry.x_m, y_m - entry.y_m, 0.0), entry.object_id)
            for entry in self.buffer.values()
            if entry.expiry_ms > now_ms
        ]

    def partial(self, best: list[tuple[float, int]], live_count: int, room_m: float) -> Evaluation:
        """Return a part of a result that is too large.

        A new report may help when many of the held objects are gone.
        """
        is_lacking = live_count < self.matches_max * CAPPED_SHARE
        is_capped = not is_lacking and room_m > 0.0
        return Evaluation(best, room_m, exact=False, is_lacking=is_lacking, is_capped=is_capped)


class RangeRegion(FixedRegion):
    """The objects that a device holds for a boolean subscription with a circle that moves with it.

    Parameters
    ----------
    radius_m
        R, on the plane.
    """

    __slots__ = ("radius_m",)

    def __init__(self, radius_m: float) -> None:
        super().__init__()
        self.radius_m = radius_m

    def evaluate(self, x_m: float, y_m: float, now_ms: int, uncertainty_m: float = 0.0) -> Evaluation:
        """Find the objects of the live buffer within the range, and test; see `Region.evaluate`."""
        live = self.live(x_m, y_m, now_ms)
        best = sorted(one for one in live if self._is_within(x_m, y_m, one))
        dx_m, dy_m = x_m - self.anchor.x_m, y_m - self.anchor.y_m
        if self.too_many:
            moved_m = length(dx_m, dy_m, 0.0)
            return self.partial(best, len(live), 2.0 * (self._size_m() * STEP_SHARE - moved_m))
        rounding_m = ROUNDING_M + ROUNDING_SHARE * (abs(x_m) + abs(y_m))
        room_m = self._room_m(dx_m, dy_m, 2.0 * uncertainty_m + rounding_m)
        is_anchor = dx_m == dy_m == uncertainty_m == 0.0
        return Evaluation(best, 2.0 * room_m, exact=is_anchor or room_m > 0.0)

    def matches(self, object_id: int, x_m: float, y_m: float) -> bool:
        """Return whether a held object is within the range about a place."""
        entry = self.buffer[object_id]
        return self._is_within(x_m, y_m, (length(x_m - entry.x_m, y_m - entry.y_m, 0.0), object_id))

    def nearest(self, x_m: float, y_m: float, now_ms: int) -> list[tuple[float, int]]:
        """Return the live held objects, also those beyond the range, nearest first.

        Each is (distance from a place to the object or its area in metres, object id).
        """
        live = self.live(x_m, y_m, now_ms)
        return sorted((self._distance_m(x_m, y_m, one), one[1]) for one in live)

    def reach_m(self, x_m: float, y_m: float) -> float:
        """Return a distance from a place within which all matches are held; 0 if there is none."""
        if self.too_many:
            return 0.0
        moved_m = length(x_m - self.anchor.x_m, y_m - self.anchor.y_m, 0.0)
        return max(0.0, self.radius_m + self.slack_m - moved_m)

    def _size_m(self) -> float:
        """Return the least distance from the middle of the range to its edge."""
        return self.radius_m

    def _room_m(self, dx_m: float, dy_m: float, besides_m: float) -> float:
        """Return the distance left in the test at an offset from the anchor.

        The device is silent while it is above 0.
        """
        held_m = (self.radius_m + self.slack_m) * (1.0 - REACH_SLACK)
        return held_m - (self.radius_m + length(dx_m, dy_m, 0.0) + besides_m)

    def _is_within(self, x_m: float, y_m: float, found: tuple[float, int]) -> bool:
        """Return whether the range contains an object whose point is at a given distance."""
        return self._distance_m(x_m, y_m, found) <= self.radius_m

    def _distance_m(self, x_m: float, y_m: float, found: tuple[float, int]) -> float:
        """Return the distance from a place to an object or its area; that to its point is given."""
        length_m, object_id = found
        area = self.buffer[object_id].area
        return length_m if area is None else area_distance(area, x_m, y_m)


class RectangleRegion(RangeRegion):
    """The objects that a device holds for a boolean subscription with a rectangle that moves with it.

    Parameters
    ----------
    width_m, height_m
        Of the whole rectangle, on the plane.
    """

    __slots__ = ("half_x_m", "half_y_m")

    def __init__(self, width_m: float, height_m: float) -> None:
        super().__init__(0.0)
        self.half_x_m = width_m / 2.0
        self.half_y_m = height_m / 2.0

    def _size_m(self) -> float:
        return min(self.half_x_m, self.half_y_m)

    def _room_m(self, dx_m: float, dy_m: float, besides_m: float) -> float:
        """Return the distance left along the axis where it is smaller."""
        return min(
            (half_m + self.slack_m) * (1.0 - REACH_SLACK) - (half_m + abs(moved_m) + besides_m)
            for half_m, moved_m in ((self.half_x_m, dx_m), (self.half_y_m, dy_m))
        )

    def _is_within(self, x_m: float, y_m: float, found: tuple[float, int]) -> bool:
        entry = self.buffer[found[1]]
        if isinstance(entry.area, PolygonShape):
            return area_meets_box(entry.area, self.box(x_m, y_m))
        area = entry.area or RectangleShape(entry.x_m, entry.y_m, entry.x_m, entry.y_m)
        return (
            max(area.x1_m - x_m, x_m - area.x2_m) <= self.half_x_m
            and max(area.y1_m - y_m, y_m - area.y2_m) <= self.half_y_m
        )

    def box(self, x_m: float, y_m: float) -> RectangleShape:
        """Return the rectangle about a place."""
        half_x_m, half_y_m = self.half_x_m, self.half_y_m
        return RectangleShape(x_m - half_x_m, y_m - half_y_m, x_m + half_x_m, y_m + half_y_m)
