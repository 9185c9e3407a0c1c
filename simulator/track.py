"""One device's path and the safe regions it was given, for the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nearcast import Subscription
from safe_region.frame import Frame, Point
from safe_region.polygon import boundary
from simulator.workload_rows import Fix

Ring = list[tuple[float, float]]


@dataclass(slots=True)
class Track:
    """What is recorded of a device."""

    device_id: str
    path: Ring = field(default_factory=list)
    """Positions as (lon, lat), tick by tick."""
    regions: list[Ring] = field(default_factory=list)
    """Rings of (lon, lat), one for each anchor, in order."""
    _anchors: dict[int, Point] = field(default_factory=dict)

    def follow(self, fix: Fix, subscriptions: Sequence[Subscription], frame: Frame, now_ms: int) -> None:
        """Add a position, and the regions that have a new anchor."""
        self.path.append((fix.lon, fix.lat))
        for subscription in subscriptions:
            region = subscription.region
            if self._anchors.get(subscription.id) == region.anchor:
                continue
            self._anchors[subscription.id] = region.anchor
            polygon = boundary(region, now_ms)
            if polygon is not None and not polygon.is_empty:
                ring = polygon.exterior.coords
                self.regions.append([frame.unproject(x_m, y_m) for x_m, y_m in ring])
