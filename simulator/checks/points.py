"""Rules for single positions, as column expressions over positions, roads and devices."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from safe_region.earth.frame import Frame
from simulator.network.traffic import DEVICE_CLASSES, TRACE_CLASS
from simulator.world import World

OFF_EDGE_M_MAX = 1.0
"""The maximum distance of a position from its road."""

_TOLERANCE = 1.0 + 1e-6
"""Speeds are quotients, rounded more than once."""

POINT_RULES = (
    "positions: device_id is in devices",
    "positions: edge_id is in roads, null only for traces",
    "positions: at most 1 m from their road",
    "positions: within the area",
    "positions: no faster than road and class allow",
    "positions: no faster than the device may be",
    "positions: tick within the run, and in its slice",
    "positions: on roads that are open to the class",
)
"""Rule i is bit i of the column `faults`."""


def judged_points(
    trajectories: DataFrame, roads: DataFrame, devices: DataFrame, world: World
) -> DataFrame:
    """Return positions on the plane with the rules that each violates.

    Parameters
    ----------
    trajectories
        The table, with the column slice of its folders.
    roads, devices
        The tables; broadcast.
    world
        Area, period, slices and parameters.

    Returns
    -------
    DataFrame
        device_id, tick, x_m, y_m, speed_mps_max, edge_id (null for none), before_s and after_s (the time
        that the device needs from the start of its road to its position, and on to the end; null without
        a road or if it stands still), faults (bits, see `POINT_RULES`).
    """
    frame = Frame.of(world.area)
    is_known = F.lit(True).alias("is_known")
    known = devices.select("device_id", "device_class", "speed_mps_max", is_known)
    on = roads.select(
        "edge_id",
        "road_class",
        F.col("speed_mps").alias("road_mps"),
        "length_m",
        *_plane(frame, "source", "from"),
        *_plane(frame, "target", "to"),
    )
    joined = (
        trajectories.join(F.broadcast(known), on="device_id", how="left")
        .join(F.broadcast(on), on="edge_id", how="left")
        .withColumn("x_m", (F.col("lon") - frame.lon0_deg) * frame.x_m_per_deg)
        .withColumn("y_m", (F.col("lat") - frame.lat0_deg) * frame.y_m_per_deg)
        .withColumn("share", _share())
    )
    bits = [F.when(rule, F.lit(1 << bit)).otherwise(F.lit(0)) for bit, rule in enumerate(_rules(world))]
    took_s = F.when(F.col("speed_mps") > 0.0, F.col("length_m") / F.col("speed_mps"))
    return joined.select(
        "device_id",
        "tick",
        "x_m",
        "y_m",
        "speed_mps_max",
        "edge_id",
        (F.col("share") * took_s).alias("before_s"),
        ((F.lit(1.0) - F.col("share")) * took_s).alias("after_s"),
        sum(bits[1:], bits[0]).alias("faults"),
    )


def _plane(frame: Frame, end: str, name: str) -> tuple[Column, Column]:
    """Return the end of a road on the plane."""
    x_m = (F.col(f"{end}_lon") - frame.lon0_deg) * frame.x_m_per_deg
    y_m = (F.col(f"{end}_lat") - frame.lat0_deg) * frame.y_m_per_deg
    return x_m.alias(f"{name}_x_m"), y_m.alias(f"{name}_y_m")


def _share() -> Column:
    """Return the fraction of the road before the position, at the point of the road nearest to it."""
    dx_m, dy_m = F.col("to_x_m") - F.col("from_x_m"), F.col("to_y_m") - F.col("from_y_m")
    dot = (F.col("x_m") - F.col("from_x_m")) * dx_m + (F.col("y_m") - F.col("from_y_m")) * dy_m
    square = dx_m * dx_m + dy_m * dy_m
    return F.least(F.lit(1.0), F.greatest(F.lit(0.0), F.when(square > 0.0, dot / square).otherwise(0.0)))


def _rules(world: World) -> tuple[Column, ...]:
    """Return for each rule the condition of a violation; null counts as false."""
    area = world.area
    off_x_m = F.col("from_x_m") + F.col("share") * (F.col("to_x_m") - F.col("from_x_m")) - F.col("x_m")
    off_y_m = F.col("from_y_m") + F.col("share") * (F.col("to_y_m") - F.col("from_y_m")) - F.col("y_m")
    off_m = F.sqrt(off_x_m * off_x_m + off_y_m * off_y_m)
    is_within = F.col("lon").between(area.lon_min, area.lon_max)
    is_within &= F.col("lat").between(area.lat_min, area.lat_max)
    velocity = float(world.parameters.get("velocity") or 1.0)
    factor, is_trace = _factor(), F.col("device_class") == TRACE_CLASS
    edge, tick = F.col("edge_id"), F.col("tick")
    return (
        F.col("is_known").isNull(),
        F.when(edge.isNull(), ~is_trace).otherwise(F.col("length_m").isNull()),
        off_m > OFF_EDGE_M_MAX,
        ~is_within,
        F.col("speed_mps") > F.col("road_mps") * factor * F.lit(velocity * _TOLERANCE),
        (F.col("speed_mps") < 0.0) | (F.col("speed_mps") > F.col("speed_mps_max") * F.lit(_TOLERANCE)),
        ~tick.between(0, world.tick_count - 1) | (F.floor(tick / world.slice_ticks) != F.col("slice")),
        F.col("length_m").isNotNull() & ~is_trace & factor.isNull(),
    )


def _factor() -> Column:
    """Return by what the speed of the road is multiplied for the class; null if it is closed to it."""
    factor = F.lit(None).cast("double")
    for one in DEVICE_CLASSES:
        is_one = F.col("device_class").rlike(f"^{one.name}(-[0-9]+)?$")
        is_open = F.col("road_class").isin([road.value for road in one.roads])
        factor = F.when(is_one & is_open, F.lit(one.factor)).otherwise(factor)
    return factor
