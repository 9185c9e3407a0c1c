"""The arrival times of objects: a Poisson process, with a daily rhythm and hot spots.

Given the number of arrivals, the times of a Poisson process are independent, each with the density of its
rate, and they are drawn so. A rhythm has a weight for each hour of UTC, 1 in the mean of a day. A hot
spot is a place where more objects arrive for some time.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from safe_region.earth.frame import Frame
from simulator.chance import generator, uniform
from simulator.parameters import SimulationParameters

_HOUR_MS = 3_600_000

_WEIGHTS = (6, 4, 3, 2, 2, 4, 8, 14, 22, 26, 28, 32, 38, 36, 30, 28, 30, 36, 46, 52, 48, 38, 24, 12)
"""By hour of the day: low at night, higher at noon, highest in the evening."""


class Piece(NamedTuple):
    """A part of the run with one rate."""

    begin_ms: int
    end_ms: int
    weight: float


def pieces(parameters: SimulationParameters) -> list[Piece]:
    """Divide the run at the changes of the rate."""
    if parameters.rhythm == "flat":
        return [Piece(0, parameters.run_ms, 1.0)]
    mean = sum(_WEIGHTS) / len(_WEIGHTS)
    start_ms, end_ms = parameters.start_ms, parameters.start_ms + parameters.run_ms
    found = []
    for hour in range(start_ms // _HOUR_MS, -(-end_ms // _HOUR_MS)):
        begin_ms, stop_ms = max(start_ms, hour * _HOUR_MS), min(end_ms, (hour + 1) * _HOUR_MS)
        weight = _WEIGHTS[hour % len(_WEIGHTS)] / mean
        found.append(Piece(begin_ms - start_ms, stop_ms - start_ms, weight))
    return found


def arrival_count(parameters: SimulationParameters) -> int:
    """Draw the number of objects that are published during the run: a Poisson number."""
    weighted_ms = sum((one.end_ms - one.begin_ms) * one.weight for one in pieces(parameters))
    mean = parameters.arrivals_per_s * weighted_ms / 1000.0
    return int(generator(parameters.seed, "objects", "arrivals").poisson(mean))


def arrives_ms(parameters: SimulationParameters, chance: Column) -> Column:
    """Return the arrival time of an object, after the start and before the end of the run.

    Parameters
    ----------
    parameters
        Rhythm and length of the run.
    chance
        Uniform in [0, 1).
    """
    run_ms = parameters.run_ms
    if parameters.rhythm == "flat":
        return (chance * F.lit(run_ms - 1)).cast("long") + 1
    parts = pieces(parameters)
    sizes = [(one.end_ms - one.begin_ms) * one.weight for one in parts]
    befores = [sum(sizes[:number]) for number in range(len(parts))]
    reached = chance * F.lit(sum(sizes))
    number = F.size(F.filter(_array(befores), lambda before: before <= reached)) - 1
    begin_ms, before, weight = (
        F.get(_array(values), number)
        for values in ([one.begin_ms for one in parts], befores, [one.weight for one in parts])
    )
    drawn = (begin_ms + (reached - before) / weight).cast("long")
    return F.least(F.greatest(drawn, F.lit(1)), F.lit(max(1, run_ms - 1)))


def hot_spot(parameters: SimulationParameters, row: Column) -> Column:
    """Return the number of the hot spot at which an object arrives; null if at none."""
    number = uniform(parameters.seed, "objects", "hot_spot", row) * F.lit(parameters.hot_spots)
    is_hot = uniform(parameters.seed, "objects", "hot", row) < F.lit(parameters.hot_share)
    is_hot = is_hot & (row >= parameters.objects) & F.lit(parameters.hot_spots > 0)
    return F.when(is_hot, number.cast("int"))


def arrives_at_hot_spot_ms(parameters: SimulationParameters, number: Column, chance: Column) -> Column:
    """Return the arrival time of an object at a hot spot, within the time of the hot spot."""
    run_ms = parameters.run_ms
    lasts_ms = min(parameters.hot_spot_s * 1000.0, float(run_ms - 1))
    begin_ms = uniform(parameters.seed, "hot_spots", "begin", number) * F.lit(run_ms - 1 - lasts_ms)
    return (begin_ms + chance * F.lit(lasts_ms)).cast("long") + 1


def at_hot_spots(
    published: DataFrame, sources: DataFrame, count: int, frame: Frame, parameters: SimulationParameters
) -> DataFrame:
    """Move objects of hot spots there.

    Parameters
    ----------
    published
        With columns id, hot_spot, lon and lat.
    sources
        With columns spot, lon and lat: hot spots lie at some of these.
    count
        The number of sources, with spots from 0.
    frame
        The service area; nothing leaves it.
    parameters
        The number of hot spots, and the distance of objects from their centres.
    """
    if not parameters.hot_spots:
        return published
    number = F.col("hot_spot")
    drawn = uniform(parameters.seed, "hot_spots", "place", number) * F.lit(count)
    middles = (
        published.sparkSession.range(parameters.hot_spots)
        .select(F.col("id").cast("int").alias("hot_spot"))
        .withColumn("spot", drawn.cast("long"))
        .join(
            sources.select("spot", F.col("lon").alias("hot_lon"), F.col("lat").alias("hot_lat")), "spot"
        )
        .select("hot_spot", "hot_lon", "hot_lat")
    )
    lon, lat = scattered(
        F.col("hot_lon"), F.col("hot_lat"), parameters.hot_spot_m, frame, parameters.seed, "hot_spots"
    )
    return published.join(F.broadcast(middles), "hot_spot", "left").withColumns(
        {
            "lon": F.when(number.isNull(), F.col("lon")).otherwise(lon),
            "lat": F.when(number.isNull(), F.col("lat")).otherwise(lat),
        }
    )


def scattered(
    lon: Column, lat: Column, spread_m: float, frame: Frame, seed: int, table: str
) -> tuple[Column, Column]:
    """Return normally distributed places about others, within the service area; one for each id."""
    row = F.col("id")
    far_m = F.sqrt(-2.0 * F.log1p(-uniform(seed, table, "far", row))) * F.lit(spread_m)
    turn = uniform(seed, table, "turn", row) * F.lit(2.0) * F.pi()
    area = frame.area
    east = lon + far_m * F.cos(turn) / F.lit(frame.x_m_per_deg)
    north = lat + far_m * F.sin(turn) / F.lit(frame.y_m_per_deg)
    return (
        F.least(F.greatest(east, F.lit(area.lon_min)), F.lit(area.lon_max)),
        F.least(F.greatest(north, F.lit(area.lat_min)), F.lit(area.lat_max)),
    )


def _array(values: list[int] | list[float]) -> Column:
    return F.array(*(F.lit(float(value)) for value in values))
