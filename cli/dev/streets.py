"""The streets of a small town: a bent grid with gaps, a park, and wider streets every few blocks."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

_BLOCK_M = 95.0
_JITTER_M = 16.0
_BEND_M = 70.0
_WIDE = 5
"""Every this many rows and columns of crossings have a wider street, without gaps."""

_GAPS = 0.16
"""Fraction of the other streets that are left out."""

_M_PER_DEG = 111_195.0

Position = tuple[float, float]


class Street(NamedTuple):
    """A street from one crossing to another, in one direction."""

    source: int
    target: int
    length_m: float
    is_wide: bool


class Streets:
    """Crossings and the streets between them; each crossing can be reached from all others.

    Parameters
    ----------
    lon, lat
        The middle of the town.
    columns, rows
        Number of crossings from west to east and from south to north.
    rng
        Decides about bends and gaps.
    """

    def __init__(self, lon: float, lat: float, columns: int, rows: int, rng: random.Random) -> None:
        self._lon, self._lat = lon, lat
        self._scale = math.cos(math.radians(lat))
        self._plane = [
            _bent(column - (columns - 1) / 2, row - (rows - 1) / 2, columns, rng)
            for row in range(rows)
            for column in range(columns)
        ]
        self.from_crossing: dict[int, list[Street]] = {}
        """The streets that start at each crossing."""
        kept = {number for number in range(columns * rows) if not self._is_in_park(number, columns)}
        for number in sorted(kept):
            column, row = number % columns, number // columns
            if column + 1 < columns and number + 1 in kept:
                self._add(number, number + 1, row % _WIDE == 0, rng)
            if row + 1 < rows and number + columns in kept:
                self._add(number, number + columns, column % _WIDE == 0, rng)
        self._keep_largest()

    @property
    def area(self) -> tuple[float, float, float, float]:
        """An area around the town: west, south, east, north."""
        lons, lats = zip(*(self.place(one) for one in self.from_crossing), strict=True)
        margin = 2 * _BLOCK_M / _M_PER_DEG
        return (
            min(lons) - margin / self._scale,
            min(lats) - margin,
            max(lons) + margin / self._scale,
            max(lats) + margin,
        )

    def place(self, crossing: int) -> Position:
        """Return the position of a crossing in degrees."""
        x_m, y_m = self._plane[crossing]
        return self._lon + x_m / (_M_PER_DEG * self._scale), self._lat + y_m / _M_PER_DEG

    def along(self, street: Street, length_m: float) -> Position:
        """Return the position at a distance from the start of a street."""
        part = min(1.0, length_m / street.length_m)
        (lon1, lat1), (lon2, lat2) = self.place(street.source), self.place(street.target)
        return lon1 + part * (lon2 - lon1), lat1 + part * (lat2 - lat1)

    def all(self) -> Iterator[Street]:
        """Yield each street once."""
        for streets in self.from_crossing.values():
            yield from (one for one in streets if one.source < one.target)

    def geojson(self) -> dict[str, Any]:
        """Return the streets as a GeoJSON document."""
        features = [
            {
                "type": "Feature",
                "properties": {"road_class": "secondary" if one.is_wide else "residential"},
                "geometry": {
                    "type": "LineString",
                    "coordinates": [self.place(one.source), self.place(one.target)],
                },
            }
            for one in self.all()
        ]
        return {"type": "FeatureCollection", "features": features}

    def _is_in_park(self, number: int, columns: int) -> bool:
        """Return whether a crossing would lie in the park, in the north-east of the middle."""
        x_m, y_m = self._plane[number]
        size_m = columns * _BLOCK_M
        return math.hypot((x_m - 0.16 * size_m) / 1.4, y_m - 0.1 * size_m) < 0.09 * size_m

    def _add(self, source: int, target: int, is_wide: bool, rng: random.Random) -> None:  # noqa: FBT001
        if not is_wide and rng.random() < _GAPS:
            return
        length_m = math.dist(self._plane[source], self._plane[target])
        for start, end in ((source, target), (target, source)):
            self.from_crossing.setdefault(start, []).append(Street(start, end, length_m, is_wide))

    def _keep_largest(self) -> None:
        """Remove all but the largest part of the streets that hangs together."""
        left, largest = set(self.from_crossing), set[int]()
        while left:
            part = self._reached_from(next(iter(left)))
            left -= part
            largest = max(largest, part, key=len)
        self.from_crossing = {one: self.from_crossing[one] for one in sorted(largest)}

    def _reached_from(self, crossing: int) -> set[int]:
        found, waiting = {crossing}, [crossing]
        while waiting:
            for street in self.from_crossing[waiting.pop()]:
                if street.target not in found:
                    found.add(street.target)
                    waiting.append(street.target)
        return found


def _bent(column: float, row: float, columns: int, rng: random.Random) -> Position:
    """Return the place of a crossing on the plane, in metres from the middle."""
    x_m, y_m = column * _BLOCK_M, row * _BLOCK_M
    turn = 2 * math.pi / (columns * _BLOCK_M)
    return (
        x_m + _BEND_M * math.sin(1.1 * turn * y_m + 0.6) + rng.uniform(-_JITTER_M, _JITTER_M),
        y_m + _BEND_M * math.sin(0.9 * turn * x_m) + rng.uniform(-_JITTER_M, _JITTER_M),
    )
