"""Synthetic objects, the rhythm of a day, hot spots, and the subscriptions of presets."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from pyspark.sql import functions as F

from safe_region.earth.frame import Area, Frame
from simulator import schemas
from simulator.parameters import SimulationParameters
from simulator.parameters.presets import PRESETS
from simulator.simulation import simulate
from simulator.workload.arrivals import arrival_count, pieces
from simulator.workload.objects import OFFER_WORDS, object_count, objects, synthetic_objects
from simulator.workload.subscriptions import subscriptions
from simulator.workload.synthetic import rank
from tests.simulator.conftest import SMALL

FRAME = Frame.of(Area(14.0, 35.0, 14.6, 35.5))
DAY = SimulationParameters(
    seconds=86_400,
    period_ms=60_000,
    objects=50,
    arrivals_per_s=0.05,
    rhythm="daily",
    object_source="synthetic",
    vocabulary=400,
    zipf=1.2,
    object_keywords_mean=4.0,
    clusters=7,
    cluster_m=500.0,
    hot_spots=3,
    hot_share=0.4,
    hot_spot_m=50.0,
    hot_spot_s=1_200.0,
)


def published(spark, parameters, partitions=2):
    numbers = spark.range(0, object_count(parameters), 1, partitions)
    found = synthetic_objects(numbers, FRAME, parameters)
    return found.sort("publish_ms", "object_key").collect()


@pytest.fixture(scope="module")
def day(spark):
    return published(spark, DAY)


def test_rows_are_the_same_whatever_the_partitioning(spark, day):
    assert published(spark, DAY, 7) == day


def test_a_rhythm_is_one_in_the_mean_of_a_day(day):
    parts = pieces(DAY)
    assert len(parts) == 24
    assert sum(one.weight for one in parts) / 24 == pytest.approx(1.0)
    assert [one.begin_ms for one in parts] == [3_600_000 * hour for hour in range(24)]
    mean = DAY.arrivals_per_s * DAY.seconds
    assert abs(arrival_count(DAY) - mean) < 4.0 * mean**0.5
    first_ms = {}
    for row in day:
        first_ms.setdefault(row.object_key, row.publish_ms)
    hours = Counter(time_ms // 3_600_000 for time_ms in first_ms.values() if time_ms > 0)
    assert sum(hours[hour] for hour in range(17, 22)) > 3 * sum(hours[hour] for hour in range(5))
    assert all(0 <= row.publish_ms < DAY.run_ms for row in day)


def test_a_rhythm_follows_the_time_of_the_start(spark):
    """Half an hour before midnight, for an hour: two pieces, the first with more weight."""
    start_ms = DAY.start_ms + 86_400_000 - 1_800_000
    parameters = DAY.changed(seconds=3_600, start_ms=start_ms, arrivals_per_s=1.0, hot_spots=0)
    late, early = pieces(parameters)
    assert (late.begin_ms, late.end_ms, early.end_ms) == (0, 1_800_000, 3_600_000)
    times = [row.publish_ms for row in published(spark, parameters) if row.publish_ms > 0]
    before = sum(time_ms < 1_800_000 for time_ms in times)
    assert before / len(times) == pytest.approx(late.weight / (late.weight + early.weight), abs=0.05)


def test_synthetic_objects_have_few_frequent_words_and_lie_in_the_area(day):
    words = Counter(word for row in day for word in set(row.keywords) - set(OFFER_WORDS))
    assert set(words) <= {f"word{number}" for number in range(1, 401)}
    assert words["word1"] > 2 * words["word4"] > 0
    sizes = [len(set(row.keywords) - set(OFFER_WORDS)) for row in day]
    assert min(sizes) >= 1
    assert max(sizes) <= 7
    for row in day:
        assert row.keywords == sorted(set(row.keywords))
        assert FRAME.area.lon_min <= row.lon <= FRAME.area.lon_max
        assert FRAME.area.lat_min <= row.lat <= FRAME.area.lat_max


@pytest.mark.parametrize("zipf", [0.0, 1.0, 1.7])
def test_ranks_follow_the_law(spark, zipf):
    """Of equally spaced numbers each rank has its share of them, by the integral of the density."""
    parameters = SimulationParameters(vocabulary=50, zipf=zipf)
    count = 20_000
    chance = (F.col("id") + 0.5) / count
    rows = spark.range(count).groupBy(rank(chance, parameters).alias("rank")).count().collect()
    found = {row["rank"]: row["count"] for row in rows}
    edges = np.arange(1.0, 52.0)
    whole = np.log(edges) if zipf == 1.0 else edges ** (1.0 - zipf) / (1.0 - zipf)
    shares = np.diff(whole) / (whole[-1] - whole[0])
    assert set(found) == set(range(1, 51))
    for number, share in enumerate(shares, 1):
        assert found[number] == pytest.approx(share * count, abs=1.5)


def test_objects_of_hot_spots_are_there_while_they_last(day):
    """Two arrivals of five lie in three short times and small places; by chance it would be a few."""
    late = [row for row in day if row.publish_ms > 0]
    places = np.array([FRAME.project(row.lon, row.lat) for row in late])
    times_s = np.array([row.publish_ms / 1000.0 for row in late])
    crowded = 0
    for place, time_s in zip(places, times_s, strict=True):
        near = np.hypot(*(places - place).T) < 200.0
        crowded += int((near & (np.abs(times_s - time_s) < 1_200.0)).sum() > 60)
    assert 0.25 < crowded / len(late) < 0.5


def test_objects_of_places_have_hot_spots_too(spark, simulation):
    """Others stay at their places, and nothing else of them changes."""
    parameters = SMALL.changed(hot_spots=2, hot_share=0.5, hot_spot_m=30.0, hot_spot_s=10.0)
    frame = Frame.of(simulation.world.area)
    places = spark.createDataFrame(simulation.places.to_pandas(), schemas.PLACES)
    numbers = spark.range(object_count(parameters))
    found = objects(places, simulation.places.num_rows, numbers, frame, parameters).collect()
    usual = {(row["lon"], row["lat"]) for row in simulation.places.to_pylist()}
    moved = [row for row in found if (row.lon, row.lat) not in usual]
    arrived = [row for row in found if int(row.object_key[-7:]) >= parameters.objects]
    assert 0.35 < len(moved) / len(arrived) < 0.65
    before = {(one["object_key"], tuple(one["keywords"])) for one in simulation.objects.to_pylist()}
    assert {(row.object_key, tuple(row.keywords)) for row in found if row.publish_ms == 0} <= before


@pytest.mark.parametrize("name", PRESETS)
def test_subscriptions_of_a_preset(spark, simulation, name):
    parameters = SimulationParameters(preset=name, objects=400, devices=120, arrivals_per_s=0.0)
    frame = Frame.of(simulation.world.area)
    table = spark.createDataFrame(simulation.objects.slice(0, 400).to_pandas(), schemas.OBJECTS)
    rows = subscriptions(table, spark.range(120), frame, parameters).collect()
    area = simulation.world.area
    whole = (area.lon_max - area.lon_min) * frame.x_m_per_deg
    whole *= (area.lat_max - area.lat_min) * frame.y_m_per_deg
    assert len(rows) == 120
    kinds = {"lamps": "top_k", "skype": "top_k"}
    assert {row.kind for row in rows} == {kinds.get(name, "boolean")}
    if name == "lamps":
        assert {row.similarity for row in rows} == {"jaccard"}
        assert {row.k for row in rows} == set(range(1, 11))
        assert all(row.place is None and row.window_ms is None for row in rows)
    elif name == "skype":
        assert {(row.k, row.similarity, row.window_count) for row in rows} == {(20, "tfidf", 1_000_000)}
        assert all(row.place is not None for row in rows)
    elif name == "ap-plus":
        assert all(row.extent_m is not None and row.bounds is None for row in rows)
    else:
        ratios = set()
        for row in rows:
            assert row.center is None
            assert " OR " not in row.expression
            assert " NOT " not in row.expression
            west, south, east, north = row.bounds
            width_m, height_m = (east - west) * frame.x_m_per_deg, (north - south) * frame.y_m_per_deg
            assert 0.000099 <= width_m * height_m / whole <= 0.0101
            ratios.add(round(math.log2(width_m / height_m), 1))
        assert ratios == {0.0} if name == "ap-tree" else -2.0 <= min(ratios) < 0.0 < max(ratios)


def test_a_simulation_of_synthetic_objects(spark, tmp_path):
    parameters = SMALL.changed(object_source="synthetic", vocabulary=200, hot_spots=2, devices=5)
    found = simulate(parameters, tmp_path / "synthetic", spark=spark, partitions=1)
    words = {word for row in found.objects["keywords"].to_pylist() for word in row}
    assert words <= {f"word{number}" for number in range(1, 201)} | set(OFFER_WORDS)
    assert found.subscriptions.num_rows == 10
    assert found.world.parameters["object_source"] == "synthetic"
