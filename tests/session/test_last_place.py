"""The position that a device sent last, as one number."""

from __future__ import annotations

import math
import random

import pytest

from server.model import Place
from server.session.last_place import NOWHERE, packed, unpacked

PLACES = [
    Place(180.0, 90.0, 5_000.0),
    Place(-180.0, -90.0, 0.0),
    Place(0.0, -0.0),
    Place(1e-9, -1e-9, 0.01, math.nan, 3.0),
    Place(14.5, 35.5, 250.0),
    Place(14.5, 35.5, 1e6),
]


@pytest.mark.parametrize("received_ms", [0, 1, 2**50])
def test_a_place_and_its_time_come_back(received_ms):
    rng = random.Random(3)
    places = PLACES + [
        Place(rng.uniform(-180, 180), rng.uniform(-90, 90), rng.uniform(0, 5_000)) for _ in range(500)
    ]
    numbers = [packed(place, received_ms) for place in places]
    assert NOWHERE not in numbers
    found = unpacked(numbers)
    assert set(found.received_ms.tolist()) == {received_ms}
    for place, lon, lat, margin_m in zip(places, found.lon, found.lat, found.margin_m, strict=True):
        assert lon == pytest.approx(place.lon, abs=5.1e-8)
        assert lat == pytest.approx(place.lat, abs=5.1e-8)
        assert place.margin_m - 1e-4 <= margin_m <= place.margin_m + 0.1


def test_there_may_be_none():
    assert [len(column) for column in unpacked([])] == [0, 0, 0, 0]
