"""The workload: what is published.

Objects appear at places, or are the texts of a file: those alive at the start, and a Poisson process of
arrivals. Given how many arrive, the times of a Poisson process are independent and uniform, which is how
they are drawn.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from simulator.chance import generator, uniform
from simulator.parameters import SimulationParameters

OFFER_WORDS = ("sale", "discount", "twoforone", "freebie", "lastminute", "limited")
"""What an object may add to its place's keywords, most usual first."""

POPULARITY = 1.5
"""Exponent that favours places of small id."""

OBJECT_KEYWORDS_MIN = 2
"""Objects take at least this many of their place's keywords."""

RETRACT_MS_MIN = 2_000
"""Nobody takes an object back within moments of publishing it."""


def arrival_count(parameters: SimulationParameters) -> int:
    """Draw how many objects are published during the run: a Poisson number."""
    mean = parameters.arrivals_per_s * parameters.seconds
    return int(generator(parameters.seed, "objects", "arrivals").poisson(mean))


def object_count(parameters: SimulationParameters) -> int:
    """Return how many different object keys there are."""
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
    """Exponential lifetimes, clamped."""
    mean_ms = parameters.ttl_s_mean * 1000.0
    drawn = -F.log1p(-_draw(parameters, "ttl", *ids)) * F.lit(mean_ms)
    low, high = parameters.ttl_s_min * 1000.0, parameters.ttl_s_max * 1000.0
    return F.least(F.greatest(drawn, F.lit(low)), F.lit(high)).cast("long")


def objects(
    places: DataFrame, place_count: int, numbers: DataFrame, parameters: SimulationParameters
) -> DataFrame:
    """Return everything that is published.

    Parameters
    ----------
    places
        The places table, ids from 0.
    place_count
        How many places there are.
    numbers
        One int64 column `id`: 0 to `object_count(parameters)`.
    parameters
        Seed, rates and shares.
    """
    drawn = F.pow(_draw(parameters, "place", F.col("id")), F.lit(POPULARITY)) * F.lit(place_count)
    firsts = _firsts(numbers, drawn.cast("long"), parameters)
    return _worded(_versions(firsts, parameters), places, parameters)


def objects_of_texts(
    texts: DataFrame, text_count: int, numbers: DataFrame, parameters: SimulationParameters
) -> DataFrame:
    """Return everything that is published: each text once before any is there again.

    Parameters
    ----------
    texts
        The texts table, ids from 0.
    text_count
        How many texts there are.
    numbers, parameters
        As for `objects`.
    """
    firsts = _firsts(numbers, F.col("id") % F.lit(text_count), parameters)
    drawn = _versions(firsts, parameters).join(
        texts.withColumnRenamed("text_id", "spot"), on="spot", how="inner"
    )
    # A replacement has an offer besides, so that its content differs; a text with all of them has none.
    others = F.filter(F.array(*map(F.lit, OFFER_WORDS)), lambda word: ~F.array_contains("keywords", word))
    number = (_draw(parameters, "offer_word", F.col("id")) * F.size(others)).cast("int")
    is_first, offer = F.col("version") == 0, F.get(others, number)
    keywords = F.when(is_first, F.col("keywords")).otherwise(F.array_append("keywords", offer))
    return drawn.where(is_first | (F.size(others) > 0)).select(*_columns(keywords))


def keyword_counts(published: DataFrame) -> DataFrame:
    """Return how many of the objects have each keyword."""
    words = published.select(F.explode(F.array_distinct("keywords")).alias("keyword"))
    return words.groupBy("keyword").agg(F.count("*").alias("objects"))


def _firsts(numbers: DataFrame, spot: Column, parameters: SimulationParameters) -> DataFrame:
    """First publications: when, of which place or text, how long, and whether taken back or replaced."""
    row = F.col("id")
    run_ms = parameters.run_ms
    arrives_ms = (_draw(parameters, "publish", row) * F.lit(run_ms - 1)).cast("long") + 1
    fate = _draw(parameters, "fate", row)
    ends = parameters.retracted_share + parameters.replaced_share
    return numbers.select(
        row,
        F.when(row < parameters.objects, F.lit(0)).otherwise(arrives_ms).alias("first_ms"),
        spot.alias("spot"),
        _ttl_ms(parameters, row, F.lit(0)).alias("first_ttl_ms"),
        (fate < parameters.retracted_share).alias("is_retracted"),
        ((fate >= parameters.retracted_share) & (fate < ends)).alias("is_replaced"),
    )


def _versions(firsts: DataFrame, parameters: SimulationParameters) -> DataFrame:
    """Add the second publication of what is replaced, and the time of what is taken back."""
    row = F.col("id")
    first_ms = F.col("first_ms")
    # What happens to an object happens while it lives and the run lasts.
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
        F.when(is_second, F.col("change_ms")).otherwise(first_ms).alias("publish_ms"),
        F.when(is_second, second_ttl_ms).otherwise(F.col("first_ttl_ms")).alias("ttl_ms"),
        F.when(F.col("is_retracted") & ~is_second, F.col("change_ms")).alias("retract_ms"),
    )


def _worded(versions: DataFrame, places: DataFrame, parameters: SimulationParameters) -> DataFrame:
    """Put objects at their places and choose their words."""
    row, version = F.col("id"), F.col("version")
    spare = F.greatest(F.size("keywords") - OBJECT_KEYWORDS_MIN + 1, F.lit(1))
    taken = (_draw(parameters, "taken", row) * spare).cast("int") + OBJECT_KEYWORDS_MIN
    chosen = subset(F.col("keywords"), taken, row)
    offers = F.array(*(F.lit(word) for word in OFFER_WORDS))
    drawn = F.pow(_draw(parameters, "offer_word", row), F.lit(2.0)) * F.lit(len(OFFER_WORDS))
    # A replacement has the next offer, so that its content always differs.
    offer = F.get(offers, (drawn.cast("int") + version) % F.lit(len(OFFER_WORDS)))
    has_offer = (version == 1) | (_draw(parameters, "offer", row) < parameters.offer_share)
    keywords = F.when(has_offer, F.array_append(chosen, offer)).otherwise(chosen)
    numbered = places.withColumnRenamed("place_id", "spot")
    return versions.join(numbered, on="spot", how="inner").select(*_columns(keywords))


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
