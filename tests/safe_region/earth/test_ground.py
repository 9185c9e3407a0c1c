"""Distances on the ground, against known values and against geodesics by their integrals."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_region.earth.ground import ANTIPODE_M, ground_distance_m
from tests.support.geodesics import end_of

LON, LAT = st.floats(-180.0, 180.0), st.floats(-90.0, 90.0)


@pytest.mark.parametrize(
    ("place", "other", "metres"),
    [
        # Geoscience Australia's example of Vincenty's formulas: Flinders Peak to Buninyong, GRS80.
        ((144.424867888889, -37.9510334166667), (143.926495527778, -37.6528211388889), 54_972.271),
        # GeographicLib's examples: JFK to LHR, and Wellington to Salamanca, nearly antipodes.
        ((-73.8, 40.6), (-0.5, 51.6), 5_551_759.400),
        ((174.81, -41.32), (-5.5, 40.96), 19_959_679.267),
        # A degree along the equator and along a meridian; half a meridian; antipodes on the equator.
        ((0.0, 0.0), (1.0, 0.0), 111_319.491),
        ((7.0, 0.0), (7.0, 1.0), 110_574.389),
        ((0.0, 89.0), (0.0, 90.0), 111_693.865),
        ((0.0, 90.0), (0.0, -90.0), 20_003_931.459),
        ((0.0, 0.0), (180.0, 0.0), 20_003_931.459),
        ((33.0, 90.0), (-140.0, 90.0), 0.0),
        ((179.5, 0.0), (-179.5, 0.0), 111_319.491),
    ],
)
def test_known_values(place, other, metres):
    assert ground_distance_m(*place, *other) == pytest.approx(metres, rel=2e-4, abs=1e-6)


@pytest.mark.parametrize(
    ("least_m", "most_m", "error"),
    [(1e-3, 1e7, 1e-5), (1e7, 1.9e7, 1e-4), (1.9e7, math.inf, 1e-3)],
    ids=["to 10,000 km", "to 19,000 km", "to antipodes"],
)
@pytest.mark.parametrize("seed", range(4))
def test_errors_are_within_the_documented_bounds(seed, least_m, most_m, error):
    chance = random.Random(seed)
    compared = 0
    while compared < 1_000:
        lat = chance.choice((0.0, chance.uniform(-1.0, 1.0), chance.uniform(-90.0, 90.0)))
        near, far = 10.0 ** chance.uniform(-9.5, 0.49), 10.0 ** chance.uniform(-9.0, -0.2)
        arc = chance.choice((near, math.pi - far, math.pi))
        lon, other_lat, metres = end_of(lat, chance.uniform(0.0, math.pi), arc)
        if lon > 180.0 or not least_m <= metres < most_m:
            continue  # beyond half a turn it is not the shortest way
        start = chance.uniform(-180.0, 180.0 - lon)
        compared += 1
        found_m = ground_distance_m(start, lat, start + lon, other_lat)
        # Degrees as float64 are rounded: 3e-14 of them, some nanometres, is not the formula's fault.
        assert found_m == pytest.approx(metres, rel=error, abs=1e-7), (start, lat, lon, other_lat)


@given(LON, LAT, LON, LAT)
def test_both_ways_are_as_long(lon, lat, other_lon, other_lat):
    there = ground_distance_m(lon, lat, other_lon, other_lat)
    assert there == ground_distance_m(other_lon, other_lat, lon, lat)
    assert 0.0 <= there <= ANTIPODE_M


ANY = st.one_of(st.floats(), st.sampled_from((1e308, -1e308, 1e17)))


@given(ANY, ANY, ANY, ANY)
def test_no_numbers_make_it_fail(lon, lat, other_lon, other_lat):
    found = ground_distance_m(lon, lat, other_lon, other_lat)
    assert math.isnan(found) or 0.0 <= found <= ANTIPODE_M
    if not all(map(math.isfinite, (lon, lat, other_lon, other_lat))):
        assert math.isnan(found)


@given(LON, LAT, st.floats(1e-9, 180.0))
def test_it_is_0_for_one_place_only(lon, lat, apart_deg):
    assert ground_distance_m(lon, lat, lon, lat) == 0.0
    other_lat = lat + apart_deg if lat < 0.0 else lat - apart_deg
    if abs(other_lat) <= 90.0:
        assert ground_distance_m(lon, lat, lon, other_lat) > 0.0
    if abs(lat) <= 89.0:
        assert ground_distance_m(lon, lat, lon + apart_deg, lat) > 0.0
