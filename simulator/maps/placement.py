"""Converts coordinates of a file to degrees on the Earth."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from safe_region.earth.frame import EARTH_RADIUS_M, LONGITUDE_MAX_DEG
from simulator.maps.errors import MapError
from simulator.maps.rows import Row

SPAN_DEG_MAX = 90.0
"""The area is treated as a plane; a map across the antimeridian would span the globe."""

SPAN_M_MIN = 200.0
"""A smaller span is not a road network: degrees with a unit of some metres would span some metres."""

COORDINATE_MAX = 1e12
"""The maximum of coordinates that are not degrees."""

M_PER_DEG = EARTH_RADIUS_M * math.pi / 180.0

_UNIT_NAMES = {1e-6: " millionths of"}

Floats = npt.NDArray[np.float64]


class Columns(NamedTuple):
    """The names of the two coordinates."""

    x: str
    y: str


class Placement(NamedTuple):
    """The conversion of coordinates to degrees.

    Coordinates without a unit are placed about 0 degrees of longitude and latitude, in the Gulf of
    Guinea: there a degree is as long to the east as to the north, and no one mistakes the place for a
    real one. x grows eastwards, y northwards.

    Parameters
    ----------
    unit_m
        Metres a unit; None for coordinates that are degrees.
    x0, y0
        The coordinates of 0 degrees: the middle of the network.
    """

    unit_m: float | None
    x0: float = 0.0
    y0: float = 0.0

    @classmethod
    def about(cls, path: Path, xs: Floats, ys: Floats, unit_m: float) -> Placement:
        """Place the nodes of a network.

        Raises
        ------
        MapError
            If they reach so far that no plane can represent the area, or only a few steps.
        """
        span_m = unit_m * max(float(np.ptp(xs)), float(np.ptp(ys)))
        if span_m < SPAN_M_MIN:
            raise MapError(
                f"{path} spans {span_m:.3g} m at {unit_m:g} metres per unit, less than {SPAN_M_MIN:g}; "
                "if its coordinates are degrees, leave out --unit-m"
            )
        if span_m > SPAN_DEG_MAX * M_PER_DEG:
            raise MapError(
                f"{path} spans {span_m / 1000:,.0f} km at {unit_m:g} metres per unit, more than "
                f"{SPAN_DEG_MAX * M_PER_DEG / 1000:,.0f}"
            )
        x0, y0 = (xs.min() + xs.max()) / 2.0, (ys.min() + ys.max()) / 2.0
        return cls(unit_m, float(x0), float(y0))

    def degrees(self, xs: Floats, ys: Floats) -> tuple[Floats, Floats]:
        """Return longitudes and latitudes."""
        if self.unit_m is None:
            return xs, ys
        scale = self.unit_m / M_PER_DEG
        return (xs - self.x0) * scale, (ys - self.y0) * scale

    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the possible names of the two coordinates in CSV files, the likelier first."""
        xs, ys = ("lon", "longitude", "x"), ("lat", "latitude", "y")
        return (xs, ys) if self.unit_m is None else (xs[::-1], ys[::-1])

    def read(
        self, row: Row, columns: Columns, lat_max: float, deg_per_unit: float = 1.0
    ) -> tuple[float, float]:
        """Read both coordinates of a row; fractions of a degree are converted to degrees.

        Parameters
        ----------
        row, columns
            The row, and the names of the coordinates.
        lat_max, deg_per_unit
            For coordinates that are degrees: the largest latitude, and the degrees in a unit of the file.

        Raises
        ------
        MapError
            If one is not a number within its limits.
        """
        if self.unit_m is not None:
            x = row.number(columns.x, -COORDINATE_MAX, COORDINATE_MAX)
            return x, row.number(columns.y, -COORDINATE_MAX, COORDINATE_MAX)
        hint = (
            f"{_UNIT_NAMES.get(deg_per_unit, '')} degrees; coordinates other than degrees need --unit-m"
        )
        x_max, y_max = LONGITUDE_MAX_DEG / deg_per_unit, lat_max / deg_per_unit
        x = row.number(columns.x, -x_max, x_max, hint)
        return x * deg_per_unit, row.number(columns.y, -y_max, y_max, hint) * deg_per_unit
