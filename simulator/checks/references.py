"""Rules for the tables other than the trajectories: references to ids, times, positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from safe_region.earth.frame import Frame
from simulator.checks.subscriptions import refused
from simulator.workload.objects import keyword_counts
from simulator.world import World

Read = Callable[[str], DataFrame]


def reference_rules(read: Read, world: World, more: frozenset[str]) -> Iterator[tuple[str, DataFrame]]:
    """Yield rules, each with the rows that violate it.

    Parameters
    ----------
    read
        Returns a table by its name.
    world
        Area and times.
    more
        Names of tables that only some simulations have.
    """
    edges = read("roads").select("edge_id")
    yield "roads: edge_id is unique", _repeated(edges, "edge_id")
    yield (
        "roads: length and speed above 0",
        read("roads").where((F.col("length_m") <= 0.0) | (F.col("speed_mps") <= 0.0)),
    )
    devices = read("devices").select("device_id")
    yield "devices: device_id is unique", _repeated(devices, "device_id")
    for column in ("edge_id_from", "edge_id_to"):
        named = read("restrictions").select(F.col(column).alias("edge_id"))
        yield f"restrictions: {column} is in roads", _without(named, edges, "edge_id")
    if "loads" in more:
        yield "loads: edge_id is in roads", _without(read("loads"), edges, "edge_id")
    yield "places: place_id is unique", _repeated(read("places"), "place_id")
    yield "places: within the area", read("places").where(~_is_within(world))
    yield from _subscription_rules(read("subscriptions"), devices, world)
    yield from _object_rules(read("objects"), world)
    yield "idf: as many objects as have the keyword", _miscounted(read("idf"), read("objects"))


def _subscription_rules(
    wanted: DataFrame, devices: DataFrame, world: World
) -> Iterator[tuple[str, DataFrame]]:
    yield "subscriptions: device_id is in devices", _without(wanted, devices, "device_id")
    yield (
        "subscriptions: device_id and subscription_id are unique",
        _repeated(wanted, "device_id", "subscription_id"),
    )
    yield "subscriptions: a server accepts them", refused(wanted, Frame.of(world.area))


def _object_rules(published: DataFrame, world: World) -> Iterator[tuple[str, DataFrame]]:
    yield (
        "objects: object_key and publish_ms are unique",
        _repeated(published, "object_key", "publish_ms"),
    )
    yield "objects: within the area", published.where(~_is_within(world))
    run_ms = world.seconds * 1000
    yield "objects: published within the run", published.where(~F.col("publish_ms").between(0, run_ms))
    ends_late = F.coalesce(F.col("retract_ms") < F.col("publish_ms"), F.lit(False))
    yield (
        "objects: ttl_ms above 0, and not retracted before publication",
        published.where((F.col("ttl_ms") <= 0) | ends_late),
    )


def _is_within(world: World) -> Column:
    area = world.area
    lon, lat = F.col("lon"), F.col("lat")
    return lon.between(area.lon_min, area.lon_max) & lat.between(area.lat_min, area.lat_max)


def _without(table: DataFrame, others: DataFrame, column: str) -> DataFrame:
    return table.join(others, on=column, how="left_anti")


def _repeated(table: DataFrame, *columns: str) -> DataFrame:
    return table.groupBy(*columns).count().where(F.col("count") > 1)


def _miscounted(idf: DataFrame, published: DataFrame) -> DataFrame:
    """Return the keywords with another number of objects, and those that only one side has."""
    counted = keyword_counts(published).withColumnRenamed("objects", "found")
    joined = idf.join(counted, on="keyword", how="full_outer")
    return joined.where(~F.col("objects").eqNullSafe(F.col("found")))
