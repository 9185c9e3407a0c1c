"""The subscriptions of devices: words of objects.

Top-k subscriptions follow section 7.1 of the Lamps paper: a uniform k and a uniform preference. Some of
them are stationary, as Skype's are, at the place of the object whose words they take; the others move
with their devices. Boolean ones follow section 5.1.1 of the AP-Tree paper: a range about the object whose
words they take, with a uniform fraction of the service area. Half of the ranges are fixed rectangles, a
quarter fixed circles; the others move with the device, as circles or, every third, as rectangles. Most
expressions require all words; some require one part of them or the other, some exclude an offer. Some
subscriptions of both kinds have a window, half of these of time. Parameters set all these fractions.
"""

from __future__ import annotations

import math

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nearcast.limits import DEFAULT_LIMITS, LON_MAX_DEG
from safe_region.earth.frame import Frame
from simulator.chance import uniform
from simulator.parameters import SimulationParameters
from simulator.workload.objects import OFFER_WORDS, object_count, subset

TOP_K = "top_k"
BOOLEAN = "boolean"

_WIDER = 1.1
"""Moving rectangles are wider than squares by this factor, and lower."""

RANGE_M_MAX = DEFAULT_LIMITS.range_m_max
"""A server accepts no circle with a larger radius. In large areas, larger ranges, rectangles too, are
reduced to this size."""

WINDOWS_S = (60, 300, 900)
WINDOW_COUNTS = (300, 1_000, 3_000)
"""Windows of subscriptions: few different ones, as a server prefers."""


def subscriptions(
    published: DataFrame, numbers: DataFrame, frame: Frame, parameters: SimulationParameters
) -> DataFrame:
    """Return the subscriptions of devices.

    Parameters
    ----------
    published
        The objects table.
    numbers
        One int64 column `id`: 0 to devices * subscriptions per device.
    frame
        The service area.
    parameters
        Seed and bounds.
    """
    row = F.col("id")

    def draw(column: str) -> Column:
        return uniform(parameters.seed, "subscriptions", column, row)

    per_device = F.lit(parameters.subscriptions_per_device)
    pick = (draw("object") * F.lit(object_count(parameters))).cast("long")
    keyed = numbers.select(row, F.format_string("object-%07d", pick).alias("object_key"))
    firsts = published.groupBy("object_key").agg(
        *(F.min_by(name, "publish_ms").alias(name) for name in ("keywords", "lon", "lat"))
    )
    most = F.least(F.size("keywords"), F.lit(parameters.subscription_keywords_max))
    least = F.least(most, F.lit(parameters.subscription_keywords_min))
    taken = (draw("keywords") * (most - least + 1)).cast("int") + least
    k_span = parameters.k_max - parameters.k_min + 1
    alpha = F.least(F.greatest(draw("alpha"), F.lit(parameters.alpha_min)), F.lit(parameters.alpha_max))
    drawn = keyed.join(firsts, on="object_key", how="inner").select(
        row,
        "lon",
        "lat",
        subset(F.col("keywords"), taken, row).alias("words"),
        (draw("kind") < parameters.boolean_share).alias("is_boolean"),
        _between(draw("area"), parameters.range_area_min, parameters.range_area_max).alias("share"),
        draw("shape").alias("shape"),
        draw("aspect").alias("aspect"),
        draw("form").alias("form"),
        draw("excluded").alias("excluded"),
    )
    is_boolean = F.col("is_boolean")
    is_stationary = ~is_boolean & (draw("standing") < parameters.stationary_share)
    return drawn.select(
        F.format_string("device-%06d", F.floor(row / per_device)).alias("device_id"),
        (row % per_device + 1).cast("int").alias("subscription_id"),
        F.when(is_boolean, BOOLEAN).otherwise(TOP_K).alias("kind"),
        F.when(~is_boolean, F.col("words")).alias("keywords"),
        F.when(~is_boolean, (draw("k") * F.lit(k_span)).cast("int") + parameters.k_min).alias("k"),
        F.when(~is_boolean, alpha).alias("alpha"),
        F.when(~is_boolean & (draw("weighed") < parameters.tfidf_share), "tfidf")
        .when(~is_boolean, parameters.similarity)
        .alias("similarity"),
        F.when(is_stationary, F.array("lon", "lat")).alias("place"),
        F.when(is_boolean, _expression(parameters)).alias("expression"),
        *_range(frame, parameters),
        *_window(draw("window"), draw("length"), parameters),
    )


