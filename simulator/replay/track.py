"""Where devices went and which safe regions they were given, for the picture."""

from __future__ import annotations

import math
from collections import defaultdict
from copy import copy
from typing import NamedTuple

from nearcast import Subscription
from safe_region.anchored import AnchoredRegion
from safe_region.frame import Frame, Point
from safe_region.polygon import boundary
from safe_region.ranges import RangeRegion, RectangleRegion
from safe_region.region import Region
from simulator.workload.rows import Fix

REGIONS_SHOWN_MAX = 16
"""A path with more regions than this cannot be told from a stain."""

_AT_M = 0.5
"""An anchor so near is at the device."""
_CIRCLE_CORNERS = 72

Ring = list[tuple[float, float]]


class Anchoring(NamedTuple):
    """A region as it was when the device had just been given it."""

    region: Region
    now_ms: int


class Track:
    """What is recorded of every device; outlines are computed only for the one that is shown.

    Parameters
    ----------
    frame
        The service area.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._paths: dict[str, Ring] = defaultdict(list)
        self._anchorings: dict[str, list[Anchoring]] = defaultdict(list)
        self._anchors: dict[str, Point] = {}
        self.anchored = 0
        """How many anchors were seen."""
        self.anchored_ahead = 0
        """How many of them elsewhere than at the device."""
        self.held = 0
        """How many objects came with them, together."""

    def follow(self, fix: Fix, subscription: Subscription | None, now_ms: int) -> None:
        """Add a position of a device, and the region of a subscription if it was anchored anew."""
        self._paths[fix.device_id].append((fix.lon, fix.lat))
        if subscription is None or self._anchors.get(fix.device_id) == subscription.region.anchor:
            return
        seen = subscription.region
        self._anchors[fix.device_id] = seen.anchor
        # Time passes before devices move: some report where they were the tick before.
        lately = [self._frame.project(*place) for place in self._paths[fix.device_id][-2:]]
        self.anchored += 1
        self.anchored_ahead += all(_is_apart(place, seen.anchor) for place in lately)
        self.held += len(seen.buffer)
        was = copy(seen)
        was.buffer = dict(seen.buffer)
        self._anchorings[fix.device_id].append(Anchoring(was, now_ms))

    def most_telling(self) -> str:
        """Return the device with the most regions that can still be told apart; "" for none."""
        shown = {one: len(found) for one, found in self._anchorings.items()}
        readable = {one: count for one, count in shown.items() if count <= REGIONS_SHOWN_MAX}
        return max(readable, key=lambda one: (readable[one], one), default=min(shown, default=""))

    def path(self, device_id: str) -> Ring:
        """Return positions as (lon, lat), tick by tick."""
        return self._paths[device_id]

    def regions(self, device_id: str) -> list[Ring]:
        """Return rings of (lon, lat), one for each bounded region, in order."""
        rings = (self._boundary(*one) for one in self._anchorings[device_id])
        return [ring for ring in rings if ring]

    def ranges(self, device_id: str) -> list[Ring]:
        """Return the range about where a device was last, and what of it is held: larger by the slack.

        Nothing if it has no range that moves.
        """
        found = self._anchorings[device_id]
        region = found[-1].region if found else None
        if not isinstance(region, RangeRegion) or not self._paths[device_id]:
            return []
        last = self._frame.project(*self._paths[device_id][-1])
        return [self._range(region, last, 0.0), self._range(region, region.anchor, region.slack_m)]

    def _boundary(self, region: Region, now_ms: int) -> Ring:
        """Return where the device stops to be silent; nothing if that is nowhere."""
        if isinstance(region, RangeRegion):
            if region.slack_m <= 0.0:
                return []
            if isinstance(region, RectangleRegion):
                return self._rectangle(region.anchor, region.slack_m, region.slack_m)
            return self._circle(region.anchor, region.slack_m)
        if not isinstance(region, AnchoredRegion):
            return []
        polygon = boundary(region, now_ms)
        if polygon is None or polygon.is_empty:
            return []
        return [self._frame.unproject(x_m, y_m) for x_m, y_m in polygon.exterior.coords]

    def _range(self, region: RangeRegion, middle: Point, beyond_m: float) -> Ring:
        """Return a range about a place, larger by so much on all sides."""
        if isinstance(region, RectangleRegion):
            return self._rectangle(middle, region.half_x_m + beyond_m, region.half_y_m + beyond_m)
        return self._circle(middle, region.radius_m + beyond_m)

    def _rectangle(self, middle: Point, half_x_m: float, half_y_m: float) -> Ring:
        corners = ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))
        return [
            self._frame.unproject(middle.x_m + x * half_x_m, middle.y_m + y * half_y_m)
            for x, y in corners
        ]

    def _circle(self, middle: Point, radius_m: float) -> Ring:
        turns = (2.0 * math.pi * i / _CIRCLE_CORNERS for i in range(_CIRCLE_CORNERS + 1))
        return [
            self._frame.unproject(
                middle.x_m + radius_m * math.cos(a), middle.y_m + radius_m * math.sin(a)
            )
            for a in turns
        ]


def _is_apart(left: Point, right: Point) -> bool:
    return max(abs(left.x_m - right.x_m), abs(left.y_m - right.y_m)) > _AT_M
