"""What devices subscribe to: top-k as in the Lamps paper, boolean as in the AP-Tree paper."""

import math
from collections import Counter

import pytest
from pyspark.sql import Row

from nearcast import Boolean, Bounds, Circle, Rectangle, RegionMode, Similarity, TopK
from nearcast.expressions import clauses_of
from safe_region.earth.frame import Area, Frame
from safe_region.scoring.keywords import normalised_keyword
from server.limits import Limits
from simulator import schemas
from simulator.checks.subscriptions import refused
from simulator.parameters import SimulationParameters
from simulator.workload.objects import OFFER_WORDS
from simulator.workload.rows import subscription_rows
from simulator.workload.subscriptions import WINDOW_COUNTS, WINDOWS_S, subscriptions
from tests.simulator.conftest import SMALL


@pytest.fixture(scope="module")
def wanted(simulation):
    return subscription_rows(simulation.subscriptions)


@pytest.fixture(scope="module")
def top_k(wanted):
    return [row for row in wanted if row.kind == "top_k"]


@pytest.fixture(scope="module")
def boolean(wanted):
    return [row for row in wanted if row.kind == "boolean"]


def test_top_k_subscriptions_take_words_of_some_object(simulation, top_k):
    offered = [set(words) for words in simulation.objects["keywords"].to_pylist()]
    lengths = Counter()
    for row in top_k:
        assert 1 <= len(row.keywords) <= SMALL.subscription_keywords_max
        assert row.keywords == sorted(set(row.keywords))
        assert any(set(row.keywords) <= one for one in offered)
        lengths[len(row.keywords)] += 1
    assert len(lengths) >= 4


def test_k_and_alpha_are_spread_within_their_bounds(top_k):
    ks = Counter(row.k for row in top_k)
    assert set(ks) <= set(range(1, SMALL.k_max + 1))
    assert len(ks) >= 6
    alphas = [row.alpha for row in top_k]
    assert min(alphas) == SMALL.alpha_min
    assert max(alphas) == SMALL.alpha_max
    # Clamped, not rescaled: about three fifths lie strictly between.
    between = sum(SMALL.alpha_min < alpha < SMALL.alpha_max for alpha in alphas)
    assert 0.25 < between / len(alphas) < 0.95
    weighed = sum(row.similarity == "tfidf" for row in top_k)
    assert {row.similarity for row in top_k} == {"jaccard", "tfidf"}
    assert 0.25 < weighed / len(top_k) < 0.75


def test_every_device_has_its_subscriptions_of_both_kinds(wanted, boolean):
    assert [(row.device_id, row.subscription_id) for row in wanted] == [
        (f"device-{device:06d}", number)
        for device in range(SMALL.devices)
        for number in range(1, SMALL.subscriptions_per_device + 1)
    ]
    assert 0.25 < len(boolean) / len(wanted) < 0.75


def test_some_subscriptions_of_both_kinds_have_a_window(wanted):
    windows = Counter()
    for row in wanted:
        window = row.spec(RegionMode.ANCHORED).window
        if window is not None:
            assert window.seconds in {None, *WINDOWS_S}
            assert window.count in {None, *WINDOW_COUNTS}
            windows[row.kind, window.seconds is None] += 1
        if row.kind == "top_k" and row.place is None:
            assert row.spec(RegionMode.ELLIPSE).window is None
    assert len(windows) == 4
    assert 0.25 < sum(windows.values()) / len(wanted) < 0.75


def test_some_top_k_subscriptions_stand_at_a_place(simulation, wanted, top_k):
    """Whatever the others do they do it in the mode STATIONARY, with windows and by tf-idf as well."""
    places = set(zip(*(simulation.places[name].to_pylist() for name in ("lon", "lat")), strict=True))
    stationary = [row for row in top_k if row.place is not None]
    assert 0.15 < len(stationary) / len(top_k) < 0.7
    assert all(row.place is None for row in wanted if row.kind == "boolean")
    assert {tuple(row.place) for row in stationary} <= places
    specs = [row.spec(RegionMode.ELLIPSE) for row in stationary]
    assert {spec.region for spec in specs} == {RegionMode.STATIONARY}
    assert any(spec.window is not None for spec in specs)
    assert {spec.similarity for spec in specs} == {Similarity.JACCARD, Similarity.TFIDF}
    moving = [row.spec(RegionMode.ELLIPSE).region for row in top_k if row.place is None]
    assert set(moving) == {RegionMode.ELLIPSE}


def test_expressions_have_keywords_of_some_object(simulation, boolean):
    offered = [
        {normalised_keyword(word) for word in words}
        for words in simulation.objects["keywords"].to_pylist()
    ]
    excluded = 0
    for row in boolean:
        for clause in clauses_of(row.expression):
            assert 1 <= len(clause.required) <= SMALL.subscription_keywords_max
            assert any(clause.required <= one for one in offered)
            assert clause.excluded <= set(OFFER_WORDS)
            excluded += len(clause.excluded)
    assert excluded > 0
    assert any(len(clauses_of(row.expression)) > 1 for row in boolean)


