"""Draw the workload of the suite berlinmod: events of driving vehicles, and stationary ranges.

Vehicles are cars of the simulator in its generated city. Each has one position a second, all at the same
seconds: BerlinMOD's own generator drives through Berlin in the same manner. Ranges lie around corners of
streets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bench.berlinmod.experiments import BerlinModParameters
from bench.boolean_specs import circles, requiring
from bench.driving import driven
from engine.boolean.layout import CIRCLE, POLYGON, BooleanSpecs, Ranges
from engine.contracts import BOOLEAN, handle_of
from engine.polygons import Rings
from index.batches import Boxes, Floats, Ints, KeywordLists, ObjectBatch
from index.square import Square
from safe_region.oracle.plane import OracleCircle, OraclePolygon

VEHICLE = 1
"""Keyword of every event and of every range."""

_CORNERS = 6
_JITTER_M = 100.0
"""Largest distance of a range from its corner, in each direction."""


class Events(NamedTuple):
    """Events in the order of time, row by row."""

    vehicle: Ints
    number: Ints
    """Number of the event among those of its vehicle, from 0."""
    x_m: Floats
    y_m: Floats

    def first(self, count: int) -> Events:
        """Return the first `count` events."""
        return Events(self.vehicle[:count], self.number[:count], self.x_m[:count], self.y_m[:count])

    def objects(self, start: int, stop: int) -> ObjectBatch:
        """Return events as objects; the id of each is its row, from 1."""
        count = stop - start
        keywords = KeywordLists(np.arange(count + 1), np.full(count, VEHICLE, dtype=np.int32))
        ids = np.arange(start + 1, stop + 1, dtype=np.int64)
        return ObjectBatch(ids, self.x_m[start:stop], self.y_m[start:stop], keywords)


@dataclass(frozen=True, slots=True)
class StationaryRanges:
    """Stationary ranges.

    Parameters
    ----------
    handles
        Handles of the subscriptions; range i has the number i.
    specs
        Specs of the subscriptions.
    """

    handles: Ints
    specs: BooleanSpecs

    def __len__(self) -> int:
        return len(self.handles)

    def part(self, rows: slice) -> BooleanSpecs:
        """Return the specs of consecutive ranges."""
        ranges, count = self.specs.ranges, rows.stop - rows.start
        offsets = self.specs.clause_offsets[: count + 1]
        required = KeywordLists(offsets, self.specs.required.ids[rows])
        excluded = KeywordLists(self.specs.excluded.offsets[: count + 1], self.specs.excluded.ids)
        first, last = ranges.rings.offsets[rows.start], ranges.rings.offsets[rows.stop]
        vertex_offsets = ranges.rings.vertex_offsets[first : last + 1]
        vertices = slice(vertex_offsets[0], vertex_offsets[-1])
        rings = Rings(
            ranges.rings.offsets[rows.start : rows.stop + 1] - first,
            vertex_offsets - vertex_offsets[0],
            ranges.rings.x_m[vertices],
            ranges.rings.y_m[vertices],
        )
        boxes = Boxes(*(getattr(ranges.boxes, name)[rows] for name in ("x1_m", "y1_m", "x2_m", "y2_m")))
        some = Ranges(
            ranges.shape[rows],
            ranges.is_moving[rows],
            ranges.x_m[rows],
            ranges.y_m[rows],
            ranges.radius_m[rows],
            boxes,
            rings,
        )
        return BooleanSpecs(offsets, required, excluded, some, self.specs.region[rows])

    def oracle_range(self, number: int) -> OracleCircle | OraclePolygon:
        """Return a range as the oracle in plain Python represents it."""
        ranges = self.specs.ranges
        if ranges.shape[number] == CIRCLE:
            middle = float(ranges.x_m[number]), float(ranges.y_m[number])
            return OracleCircle(float(ranges.radius_m[number]), middle)
        start, stop = ranges.rings.vertex_offsets[number : number + 2]
        corners = zip(ranges.rings.x_m[start:stop], ranges.rings.y_m[start:stop], strict=True)
        return OraclePolygon((tuple((float(x), float(y)) for x, y in corners),))


class Scene(NamedTuple):
    """Events and streets, the same for all queries."""

    events: Events
    corners: Floats
    """Corners of streets, plane metres, a row each."""
    square: Square
    """A square around all of the city."""


def scene(parameters: BerlinModParameters) -> Scene:
    """Let vehicles drive."""
    vehicles = parameters.vehicles
    ticks = -(-parameters.events // vehicles)
    seconds = max(1, ticks - 1)
    found = driven(vehicles, seconds, parameters.seed, car_share=1.0, bicycle_share=0.0)
    x_m, y_m, frame = found.x_m.ravel(), found.y_m.ravel(), found.frame
    by_time = np.arange(len(x_m)).reshape(vehicles, -1).T.ravel()[: parameters.events]
    number, vehicle = np.divmod(np.arange(parameters.events), vehicles)
    events = Events(vehicle, number, x_m[by_time], y_m[by_time])
    lons, lats = (found.terrain.roads[f"source_{name}"].to_numpy() for name in ("lon", "lat"))
    corners = np.column_stack(
        [(lons - frame.lon0_deg) * frame.x_m_per_deg, (lats - frame.lat0_deg) * frame.y_m_per_deg]
    )
    half_m = float(np.abs(corners).max()) + 1.0
    return Scene(events, corners, Square(0.0, 0.0, half_m))


def stationary_ranges(corners: Floats, parameters: BerlinModParameters) -> StationaryRanges:
    """Draw ranges: circles for Q3 and Q7, regions with six corners for Q4."""
    count, query = parameters.ranges, parameters.query
    chance = np.random.default_rng([parameters.seed, count, 53])
    middles = corners[chance.integers(0, len(corners), count)]
    middles = middles + chance.uniform(-_JITTER_M, _JITTER_M, (count, 2))
    if query == "q4":
        ranges = _regions(middles, parameters.region_m, chance)
    else:
        radius_m = parameters.distance_m if query == "q3" else parameters.poi_m
        ranges = circles(middles[:, 0], middles[:, 1], radius_m)
    one = np.arange(count + 1, dtype=np.int64)
    required = KeywordLists(one, np.full(count, VEHICLE, dtype=np.int32))
    handles = np.arange(count, dtype=np.int64) + handle_of(BOOLEAN, 0)
    return StationaryRanges(handles, requiring(required, ranges))


def _regions(middles: Floats, size_m: float, chance: np.random.Generator) -> Ranges:
    """Return polygons with a corner in each sixth of the turn, at half to all of the size."""
    count = len(middles)
    turns = (np.arange(_CORNERS) + chance.uniform(0.1, 0.9, (count, _CORNERS))) * 2.0 * np.pi / _CORNERS
    reach_m = size_m * chance.uniform(0.5, 1.0, (count, _CORNERS))
    x_m = middles[:, :1] + reach_m * np.cos(turns)
    y_m = middles[:, 1:] + reach_m * np.sin(turns)
    boxes = Boxes(x_m.min(axis=1), y_m.min(axis=1), x_m.max(axis=1), y_m.max(axis=1))
    rings = Rings(
        np.arange(count + 1, dtype=np.int64),
        np.arange(count + 1, dtype=np.int64) * _CORNERS,
        x_m.ravel(),
        y_m.ravel(),
    )
    return Ranges(
        np.full(count, POLYGON, dtype=np.int8),
        np.zeros(count, dtype=np.bool_),
        (boxes.x1_m + boxes.x2_m) / 2.0,
        (boxes.y1_m + boxes.y2_m) / 2.0,
        np.zeros(count),
        boxes,
        rings,
    )
