"""The paths of devices and the safe regions that they received, for the picture."""

from __future__ import annotations

import math
from array import array
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple

from nearcast import Subscription
from safe_region.earth.frame import Frame, Point
from safe_region.regions.anchored import AnchoredRegion
from safe_region.regions.polygon import boundary
from safe_region.regions.ranges import RangeRegion, RectangleRegion
from safe_region.regions.region import Region
from simulator.workload.rows import Fix

REGIONS_SHOWN_MAX = 16
"""A path with more regions is unreadable."""

DEVICES_MAX = 500
"""The number of devices whose paths are recorded."""

POSITIONS_MAX = 1_024
"""The maximum number of positions of a path."""

Ring = list[tuple[float, float]]

_AT_M = 0.5
"""An anchor within this distance is at the device."""
_CIRCLE_CORNERS = 72


class Anchoring(NamedTuple):
    """A region as the device received it."""

    region: Region
    now_ms: int


class Path:
    """Positions in their order. A long path is thinned: every second position, every fourth."""

    def __init__(self) -> None:
        self._lons, self._lats = array("d"), array("d")
        self._count = 0
        self._step = 1

    def add(self, lon: float, lat: float) -> None:
        """Add a position."""
        if self._count % self._step == 0:
            if len(self._lons) == POSITIONS_MAX:
                self._lons, self._lats = self._lons[::2], self._lats[::2]
                self._step *= 2
            if self._count % self._step == 0:
                self._lons.append(lon)
                self._lats.append(lat)
        self._count += 1

    def positions(self) -> Ring:
        """Return the positions."""
        return list(zip(self._lons, self._lats, strict=True))


@dataclass(slots=True)
class _Followed:
    """The data of a device that may be shown."""

    path: Path = field(default_factory=Path)
    anchorings: list[Anchoring] = field(default_factory=list)
    """The first anchors, up to a limit."""
    anchor_count: int = 0
    last: tuple[float, float] = (0.0, 0.0)


class Track:
    """Records the first devices; outlines are computed only for the one that is shown.

    Memory is O(devices).

    Parameters
    ----------
    frame
        The service area.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._followed: dict[str, _Followed] = {}
        self._anchors: dict[str, Point] = {}
        self._before: dict[str, Point] = {}
        self.anchored = 0
        """The number of anchors."""
        self.anchored_ahead = 0
        """The number of anchors that are not at the device."""
        self.held = 0
        """The total number of objects that came with the anchors."""

    def follow(self, fix: Fix, subscription: Subscription | None, now_ms: int) -> None:
        """Add a position of a device, and the region of a subscription if it has a new anchor."""
        device_id = fix.device_id
        followed = self._followed.get(device_id)
        if followed is None and len(self._followed) < DEVICES_MAX:
            followed = self._followed[device_id] = _Followed()
        if followed is not None:
            followed.path.add(fix.lon, fix.lat)
            followed.last = (fix.lon, fix.lat)
        if subscription is None:
            return
        here = self._frame.project(fix.lon, fix.lat)
        before = self._before.get(device_id, here)
        self._before[device_id] = here
        seen = subscription.region
        if self._anchors.get(device_id) == seen.anchor:
            return
        self._anchors[device_id] = seen.anchor
        self.anchored += 1
        # Time passes before devices move: some report their position at the tick before.
        self.anchored_ahead += _is_apart(before, seen.anchor) and _is_apart(here, seen.anchor)
        self.held += len(seen.buffer)
        if followed is not None:
            followed.anchor_count += 1
            if len(followed.anchorings) <= REGIONS_SHOWN_MAX:
                followed.anchorings.append(Anchoring(_copied(seen), now_ms))

    def most_telling(self) -> str:
        """Return the device with the most regions that are still readable; "" for none."""
        shown = {one: found.anchor_count for one, found in self._followed.items() if found.anchorings}
        readable = {one: count for one, count in shown.items() if count <= REGIONS_SHOWN_MAX}
        return max(readable, key=lambda one: (readable[one], one), default=min(shown, default=""))

    def paths(self) -> list[Ring]:
        """Return the paths of the recorded devices."""
        return [one.path.positions() for one in self._followed.values()]

    def path(self, device_id: str) -> Ring:
        """Return positions as (lon, lat), tick by tick; of a long run only some."""
        return self._followed[device_id].path.positions()

    def regions(self, device_id: str) -> list[Ring]:
        """Return rings of (lon, lat), one for each bounded region, in order; if many, the first."""
        rings = (self._boundary(*one) for one in self._followed[device_id].anchorings)
        return [ring for ring in rings if ring]

    def ranges(self, device_id: str) -> list[Ring]:
        """Return the range about a device's last position, and the range held: larger by the slack.

        Empty if it has no moving range.
        """
        followed = self._followed[device_id]
        region = followed.anchorings[-1].region if followed.anchorings else None
        if not isinstance(region, RangeRegion):
            return []
        last = self._frame.project(*followed.last)
        return [self._range(region, last, 0.0), self._range(region, region.anchor, region.slack_m)]

    def _boundary(self, region: Region, now_ms: int) -> Ring:
        """Return where the device stops to be silent; empty if that is nowhere."""
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
        """Return a range about a place, larger by `beyond_m` on all sides."""
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


def _copied(region: Region) -> Region:
    was = copy(region)
    was.buffer = dict(region.buffer)
    return was


def _is_apart(left: Point, right: Point) -> bool:
    return max(abs(left.x_m - right.x_m), abs(left.y_m - right.y_m)) > _AT_M
