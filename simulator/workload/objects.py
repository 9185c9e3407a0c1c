"""The published objects.

Objects appear at places, are the texts of a file, or are synthetic: those alive at the start, and a
Poisson process of arrivals (`simulator.workload.arrivals`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from safe_region.earth.frame import Frame
from simulator.chance import uniform
from simulator.parameters import SimulationParameters
from simulator.workload.arrivals import (
    arrival_count,
    arrives_at_hot_spot_ms,
    arrives_ms,
    at_hot_spots,
    hot_spot,
)
from simulator.workload.synthetic import clusters, synthetic_columns

OFFER_WORDS = ("sale", "discount", "twoforone", "freebie", "lastminute", "limited")
"""Words that an object may add to its place's keywords, most usual first."""

POPULARITY = 1.5
"""Exponent that favours places of small id."""

OBJECT_KEYWORDS_MIN = 2
"""Objects take at least this many of their place's keywords."""

RETRACT_MS_MIN = 2_000
"""The minimum time between the publication and the retraction of an object."""


def object_count(parameters: SimulationParameters) -> int:
    """Return the number of distinct object keys."""
    return parameters.objects + arrival_count(parameters)


def _draw(parameters: SimulationParameters, column: str, *ids: Column) -> Column:
    return uniform(parameters.seed, "objects", column, *ids)


def subset(keywords: Column, count: Column, order: Column) -> Column:
    """Take some keywords, those of least hash, in alphabetical order."""
    ranked = F.array_sort(
        F.transform(keywords, lambda word: F.struct(F.xxhash64(order, word), word.alias("word")))
    )
    return F.array_sort(F.transform(F.slice(ranked, 1, count), lambda one: one["word"]))


def _ttl_ms(parameters: SimulationParameters, *ids: Column) -> Column:
    """Return exponential lifetimes, clamped."""
    mean_ms = parameters.ttl_s_mean * 1000.0
    drawn = -F.log1p(-_draw(parameters, "ttl", *ids)) * F.lit(mean_ms)
    low, high = parameters.ttl_s_min * 1000.0, parameters.ttl_s_max * 1000.0
    return F.least(F.greatest(drawn, F.lit(low)), F.lit(high)).cast("long")


def objects(
    places: DataFrame,
    place_count: int,
    numbers: DataFrame,
    frame: Frame,
    parameters: SimulationParameters,
) -> DataFrame:
    """Return all published objects.

    Parameters
    ----------
    places
        The places table, ids from 0.
    place_count
        The number of places.
    numbers
        One int64 column `id`: 0 to `object_count(parameters)`.
    frame
        The service area.
    parameters
        Seed, rates and shares.
    """
    drawn = F.pow(_draw(parameters, "place", F.col("id")), F.lit(POPULARITY)) * F.lit(place_count)
    sources = places.withColumnRenamed("place_id", "spot")
    versions = _versions(_firsts(numbers, drawn.cast("long"), parameters), parameters)
    placed = at_hot_spots(versions.join(sources, "spot"), sources, place_count, frame, parameters)
    return placed.select(*_columns(_words_of_place(parameters)))


def objects_of_texts(
    texts: DataFrame, text_count: int, numbers: DataFrame, frame: Frame, parameters: SimulationParameters
) -> DataFrame:
    """Return all published objects: each text once before any text is repeated.

    Parameters
    ----------
    texts
        The texts table, ids from 0.
    text_count
        The number of texts.
    numbers, frame, parameters
        As for `objects`.
    """
    sources = texts.withColumnRenamed("text_id", "spot")
    versions = _versions(_firsts(numbers, F.col("id") % F.lit(text_count), parameters), parameters)
    placed = at_hot_spots(versions.join(sources, "spot"), sources, text_count, frame, parameters)
    return _with_new_offers(placed, parameters)


def synthetic_objects(numbers: DataFrame, frame: Frame, parameters: SimulationParameters) -> DataFrame:
    """Return all published objects: drawn keywords, in clusters.

    Parameters
    ----------
    numbers, frame, parameters
        As for `objects`.
    """
    versions = _versions(_firsts(numbers, F.col("id"), parameters), parameters)
    drawn = versions.withColumns(synthetic_columns(frame, parameters))
    middles = clusters(numbers.sparkSession.range(parameters.clusters), frame, parameters)
    placed = at_hot_spots(drawn, middles, parameters.clusters, frame, parameters)
    return _with_new_offers(placed, parameters)


def keyword_counts(published: DataFrame) -> DataFrame:
    """Return the number of objects that have each keyword."""
    words = published.select(F.explode(F.array_distinct("keywords")).alias("keyword"))
    return words.groupBy("keyword").agg(F.count("*").alias("objects"))


