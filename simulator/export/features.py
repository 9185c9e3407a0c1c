"""Rows of tables with their geometry: points, lines, and a line for each device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from simulator import schemas
from simulator.files import Root
from simulator.tables import SORT_KEYS
from simulator.world import World

POINT, LINE = "Point", "LineString"


class Features(NamedTuple):
    """A table with its geometry.

    Parameters
    ----------
    frame
        The attributes, and `coordinates`: [lon, lat] for points, a list of these for lines.
    kind
        The type of the geometry, in GeoJSON's terms.
    order
        The columns by which rows are sorted.
    """

    frame: DataFrame
    kind: str
    order: tuple[str, ...]


def features(spark: SparkSession, folder: Root, world: World, name: str) -> Features:
    """Return the features of a table.

    Parameters
    ----------
    spark
        The session.
    folder
        The folder of a simulation.
    world
        The simulation's `world.json`.
    name
        One of `TABLES`.
    """
    return _MAKERS[name](spark, folder, world)


def _read(spark: SparkSession, folder: Root, name: str) -> DataFrame:
    return spark.read.schema(schemas.TABLES[name]).parquet(str(folder / name))


def _place(lon: str, lat: str) -> Column:
    return F.array(F.col(lon), F.col(lat))


def _roads(spark: SparkSession, folder: Root, _world: World) -> Features:
    line = F.array(_place("source_lon", "source_lat"), _place("target_lon", "target_lat"))
    ends = ("source_lon", "source_lat", "target_lon", "target_lat")
    frame = _read(spark, folder, "roads").withColumn("coordinates", line).drop(*ends)
    return Features(frame, LINE, SORT_KEYS["roads"])


def _points(name: str) -> Callable[[SparkSession, Root, World], Features]:
    def made(spark: SparkSession, folder: Root, _world: World) -> Features:
        frame = _read(spark, folder, name).withColumn("coordinates", _place("lon", "lat"))
        return Features(frame.drop("lon", "lat"), POINT, SORT_KEYS[name])

    return made


def _trajectories(spark: SparkSession, folder: Root, world: World) -> Features:
    """Return a line for each device; a device with only one tick gets the same position twice."""
    seen = F.sort_array(F.collect_list(F.struct("tick", "lon", "lat")))
    grouped = _read(spark, folder, "trajectories").groupBy("device_id").agg(seen.alias("seen"))
    places = F.transform("seen", lambda one: F.array(one["lon"], one["lat"]))
    whole = F.when(F.size(places) == 1, F.array_repeat(places[0], 2)).otherwise(places)

    def time_ms(tick: Column) -> Column:
        return F.lit(world.start_ms) + tick.cast("long") * F.lit(world.period_ms)

    first, last = F.element_at("seen", 1)["tick"], F.element_at("seen", -1)["tick"]
    classes = _read(spark, folder, "devices").select("device_id", "device_class")
    frame = grouped.select(
        "device_id",
        first.alias("first_tick"),
        last.alias("last_tick"),
        time_ms(first).alias("begin_ms"),
        time_ms(last).alias("end_ms"),
        whole.alias("coordinates"),
    ).join(classes, on="device_id", how="left")
    return Features(frame, LINE, ("device_id",))


_MAKERS: dict[str, Callable[[SparkSession, Root, World], Features]] = {
    "roads": _roads,
    "places": _points("places"),
    "trajectories": _trajectories,
    "objects": _points("objects"),
}

TABLES = tuple(_MAKERS)
"""The tables that can be exported."""
