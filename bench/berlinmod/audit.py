"""Compute the answers of some ranges by the definitions, in plain Python, over all events."""

from __future__ import annotations

import numpy as np

from bench.berlinmod.experiments import Query
from bench.berlinmod.queries import Answers
from bench.berlinmod.workload import Events, StationaryRanges
from safe_region.oracle.plane import OracleCircle, OraclePolygon, is_within

Box = tuple[float, float, float, float]


def sample(
    events: Events, stationary_ranges: StationaryRanges, audited: int, chance: np.random.Generator
) -> list[int]:
    """Choose ranges: half of them nearest to random events, the others from all ranges."""
    x_m, y_m = stationary_ranges.specs.ranges.x_m, stationary_ranges.specs.ranges.y_m
    places = chance.integers(0, len(events.x_m), audited // 2)
    near = [int(np.argmin((x_m - events.x_m[one]) ** 2 + (y_m - events.y_m[one]) ** 2)) for one in places]
    others = chance.integers(0, len(stationary_ranges), audited - len(near)).tolist()
    return sorted({*near, *others})


def mismatches(
    query: Query,
    events: Events,
    stationary_ranges: StationaryRanges,
    answers: Answers,
    numbers: list[int],
) -> int:
    """Return the number of audited ranges whose answers differ from those of plain Python."""
    order = np.lexsort((answers.events, answers.ranges))
    ranges, rows = answers.ranges[order], answers.events[order]
    wrong = 0
    columns = (events.vehicle, events.x_m, events.y_m)
    stream = list(zip(*(column.tolist() for column in columns), strict=True))
    for number in numbers:
        found = rows[np.searchsorted(ranges, number) : np.searchsorted(ranges, number + 1)]
        wrong += found.tolist() != expected(query, stream, stationary_ranges.oracle_range(number))
    return wrong


def expected(
    query: Query, stream: list[tuple[int, float, float]], where: OracleCircle | OraclePolygon
) -> list[int]:
    """Return the rows of the events that answer a query for one range."""
    low_x, low_y, high_x, high_y = _box(where)
    inside: set[int] = set()
    seen: set[int] = set()
    found = []
    for row, (vehicle, x_m, y_m) in enumerate(stream):
        is_in = low_x <= x_m <= high_x and low_y <= y_m <= high_y
        is_in = is_in and is_within(where, (x_m, y_m), None)
        if is_in and (
            query == "q3"
            or (query == "q4" and vehicle not in inside)
            or (query == "q7" and vehicle not in seen)
        ):
            found.append(row)
        (inside.add if is_in else inside.discard)(vehicle)
        if is_in:
            seen.add(vehicle)
    return found


def _box(where: OracleCircle | OraclePolygon) -> Box:
    """Return a box around a range; that of a circle is 1 m wider on each side."""
    if isinstance(where, OracleCircle):
        assert where.center is not None  # noqa: S101 - a stationary range
        (x_m, y_m), far_m = where.center, where.radius_m + 1.0
        return x_m - far_m, y_m - far_m, x_m + far_m, y_m + far_m
    xs, ys = zip(*where.rings[0], strict=True)
    return min(xs), min(ys), max(xs), max(ys)
