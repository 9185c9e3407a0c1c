"""The surroundings of traces: the map, or without a map the area of nearly all points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from safe_region.earth.frame import LATITUDE_MAX_DEG, LONGITUDE_MAX_DEG, Area, Frame
from simulator import schemas
from simulator.city.places import described
from simulator.maps.placement import SPAN_DEG_MAX
from simulator.maps.reading import area_about
from simulator.parameters.traces import TraceParameters
from simulator.terrain import Terrain, Texts
from simulator.traces.cleaning import has_position, is_in_time
from simulator.traces.errors import TraceError
from simulator.traces.points import ORDER, Verdict

OUTLIERS = 0.001
"""Without a map, points are outside if they lie beyond this fraction of the points on one side, by
more than half of the width of the others: the errors of receivers can span countries."""

_BEYOND = 0.5
_BEYOND_DEG_MIN = 0.02
_PLACES = 3
"""Digits of degrees when quantiles are counted: few distinct values, for any number of points."""


class Survey(NamedTuple):
    """Statistics of points before they are classified.

    Parameters
    ----------
    points
        The number of points.
    timed
        The number of those within the requested time.
    located
        The number of these with a position.
    lons, lats
        The minimum and the maximum in the files; None for none.
    area
        The area of nearly all points, with a margin; None if none has a position.
    """

    points: int
    timed: int
    located: int
    lons: tuple[float | None, float | None]
    lats: tuple[float | None, float | None]
    area: Area | None


def survey(points: DataFrame, parameters: TraceParameters) -> Survey:
    """Compute the statistics of points. Two passes over the files.

    Parameters
    ----------
    points
        In the schema `RAW`.
    parameters
        Which times count.
    """
    good = has_position() & is_in_time(parameters)
    shares = F.array(F.lit(OUTLIERS), F.lit(1.0 - OUTLIERS))
    rounded = {
        name: F.percentile(F.when(good, F.round(name, _PLACES)), shares) for name in ("lon", "lat")
    }
    first = points.agg(
        F.count("*").alias("points"),
        F.count_if(is_in_time(parameters)).alias("timed"),
        F.count_if(good).alias("located"),
        *(F.min(F.nanvl(name, F.lit(None))).alias(f"{name}_min") for name in ("lon", "lat")),
        *(F.max(F.nanvl(name, F.lit(None))).alias(f"{name}_max") for name in ("lon", "lat")),
        *(column.alias(f"{name}_shares") for name, column in rounded.items()),
    ).first()
    area = None
    if first is not None and first["located"]:
        wide = {name: _wider(*first[f"{name}_shares"]) for name in ("lon", "lat")}
        inside = good
        for name, (low, high) in wide.items():
            inside &= F.col(name).between(low, high)
        second = points.where(inside).agg(F.min("lon"), F.max("lon"), F.min("lat"), F.max("lat")).first()
        area = None if second is None else area_about(np.array(second[:2]), np.array(second[2:]))
    if first is None:
        return Survey(0, 0, 0, (None, None), (None, None), None)
    return Survey(
        first["points"],
        first["timed"],
        first["located"],
        (first["lon_min"], first["lon_max"]),
        (first["lat_min"], first["lat_max"]),
        area,
    )


def _wider(low: float, high: float) -> tuple[float, float]:
    more = max(_BEYOND * (high - low), _BEYOND_DEG_MIN)
    return low - more, high + more


def checked_area(found: Survey, paths: Sequence[Path], parameters: TraceParameters) -> Area:
    """Return the area of a survey.

    Raises
    ------
    TraceError
        If there are no points, or none with a time or a position, or they are all over the Earth.
    """
    shown = ", ".join(str(path) for path in paths)
    if not found.points:
        raise TraceError(f"{shown}: no points")
    if not found.timed:
        condition = " is in the requested time" if parameters.begin or parameters.end else " has a time"
        raise TraceError(f"{shown}: of {found.points} points none{condition}")
    if found.area is None:
        (west, east), (south, north) = found.lons, found.lats
        raise TraceError(
            f"{shown}: of {found.points} points none has a valid position: longitudes are {_text(west)} "
            f"to {_text(east)}, must be within -{LONGITUDE_MAX_DEG:g}..{LONGITUDE_MAX_DEG:g}, latitudes "
            f"{_text(south)} to {_text(north)}, must be within "
            f"-{LATITUDE_MAX_DEG:g}..{LATITUDE_MAX_DEG:g} degrees; the only other unit is millionths of "
            "degrees, in columns with names that end in _e6"
        )
    area = parameters.chosen_area or found.area
    width_deg = area.lon_max - area.lon_min
    if width_deg > SPAN_DEG_MAX:
        spanning = "points span" if parameters.area is None else "the area spans"
        raise TraceError(
            f"{shown}: {spanning} {width_deg:.0f} degrees of longitude, must span at most "
            f"{SPAN_DEG_MAX:g}: select a part with --area west,south,east,north, within longitudes "
            f"{_text(area.lon_min)} to {_text(area.lon_max)}, latitudes {_text(area.lat_min)} to "
            f"{_text(area.lat_max)}"
        )
    return area


def _text(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def bare_terrain(
    points: DataFrame, area: Area, parameters: TraceParameters, name: str, texts: Texts | None
) -> Terrain:
    """Return the terrain of traces without a map: no roads, places drawn from the points of traces.

    Parameters
    ----------
    points
        In the schema `POINTS`.
    area
        Their area.
    parameters
        Seed and number of places.
    name
        A display name.
    texts
        The texts that are published in place of words of places; None for none.
    """
    frame = Frame.of(area)
    order = F.xxhash64(F.lit(parameters.seed), "source", *ORDER, "lon", "lat")
    kept = points.where(F.col("verdict") == Verdict.KEPT.value)
    drawn = (
        kept.select("lon", "lat", order.alias("order"), "source", *ORDER)
        .orderBy("order", "source", *ORDER)
        .limit(parameters.places)
        .toArrow()
    )
    ids = np.arange(drawn.num_rows)
    xs_m = (drawn["lon"].to_numpy() - frame.lon0_deg) * frame.x_m_per_deg
    ys_m = (drawn["lat"].to_numpy() - frame.lat0_deg) * frame.y_m_per_deg
    return Terrain(
        name=parameters.name or name,
        area=area,
        roads=_nothing(),
        places=described(ids, xs_m, ys_m, frame, parameters.seed),
        water=[],
        texts=texts,
    )


def _nothing() -> pa.Table:
    return schemas.arrow_schema(schemas.ROADS).empty_table()
