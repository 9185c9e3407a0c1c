"""The frame: projection and its limits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_region.earth.frame import EARTH_RADIUS_M, Area, Frame

MALTA = Frame.of(Area(14.18, 35.80, 14.58, 36.09))


@given(st.floats(13.0, 16.0), st.floats(34.0, 37.0))
def test_there_and_back(lon, lat):
    back = MALTA.unproject(*MALTA.project(lon, lat))
    assert back == pytest.approx((lon, lat), abs=1e-12)


def test_distances_are_the_earths():
    """A degree of latitude, and a kilometre by the haversine formula near the centre."""
    a, b = MALTA.project(14.38, 35.90), MALTA.project(14.38, 36.90)
    assert b.y_m - a.y_m == pytest.approx(EARTH_RADIUS_M * math.pi / 180.0)
    lon1, lat1, lon2, lat2 = (math.radians(v) for v in (14.380, 35.945, 14.388, 35.951))
    h = math.sin((lat2 - lat1) / 2) ** 2
    h += math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    great_circle_m = 2.0 * EARTH_RADIUS_M * math.asin(math.sqrt(h))
    p, q = MALTA.project(14.380, 35.945), MALTA.project(14.388, 35.951)
    assert math.dist(p, q) == pytest.approx(great_circle_m, rel=1e-4)


def test_maxdist_is_the_diagonal():
    corner, opposite = MALTA.project(14.18, 35.80), MALTA.project(14.58, 36.09)
    assert MALTA.maxdist_m == pytest.approx(math.dist(corner, opposite))


def test_the_area_is_closed():
    assert MALTA.covers(14.18, 35.80)
    assert MALTA.covers(14.58, 36.09)
    assert not MALTA.covers(14.580001, 36.0)
    assert not MALTA.covers(math.nan, 36.0)


@pytest.mark.parametrize(
    ("area", "named"),
    [
        (Area(math.nan, 0, 1, 1), "area.lon_min is nan"),
        (Area(0, 0, math.inf, 1), "area.lon_max is inf"),
        (Area(1, 0, 1, 1), "longitudes are 1..1"),
        (Area(170, 0, -170, 1), "longitudes are 170..-170"),
        (Area(0, 5, 1, 4), "latitudes are 5..4"),
        (Area(0, 80, 1, 90), "latitudes are 80..90"),
    ],
)
def test_invalid_areas(area, named):
    with pytest.raises(ValueError, match=named):
        Frame.of(area)
