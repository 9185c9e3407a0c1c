"""Where devices went and which safe regions they were given, for the picture."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from nearcast import Subscription
from safe_region.anchored import AnchoredRegion
from safe_region.frame import Frame, Point
from safe_region.polygon import boundary
from simulator.workload_rows import Fix

REGIONS_SHOWN_MAX = 16
"""A path with more regions than this cannot be told from a stain."""

_AT_M = 0.5
"""An anchor so near is at the device."""

Ring = list[tuple[float, float]]


class _Anchoring(NamedTuple):
    """A region as it was when the device had just been given it."""

    region: AnchoredRegion
    now_ms: int


class Track:
    """What is recorded of every device; polygons are computed only for the one that is shown.

    Parameters
    ----------
    frame
        The service area.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._paths: dict[str, Ring] = defaultdict(list)
        self._anchorings: dict[str, list[_Anchoring]] = defaultdict(list)
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
        copy = AnchoredRegion(seen.k)
        copy.update(seen.anchor, seen.reach_m, seen.reach_id, seen.buffer.values())
        self._anchorings[fix.device_id].append(_Anchoring(copy, now_ms))

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
        rings = []
        for region, now_ms in self._anchorings[device_id]:
            polygon = boundary(region, now_ms)
            if polygon is not None and not polygon.is_empty:
                corners = polygon.exterior.coords
                rings.append([self._frame.unproject(x_m, y_m) for x_m, y_m in corners])
        return rings


def _is_apart(left: Point, right: Point) -> bool:
    return max(abs(left.x_m - right.x_m), abs(left.y_m - right.y_m)) > _AT_M
