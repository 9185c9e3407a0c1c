"""Lamps without ASR: the engine with local safe regions (LSR), polygons on both sides.

The index sees the disc about the polygon's centroid; devices test the polygon. The rest is the engine's.
A located device is always evaluated anew: a new object changes O_s, and with it every polygon.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from engine import Choice, Engine, EngineOptions, Positions
from engine.top_k.layout import Rows
from index.batches import Floats, Ints, Ranking, ReachBatch
from index.tables.slots import Slots
from safe_region.frame import Point
from safe_region.local import Circle, local_safe_region

BETWEEN = 10
"""Size of O_s: gamma is the length of the object after so many beyond the results. This is Delta."""


class LocalEngine(Engine):
    """See `Engine`; subscriptions in the mode ELLIPSE have local safe regions."""

    def __init__(self, options: EngineOptions | None = None) -> None:
        super().__init__(options)
        self.regions: dict[int, Any] = {}
        self.region_s = 0.0
        """Time spent on making regions."""
        self.region_count = 0

    def locate(self, positions: Positions, pending_offsets: Ints, pending_ids: Ints) -> Rows:
        """Take the answers of devices: evaluate all of them."""
        del pending_offsets, pending_ids
        return self.anchor(positions)

    def anchor(self, positions: Positions, seen: list[Choice] | None = None) -> Rows:
        """Evaluate subscriptions anew where their devices are, and make their polygons."""
        del seen
        slots = self.subscriptions.slots(positions.handles)
        interests = self._interests(slots)
        k = self.subscriptions.rows["k"][slots].astype(np.int64)
        count = k + BETWEEN + 1
        unbounded = np.full(len(slots), np.inf)
        ranking = self.object_index.best(interests, positions.x_m, positions.y_m, count, unbounded)
        began = time.perf_counter()
        kept = np.zeros(len(ranking.ids), dtype=np.bool_)
        sizes = np.zeros(len(slots) + 1, dtype=np.int64)
        for i in range(len(slots)):
            start, end = int(ranking.offsets[i]), int(ranking.offsets[i + 1])
            found = end - start
            kept[start : start + min(found, int(k[i]))] = True
            if found > k[i]:
                kept[end - 1] = True  # gamma
                point = Point(float(positions.x_m[i]), float(positions.y_m[i]))
                self.regions[int(positions.handles[i])] = self._region(
                    point, ranking, start, end, int(k[i])
                )
            sizes[i + 1] = kept[start:end].sum()
        self.region_s += time.perf_counter() - began
        self.region_count += len(slots)
        trimmed = Ranking(np.cumsum(sizes), ranking.ids[kept], ranking.length_m[kept], ranking.r_m[kept])
        return self._settle(slots, self._choose(slots, positions, trimmed))

    def _region(self, point: Point, ranking: Ranking, start: int, end: int, k: int) -> Any:  # noqa: ANN401 - shapely has no types for its methods
        places = self.objects.rows[self.objects.slots(ranking.ids[start:end])]
        shares = ranking.r_m[start:end].tolist()
        columns = zip(places["x_m"].tolist(), places["y_m"].tolist(), shares, strict=True)
        circles = [Circle(*column) for column in columns]
        gamma = float(ranking.length_m[end - 1])
        region = local_safe_region(point, gamma, circles[:k], circles[k:-1])
        shapely.prepare(region)
        return region

    def _regions(self, slots: Slots) -> ReachBatch:
        batch = super()._regions(slots)
        began = time.perf_counter()
        for i, handle in enumerate(batch.ids.tolist()):
            region: Any = self.regions.get(handle)
            if region is None or region.is_empty or not np.isfinite(batch.reach_m[i]):
                continue
            centre = region.centroid
            batch.x_m[i], batch.y_m[i] = centre.x, centre.y
            batch.radius_m[i] = shapely.hausdorff_distance(centre, region) * (1.0 + 1e-9)
        self.region_s += time.perf_counter() - began
        return batch

    def is_outside(self, handles: Ints, x_m: Floats, y_m: Floats) -> npt.NDArray[np.bool_]:
        """Which devices have left their polygon. The anchor itself is always inside."""
        rows = self.subscriptions.rows[self.subscriptions.slots(handles)]
        geometry = np.array([self.regions.get(handle) for handle in handles.tolist()], dtype=object)
        inside = shapely.contains_xy(geometry, x_m, y_m)
        inside |= (rows["x_m"] == x_m) & (rows["y_m"] == y_m)
        inside &= rows["buffer_count"] >= rows["k"]
        outside: npt.NDArray[np.bool_] = ~(inside | np.isinf(rows["reach_m"]))
        return outside
