"""Synthetic objects: keywords by Zipf's law, positions in clusters. Nothing is read.

The keyword of rank r is as frequent as r to the power of -s, by the inverse of the continuous
distribution: a rank is drawn from the real numbers between 1 and one more than there are keywords, and
rounded down.
Clusters lie anywhere in the service area; the first are the largest.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from safe_region.earth.frame import Frame
from simulator.chance import uniform
from simulator.parameters import SimulationParameters
from simulator.workload.arrivals import scattered

TABLE = "synthetic"

_POPULARITY = 1.5
"""Exponent that favours clusters of small number."""

_MARGIN = 0.05
"""Centres of clusters are at least this fraction of the area away from the border."""


def synthetic_columns(frame: Frame, parameters: SimulationParameters) -> dict[str, Column]:
    """Return lon, lat and keywords of an object, from its `id`."""
    lon, lat = _middle(cluster(parameters), frame, parameters)
    lon, lat = scattered(lon, lat, parameters.cluster_m, frame, parameters.seed, TABLE)
    return {"lon": lon, "lat": lat, "keywords": _keywords(parameters)}


def cluster(parameters: SimulationParameters) -> Column:
    """Return the cluster of an object, from its `id`."""
    drawn = F.pow(uniform(parameters.seed, TABLE, "cluster", F.col("id")), F.lit(_POPULARITY))
    return (drawn * F.lit(parameters.clusters)).cast("long")


def clusters(numbers: DataFrame, frame: Frame, parameters: SimulationParameters) -> DataFrame:
    """Return the centres of clusters: spot, lon and lat, a row for each id."""
    lon, lat = _middle(F.col("id"), frame, parameters)
    return numbers.select(F.col("id").alias("spot"), lon.alias("lon"), lat.alias("lat"))


def _middle(number: Column, frame: Frame, parameters: SimulationParameters) -> tuple[Column, Column]:
    area, low, span = frame.area, _MARGIN, 1.0 - 2.0 * _MARGIN
    east, north = (
        uniform(parameters.seed, TABLE, name, number) * F.lit(span) + F.lit(low)
        for name in ("lon", "lat")
    )
    return (
        F.lit(area.lon_min) + east * F.lit(area.lon_max - area.lon_min),
        F.lit(area.lat_min) + north * F.lit(area.lat_max - area.lat_min),
    )


def _keywords(parameters: SimulationParameters) -> Column:
    """Return some distinct keywords: a uniform number of draws, with the requested mean."""
    row = F.col("id")
    most = 2.0 * parameters.object_keywords_mean - 1.0
    count = (uniform(parameters.seed, TABLE, "count", row) * F.lit(most)).cast("int") + 1
    return F.array_distinct(
        F.transform(
            F.sequence(F.lit(1), count),
            lambda place: F.format_string(
                "word%d", rank(uniform(parameters.seed, TABLE, "word", row, place), parameters)
            ),
        )
    )


def rank(chance: Column, parameters: SimulationParameters) -> Column:
    """Return a rank from 1 by Zipf's law, from a number in [0, 1)."""
    last, power = parameters.vocabulary + 1.0, 1.0 - parameters.zipf
    if abs(power) < 1e-9:  # noqa: PLR2004 - the limit of the other formula
        drawn = F.exp(chance * F.log(F.lit(last)))
    else:
        drawn = F.pow(chance * F.lit(last**power - 1.0) + 1.0, F.lit(1.0 / power))
    return F.least(drawn.cast("long"), F.lit(parameters.vocabulary))