def _window(chosen: Column, length: Column, parameters: SimulationParameters) -> tuple[Column, ...]:
    """Return the columns of windows: of time, of count, or neither."""
    share = parameters.window_share
    window_s, count = parameters.window_s, parameters.window_count
    if window_s is not None or count is not None:
        values = {
            "window_ms": None if window_s is None else round(window_s * 1000.0),
            "window_count": count,
        }
        return tuple(
            F.when(chosen < share, F.lit(value)).cast("long").alias(name)
            for name, value in values.items()
        )
    times, counts = (
        F.array(*(F.lit(value).cast("long") for value in values))
        for values in ([one * 1000 for one in WINDOWS_S], WINDOW_COUNTS)
    )
    window_ms = F.get(times, (length * F.lit(len(WINDOWS_S))).cast("int"))
    window_count = F.get(counts, (length * F.lit(len(WINDOW_COUNTS))).cast("int"))
    return (
        F.when(chosen < share / 2.0, window_ms).alias("window_ms"),
        F.when((chosen >= share / 2.0) & (chosen < share), window_count).alias("window_count"),
    )


def _between(share: Column, low: float, high: float) -> Column:
    return share * F.lit(high - low) + F.lit(low)


def _clamped(lon: Column) -> Column:
    """Return a longitude, or the last one where it is beyond; null where it is null."""
    most = F.lit(LON_MAX_DEG)
    return F.when(lon < -most, -most).when(lon > most, most).otherwise(lon)


def _joined(words: Column, operator: str) -> Column:
    """Return keywords as an expression, each in quotes: a word may be equal to an operator."""
    escaped = F.transform(words, lambda word: F.regexp_replace(word, r'(["\\])', r"\\$1"))
    quoted = F.transform(escaped, lambda word: F.concat(F.lit('"'), word, F.lit('"')))
    return F.array_join(quoted, f" {operator} ")


def _expression(parameters: SimulationParameters) -> Column:
    """Return expressions: all words, one part or the other, or all but not some offer."""
    words, form = F.col("words"), F.col("form")
    everything = _joined(words, "AND")
    half = F.ceil(F.size(words) / 2).cast("int")
    parts = (F.slice(words, F.lit(1), half), F.slice(words, half + 1, F.size(words) - half))
    either = F.concat_ws(" OR ", *(_joined(part, "AND") for part in parts))
    offers = F.filter(
        F.array(*(F.lit(word) for word in OFFER_WORDS)), lambda word: ~F.array_contains(words, word)
    )
    excluded = F.get(offers, (F.col("excluded") * F.size(offers)).cast("int"))
    without = F.concat(everything, F.lit(" AND NOT "), _joined(F.array(excluded), "AND"))
    return (
        F.when((form < parameters.either_share) & (F.size(words) > 1), either)
        .when(form >= 1.0 - parameters.excluding_share, without)
        .otherwise(everything)
    )


def _range(frame: Frame, parameters: SimulationParameters) -> tuple[Column, ...]:
    """Return the columns of ranges: bounds; a radius, and a center if it is fixed; or an extent."""
    area = frame.area
    width_m = (area.lon_max - area.lon_min) * frame.x_m_per_deg
    height_m = (area.lat_max - area.lat_min) * frame.y_m_per_deg
    side_m_max = RANGE_M_MAX * math.sqrt(math.pi)
    side_m = F.least(F.sqrt(F.col("share") * F.lit(width_m * height_m)), F.lit(side_m_max))
    radius_m = F.least(side_m / math.sqrt(math.pi), F.lit(RANGE_M_MAX))
    lon, lat = F.col("lon"), F.col("lat")
    # The logarithm of the aspect ratio is uniform.
    aspect = F.pow(F.lit(parameters.range_aspect_max), F.col("aspect") - F.lit(0.5))
    width, height = (
        F.least(side_m * aspect, F.lit(side_m_max)),
        F.least(side_m / aspect, F.lit(side_m_max)),
    )
    half_lon, half_lat = width / (2.0 * frame.x_m_per_deg), height / (2.0 * frame.y_m_per_deg)
    is_boolean, shape = F.col("is_boolean"), F.col("shape")
    # Areas end farther from the poles than ranges reach.
    west, east = _clamped(lon - half_lon), _clamped(lon + half_lon)
    bounds = F.array(west, lat - half_lat, east, lat + half_lat)
    fixed_share = 1.0 - parameters.moving_share
    is_rectangle = shape < fixed_share * parameters.fixed_rectangle_share
    is_fixed = shape < fixed_share
    is_extent = ~is_fixed & (shape >= 1.0 - parameters.moving_share * parameters.moving_rectangle_share)
    extent = F.array(F.lit(_WIDER) * side_m, side_m / F.lit(_WIDER))
    return (
        F.when(is_boolean & is_rectangle, bounds).alias("bounds"),
        F.when(is_boolean & ~is_rectangle & is_fixed, F.array(lon, lat)).alias("center"),
        F.when(is_boolean & ~is_rectangle & ~is_extent, radius_m).alias("radius_m"),
        F.when(is_boolean & is_extent, extent).alias("extent_m"),
    )