def test_ranges_are_of_all_shapes_and_of_the_requested_sizes(simulation, boolean):
    area = simulation.world.area
    frame = Frame.of(area)
    low, high = frame.project(area.lon_min, area.lat_min), frame.project(area.lon_max, area.lat_max)
    whole = (high.x_m - low.x_m) * (high.y_m - low.y_m)
    places = set(zip(*(simulation.objects[name].to_pylist() for name in ("lon", "lat")), strict=True))
    shapes = Counter()
    for row in boolean:
        spec = row.spec(RegionMode.ANCHORED)
        assert isinstance(spec, Boolean)
        if isinstance(spec.range, Bounds):
            west, south = frame.project(spec.range.lon_min, spec.range.lat_min)
            east, north = frame.project(spec.range.lon_max, spec.range.lat_max)
            size = (east - west) * (north - south)
            assert east - west == pytest.approx(north - south)
        elif isinstance(spec.range, Rectangle):
            assert spec.moving
            size = spec.range.width_m * spec.range.height_m
        else:
            assert isinstance(spec.range, Circle)
            size = math.pi * spec.range.radius_m**2
            assert (spec.range.center is None) == spec.moving
            assert spec.moving or spec.range.center in places
        assert SMALL.range_area_min * 0.999 <= size / whole <= SMALL.range_area_max * 1.001
        shapes[type(spec.range), spec.moving] += 1
    assert set(shapes) == {(Bounds, False), (Circle, False), (Circle, True), (Rectangle, True)}


def test_ranges_in_a_wide_area_are_no_larger_than_a_server_takes(spark, simulation):
    """California is one."""
    most_m = Limits().range_m_max
    published = spark.createDataFrame(simulation.objects.slice(0, 5).to_pandas(), schemas.OBJECTS)
    frame = Frame.of(Area(9.0, 31.0, 20.0, 41.0))
    parameters = SimulationParameters(objects=5, arrivals_per_s=0.0, boolean_share=1.0, devices=60)
    rows = subscriptions(published, spark.range(60), frame, parameters).collect()
    radii_m = [row.radius_m for row in rows if row.radius_m is not None]
    assert max(radii_m) == most_m
    assert sum(radius_m < most_m for radius_m in radii_m) > 3
    widths_m = [
        (row.bounds[2] - row.bounds[0]) * frame.x_m_per_deg for row in rows if row.bounds is not None
    ]
    assert max(widths_m) == pytest.approx(most_m * math.sqrt(math.pi))
    assert max(widths_m) < 2.0 * most_m
    extents_m = [max(row.extent_m) for row in rows if row.extent_m is not None]
    assert most_m < max(extents_m) < 2.0 * most_m


@pytest.mark.parametrize(
    ("area", "lon", "lat", "edge"),
    [
        (Area(178.5, -17.2, 180.0, -16.1), 179.97, -16.8, (2, 180.0)),  # Fiji
        (Area(-180.0, 88.0, -178.0, 89.0), -179.99, 88.99, (0, -180.0)),
    ],
)
def test_ranges_end_where_the_globe_is_cut(spark, area, lon, lat, edge):
    row = {"object_key": "object-0000000", "publish_ms": 0, "lon": lon, "lat": lat, "keywords": ["tea"]}
    published = spark.createDataFrame([row | {"ttl_ms": 1, "retract_ms": None}], schemas.OBJECTS)
    parameters = SimulationParameters(objects=1, arrivals_per_s=0.0, boolean_share=1.0, devices=40)
    frame = Frame.of(area)
    found = subscriptions(published, spark.range(40), frame, parameters)
    assert refused(found, frame).count() == 0
    at, value = edge
    assert value in {one.bounds[at] for one in found.collect() if one.bounds is not None}


def test_the_spec_of_a_top_k_row(top_k):
    row = next(row for row in top_k if row.place is None)
    spec = row.spec(RegionMode.ELLIPSE)
    assert isinstance(spec, TopK)
    assert (list(spec.keywords), spec.k, spec.alpha) == (row.keywords, row.k, row.alpha)
    assert spec.region is RegionMode.ELLIPSE


def test_words_may_be_operators_and_have_quotes(spark, simulation):
    """As names on a map may."""
    words = ["and", "AND", 'say "hi"', "back\\slash"]
    row = Row(object_key="object-0000000", publish_ms=0, lon=1.0, lat=2.0, keywords=words, ttl_ms=1)
    published = spark.createDataFrame([{**row.asDict(), "retract_ms": None}], schemas.OBJECTS)
    parameters = SimulationParameters(
        objects=1, arrivals_per_s=0.0, boolean_share=1.0, devices=40, subscription_keywords_max=16
    )
    frame = Frame.of(simulation.world.area)
    found = subscriptions(published, spark.range(40), frame, parameters).collect()
    required = set()
    for one in found:
        for clause in clauses_of(one.expression):
            required |= clause.required
    assert required == {normalised_keyword(word) for word in words}


def test_all_may_be_of_one_kind_and_stand(spark, simulation):
    published = spark.createDataFrame(simulation.objects.slice(0, 5).to_pandas(), schemas.OBJECTS)
    frame = Frame.of(simulation.world.area)
    for share, kind in ((0.0, "top_k"), (1.0, "boolean")):
        parameters = SimulationParameters(
            objects=5, arrivals_per_s=0.0, boolean_share=share, stationary_share=1.0, devices=8
        )
        rows = subscriptions(published, spark.range(8), frame, parameters).collect()
        assert {row.kind for row in rows} <= {kind}
        assert {row.place is not None for row in rows} == {kind == "top_k"}
