"""Views: the rows of a frame that a watcher gets, and the density of those that it does not get.

Operations: O(rows) each, some nanoseconds per row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from index.batches import Floats, Ints
from safe_region.earth.frame import Area

_SCATTER = np.uint64(0x9E3779B97F4A7C15)
"""The fractional part of the golden ratio, as a multiplier: it spreads adjacent numbers evenly."""


class Grid(NamedTuple):
    """The cells of densities."""

    columns: int
    rows: int


class View(NamedTuple):
    """A request of a watcher, within its limits. Names are qualified."""

    area: Area
    interval_ms: int
    devices_max: int
    objects_max: int
    grid: Grid | None = None
    keyword: str = ""
    device_id: str = ""
    polling_ms: int = 1_000


class Density(NamedTuple):
    """Numbers of positions by cell, from west to east, and the rows from south to north."""

    grid: Grid
    counts: Ints


def sample(numbers: Ints, count_max: int) -> Ints:
    """Return the rows of at most `count_max` numbers.

    A number that is among them remains so, unless numbers come that take its place.
    """
    if len(numbers) <= count_max:
        return np.arange(len(numbers), dtype=np.int64)
    if count_max == 0:
        return np.empty(0, dtype=np.int64)
    order = numbers.astype(np.uint64) * _SCATTER
    found: Ints = np.argpartition(order, count_max - 1)[:count_max]
    return found


def cell_counts(view: View, lon: Floats, lat: Floats) -> Ints:
    """Return the number of positions of a view in each cell of its grid."""
    columns, rows = view.grid or Grid(1, 1)
    area = view.area
    column = _cells(lon, area.lon_min, area.lon_max, columns)
    row = _cells(lat, area.lat_min, area.lat_max, rows)
    return np.bincount(row * columns + column, minlength=rows * columns)


def _cells(values: Floats, least: float, most: float, count: int) -> Ints:
    """Return the number of the cell of each value. The last cell includes its end."""
    cells: Ints = ((values - least) * (count / (most - least))).astype(np.int64)
    return np.minimum(cells, count - 1)
