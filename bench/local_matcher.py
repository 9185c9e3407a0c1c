"""Lamps without ASR: top-k subscriptions with local safe regions (LSR), polygons on both sides.

The index has the disc around the polygon's centroid; devices test the polygon. All else is inherited from
the top-k matcher. A located device is always re-evaluated: a new object changes O_s, and with it every
polygon.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from engine import EngineOptions, Positions
from engine.contracts import Rows
from engine.top_k.evaluation import Choice, Evaluation
from engine.top_k.matcher import TopKMatcher
from engine.top_k.tables import TopKTables
from index.batches import Floats, Ints, Ranking, ReachBatch
from index.tables.slots import Slots
from safe_region.earth.frame import Point
from safe_region.regions.local import Circle, local_safe_region

BETWEEN = 10
"""Size of O_s: gamma is the length of the object after this many beyond the results. The paper
adds a constant length, Delta, to the greatest length of the results instead."""


class LocalEvaluation(Evaluation):
    """See `Evaluation`; subscriptions in the mode ELLIPSE have local safe regions."""

    def __init__(self, tables: TopKTables, options: EngineOptions) -> None:
        super().__init__(tables, options)
        self.regions: dict[int, Any] = {}
        self.region_s = 0.0
        """Seconds spent on creating regions."""
        self.region_count = 0

    def locate(self, positions: Positions, pending_offsets: Ints, pending_ids: Ints) -> Rows:
        """Re-evaluate all devices that sent their positions."""
        del pending_offsets, pending_ids
        return self.anchor(positions)

    def anchor(self, positions: Positions, retrieved: list[Choice] | None = None) -> Rows:
        """Re-evaluate subscriptions at the positions of their devices, and create their polygons."""
        del retrieved  # always None: see `LocalMatcher.retrieve`
        slots = self._subscriptions.slots(positions.handles)
        interests = self._tables.interests(slots)
        rows = self._subscriptions.rows[slots]
        k = rows["k"].astype(np.int64)
        count = k + BETWEEN + 1
        unbounded = np.full(len(slots), np.inf)
        ranking = self._objects.index.best(interests, positions.x_m, positions.y_m, count, unbounded)
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
        return self.settle(self.choose(slots, rows, positions, trimmed))

    def _region(self, point: Point, ranking: Ranking, start: int, end: int, k: int) -> Any:  # noqa: ANN401 - shapely has no types for its methods
        table = self._objects.table
        places = table.rows[table.slots(ranking.ids[start:end])]
        shares = ranking.r_m[start:end].tolist()
        columns = zip(places["x_m"].tolist(), places["y_m"].tolist(), shares, strict=True)
        circles = [Circle(*column) for column in columns]
        gamma = float(ranking.length_m[end - 1])
        region = local_safe_region(point, gamma, circles[:k], circles[k:-1])
        shapely.prepare(region)
        return region

    def reaches(self, slots: Slots) -> ReachBatch:
        """Return discs around polygons, with their reaches."""
        batch = self._tables.reaches_of(slots)
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
        """Return whether each device has left its polygon. The anchor itself is always inside."""
        rows = self._tables.rows(handles)
        geometry = np.array([self.regions.get(handle) for handle in handles.tolist()], dtype=object)
        inside = shapely.contains_xy(geometry, x_m, y_m)
        inside |= (rows["x_m"] == x_m) & (rows["y_m"] == y_m)
        inside &= rows["buffer_count"] >= rows["k"]
        outside: npt.NDArray[np.bool_] = ~(inside | np.isinf(rows["reach_m"]))
        return outside


class LocalMatcher(TopKMatcher):
    """See `TopKMatcher`; subscriptions in the mode ELLIPSE have local safe regions."""

    local: LocalEvaluation

    def make_evaluation(self) -> LocalEvaluation:
        """Return the evaluation that creates polygons, and use its discs as reaches in the index."""
        self.local = LocalEvaluation(self.tables, self._options)
        self.tables.reaches = self.local.reaches
        return self.local

    def retrieve(self, positions: Positions) -> None:
        """Do nothing ahead: polygons are created as subscriptions are settled."""
        del positions
