"""The tables of a simulation: the one place that names their columns.

The tables
----------
roads
    Directed edges of the street network; a two-way street is two rows. Edges are straight.
places
    Points of interest; the smaller the id, the more popular the place.
texts
    Texts that are published instead of words of places; exists only in this case. Rows are in the order
    in which they are first published, except for the times.
restrictions
    Forbidden turns: `edge_id_to` must not follow `edge_id_from`. Sorted by both.
devices
    The devices, sorted by device_id: `device_class` (car, bicycle, pedestrian, or the class of traces)
    and `speed_mps_max`, the maximum speed; null if it is unknown.
trajectories
    The position of a device at each tick from its first to its last, without gaps; a device need not be
    present during the whole run. `edge_id` is its road, null if it was not made or matched on one.
    Divided into slices, folders of `slice_ticks` ticks each (`world.json`), so that a replay reads one
    after the other; within a slice rows are in any order.
loads
    The mean number of cars on a road in a slot of time of `load_slot_s`, if no car slowed others down;
    exists only if speeds depend on load. Roads without a car are left out.
objects
    Published objects, sorted by (publish_ms, object_key). Times count from the start of the run; a
    second row with the same key replaces the first.
subscriptions
    The subscriptions of each device. Those of kind `top_k` have keywords, k, alpha and similarity; they
    are stationary at `place` (lon, lat), or move with the device if it is null. Those of kind `boolean`
    have an expression and a range: `bounds` (lon_min, lat_min, lon_max, lat_max), or a circle of
    `radius_m` about `center` (lon, lat), or about the device if that is null, or a rectangle of
    `extent_m` (width, height) about the device. If `window_ms` or `window_count` is not null, only
    objects of the last milliseconds, or the last objects published, count.
idf
    The number of objects that have each keyword, the source of weights for the similarity `tfidf`.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

_KEYWORDS = ArrayType(StringType())  # Parquet files written by Spark do not declare "never null"


_NUMBERS = ArrayType(DoubleType())


def _table(*columns: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, kind, nullable=False) for name, kind in columns])


def _with_nulls(table: StructType, *columns: tuple[str, DataType]) -> StructType:
    for name, kind in columns:
        table.add(name, kind, nullable=True)
    return table


ROADS = _table(
    ("edge_id", LongType()),
    ("source", LongType()),
    ("target", LongType()),
    ("road_class", StringType()),
    ("speed_mps", DoubleType()),
    ("length_m", DoubleType()),
    ("source_lon", DoubleType()),
    ("source_lat", DoubleType()),
    ("target_lon", DoubleType()),
    ("target_lat", DoubleType()),
)

PLACES = _table(
    ("place_id", LongType()),
    ("lon", DoubleType()),
    ("lat", DoubleType()),
    ("name", StringType()),
    ("category", StringType()),
    ("keywords", _KEYWORDS),
)

RESTRICTIONS = _table(("edge_id_from", LongType()), ("edge_id_to", LongType()))

DEVICES = _with_nulls(
    _table(("device_id", StringType()), ("device_class", StringType())), ("speed_mps_max", DoubleType())
)

TRAJECTORIES = _with_nulls(
    _table(
        ("device_id", StringType()),
        ("tick", IntegerType()),
        ("lon", DoubleType()),
        ("lat", DoubleType()),
        ("heading_deg", DoubleType()),
        ("speed_mps", DoubleType()),
    ),
    ("edge_id", LongType()),
)

LOADS = _table(("slot", IntegerType()), ("edge_id", LongType()), ("vehicles", DoubleType()))

PARTIAL_LOADS = _table(("slot", IntegerType()), ("edge_id", LongType()), ("busy_ms", LongType()))
"""The contribution of one group of devices to the loads."""

TEXTS = _table(
    ("text_id", LongType()), ("lon", DoubleType()), ("lat", DoubleType()), ("keywords", _KEYWORDS)
)

OBJECTS = _with_nulls(
    _table(
        ("object_key", StringType()),
        ("publish_ms", LongType()),
        ("lon", DoubleType()),
        ("lat", DoubleType()),
        ("keywords", _KEYWORDS),
        ("ttl_ms", LongType()),
    ),
    ("retract_ms", LongType()),
)

SUBSCRIPTIONS = _with_nulls(
    _table(("device_id", StringType()), ("subscription_id", IntegerType()), ("kind", StringType())),
    ("keywords", _KEYWORDS),
    ("k", IntegerType()),
    ("alpha", DoubleType()),
    ("similarity", StringType()),
    ("place", _NUMBERS),
    ("expression", StringType()),
    ("bounds", _NUMBERS),
    ("center", _NUMBERS),
    ("radius_m", DoubleType()),
    ("extent_m", _NUMBERS),
    ("window_ms", LongType()),
    ("window_count", LongType()),
)

IDF = _table(("keyword", StringType()), ("objects", LongType()))

TABLES: dict[str, StructType] = {
    "roads": ROADS,
    "restrictions": RESTRICTIONS,
    "places": PLACES,
    "devices": DEVICES,
    "trajectories": TRAJECTORIES,
    "objects": OBJECTS,
    "subscriptions": SUBSCRIPTIONS,
    "idf": IDF,
}
"""Every table that a simulation always has, by the name of its folder."""

MORE_TABLES: dict[str, StructType] = {"texts": TEXTS, "loads": LOADS}
"""Tables that only some simulations have."""

TRACE_TABLES = ("points", "traces")
"""Additional tables of a simulation made from traces; `simulator.traces` names their columns."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return to_arrow_schema(schema)