def _firsts(numbers: DataFrame, spot: Column, parameters: SimulationParameters) -> DataFrame:
    """Return first publications: time, place or text, lifetime, and whether retracted or replaced."""
    row = F.col("id")
    chance = _draw(parameters, "publish", row)
    hot = hot_spot(parameters, row)
    begins_ms = F.when(hot.isNull(), arrives_ms(parameters, chance)).otherwise(
        arrives_at_hot_spot_ms(parameters, hot, chance)
    )
    fate = _draw(parameters, "fate", row)
    ends = parameters.retracted_share + parameters.replaced_share
    return numbers.select(
        row,
        F.when(row < parameters.objects, F.lit(0)).otherwise(begins_ms).alias("first_ms"),
        spot.alias("spot"),
        hot.alias("hot_spot"),
        _ttl_ms(parameters, row, F.lit(0)).alias("first_ttl_ms"),
        (fate < parameters.retracted_share).alias("is_retracted"),
        ((fate >= parameters.retracted_share) & (fate < ends)).alias("is_replaced"),
    )


def _versions(firsts: DataFrame, parameters: SimulationParameters) -> DataFrame:
    """Add the second publication of replaced objects, and the time of retractions."""
    row = F.col("id")
    first_ms = F.col("first_ms")
    # An object is retracted or replaced while it lives and the run lasts.
    lasts_ms = F.least(F.col("first_ttl_ms"), F.lit(parameters.run_ms) - first_ms)
    span_ms = lasts_ms - F.lit(RETRACT_MS_MIN)
    is_long_enough = span_ms > 0
    moment = _draw(parameters, "moment", row) * span_ms
    change_ms = first_ms + F.lit(RETRACT_MS_MIN) + moment.cast("long")
    last_version = F.when(F.col("is_replaced") & is_long_enough, 1).otherwise(0)
    exploded = firsts.select(
        "*",
        F.when(is_long_enough, change_ms).alias("change_ms"),
        F.explode(F.sequence(F.lit(0), last_version)).alias("version"),
    )
    is_second = F.col("version") == 1
    second_ttl_ms = _ttl_ms(parameters, row, F.lit(1))
    return exploded.select(
        row,
        "version",
        "spot",
        "hot_spot",
        F.when(is_second, F.col("change_ms")).otherwise(first_ms).alias("publish_ms"),
        F.when(is_second, second_ttl_ms).otherwise(F.col("first_ttl_ms")).alias("ttl_ms"),
        F.when(F.col("is_retracted") & ~is_second, F.col("change_ms")).alias("retract_ms"),
    )


def _words_of_place(parameters: SimulationParameters) -> Column:
    """Return some keywords of an object's place, and its offer."""
    row, version = F.col("id"), F.col("version")
    spare = F.greatest(F.size("keywords") - OBJECT_KEYWORDS_MIN + 1, F.lit(1))
    taken = (_draw(parameters, "taken", row) * spare).cast("int") + OBJECT_KEYWORDS_MIN
    chosen = subset(F.col("keywords"), taken, row)
    offers = F.array(*(F.lit(word) for word in OFFER_WORDS))
    drawn = F.pow(_draw(parameters, "offer_word", row), F.lit(2.0)) * F.lit(len(OFFER_WORDS))
    # A replacement has the next offer, so that its content always differs.
    offer = F.get(offers, (drawn.cast("int") + version) % F.lit(len(OFFER_WORDS)))
    has_offer = (version == 1) | (_draw(parameters, "offer", row) < parameters.offer_share)
    return F.when(has_offer, F.array_append(chosen, offer)).otherwise(chosen)


def _with_new_offers(drawn: DataFrame, parameters: SimulationParameters) -> DataFrame:
    """Add an offer to replacements, so that their content differs; drop those that have all offers."""
    others = F.filter(F.array(*map(F.lit, OFFER_WORDS)), lambda word: ~F.array_contains("keywords", word))
    number = (_draw(parameters, "offer_word", F.col("id")) * F.size(others)).cast("int")
    is_first, offer = F.col("version") == 0, F.get(others, number)
    keywords = F.when(is_first, F.col("keywords")).otherwise(F.array_append("keywords", offer))
    return drawn.where(is_first | (F.size(others) > 0)).select(*_columns(keywords))


def _columns(keywords: Column) -> tuple[Column | str, ...]:
    """Return the columns of the objects table."""
    return (
        F.format_string("object-%07d", F.col("id")).alias("object_key"),
        "publish_ms",
        "lon",
        "lat",
        F.array_sort(keywords).alias("keywords"),
        "ttl_ms",
        "retract_ms",
    )
