"""The meaning of columns of files of points, by name, and their conversion to times and degrees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from simulator.traces.errors import TraceError

_TIMES = (
    "time",
    "t",
    "timestamp",
    "datetime",
    "date_time",
    "time_utc",
    "utc",
    "unix_time",
    "unixtime",
    "epoch",
)
_UNITS = {"_ms": 1.0, "_s": 1e3, "_us": 1e-3}
_LONS = ("lon", "lng", "long", "longitude", "x")
_LATS = ("lat", "latitude", "y")
_SCALES = {"_e6": 1e-6, "_e7": 1e-7, "_deg": 1.0}
_VEHICLES = (
    "vehicle", "vehicle_id", "cab", "cab_id", "taxi", "taxi_id", "device", "device_id", "user", "user_id",
    "driver", "driver_id", "id",
)  # fmt: skip
_TRIPS = (
    "trip", "trip_id", "trajectory", "trajectory_id", "traj_id", "track", "track_id", "segment",
)  # fmt: skip
_POLYLINES = ("polyline",)
VEHICLES_TEXT = f"its name would be one of {', '.join(_VEHICLES)}"

_YEAR_10000_MS = 253_402_300_800_000
"""Times from then on are invalid."""

SECONDS_MAX, MS_MAX = 1e11, 1e14
"""Numbers up to the first are seconds, up to the second milliseconds, above microseconds, if the name of
a column has no unit. The first is the year 5138 in seconds, and March 1973 in milliseconds."""


_DATED = r"^\s*\d{4}-"


class Meaning(NamedTuple):
    """The column for each quantity; None if there is none.

    Parameters
    ----------
    time, lon, lat, vehicle, trip
        Names as in the file.
    polyline
        A column with a whole trip: a JSON list of [lon, lat] each.
    """

    time: str
    lon: str | None
    lat: str | None
    vehicle: str | None
    trip: str | None
    polyline: str | None = None


def meaning_of(path: Path, names: Sequence[str]) -> Meaning:
    """Return the meaning of a file's columns. Case does not matter; the first name that fits counts.

    Raises
    ------
    TraceError
        If there is no column for the time or for the position.
    """
    by_name = {name.strip().lower(): name for name in reversed(names)}

    def find(known: Sequence[str], endings: Sequence[str] = ()) -> str | None:
        allowed = (one + ending for one in known for ending in ("", *endings))
        return next((by_name[one] for one in allowed if one in by_name), None)

    def require(found: str | None, what: str, known: Sequence[str]) -> str:
        if found is None:
            raise TraceError(
                f"{path}: no column for {what}: must be one of {', '.join(known)}; there are "
                f"{', '.join(names)}. Files without a header need --columns"
            )
        return found

    polyline = find(_POLYLINES)
    time = require(find(_TIMES, tuple(_UNITS)), "the time", _TIMES)
    lon, lat = find(_LONS, tuple(_SCALES)), find(_LATS, tuple(_SCALES))
    if polyline is None:
        lon, lat = require(lon, "the longitude", _LONS), require(lat, "the latitude", _LATS)
    return Meaning(time, lon, lat, find(_VEHICLES), find(_TRIPS), polyline)


def time_ms(name: str, kind: str) -> Column:
    """Return epoch milliseconds of timestamps, numbers, and texts with numbers or ISO 8601; else null.

    Parameters
    ----------
    name
        The name of the column. The suffixes `_s`, `_ms` and `_us` are the unit of numbers.
    kind
        Its type, by Spark's name.
    """
    column = F.col(f"`{name}`")
    if kind in {"timestamp", "timestamp_ntz", "date"}:
        return F.unix_millis(column.cast("timestamp"))
    number = column.try_cast("double")
    factor = next((F.lit(one) for end, one in _UNITS.items() if name.lower().endswith(end)), None)
    if factor is None:
        size = F.abs(number)
        factor = F.when(size < SECONDS_MAX, 1e3).when(size < MS_MAX, 1.0).otherwise(1e-3)
    found = number * factor
    is_time = (found >= 0.0) & (found < float(_YEAR_10000_MS))
    of_number = F.when(is_time, F.round(found).cast("long"))
    if kind != "string":
        return of_number
    # Spark gives a text with only a time of day the day on which it runs.
    of_text = F.when(column.rlike(_DATED), F.unix_millis(column.try_cast("timestamp")))
    return F.when(number.isNotNull(), of_number).otherwise(of_text)


def degrees(name: str) -> Column:
    """Return degrees; the suffixes `_e6` and `_e7` of a name are the fraction of a degree in a unit."""
    scale = next((one for end, one in _SCALES.items() if name.lower().endswith(end)), 1.0)
    number = F.col(f"`{name}`").try_cast("double")
    return number if scale == 1.0 else number * F.lit(scale)
