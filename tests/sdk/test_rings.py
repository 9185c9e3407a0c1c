"""Rings that repeat their first corner, as in GeoJSON: the SDK leaves the repeated one out."""

from __future__ import annotations

import pytest

from nearcast import Boolean, GeoObject, Polygon, RefusedError

OUTER = ((14.1, 35.1), (14.4, 35.1), (14.4, 35.4))
HOLE = ((14.3, 35.15), (14.35, 35.15), (14.35, 35.2))
ONCE = Boolean({"tea"}, Polygon(OUTER, (HOLE,)))
REPEATED = Boolean({"tea"}, Polygon([*OUTER, OUTER[0]], [[*HOLE, list(HOLE[0])]]))


def test_specs_are_equal():
    assert REPEATED == ONCE
    assert hash(REPEATED) == hash(ONCE)
    assert Boolean({"tea"}, Polygon(OUTER)) != Boolean({"tea"}, Polygon((*OUTER, OUTER[1])))


async def test_a_range_and_an_area(client):
    market = Polygon((*HOLE, HOLE[0]))
    (inside,) = await client.publisher().publish(GeoObject({"tea"}, 14.2, 35.15, 3600.0))
    await client.publisher().publish(GeoObject({"cake"}, ttl_s=3600.0, area=market))
    async with await client.attach("d", lon=14.5, lat=35.5) as device:
        tea = await device.subscribe(REPEATED, name="tea")
        assert [match.object.id for match in tea.results()] == [inside]
        assert tea.spec == ONCE
        sent = device.counters.bytes_sent
        await device.subscribe(ONCE, name="tea")
        assert device.counters.bytes_sent == sent
        (cake,) = await device.search(Boolean({"cake"}, Polygon(OUTER)))
        assert cake.object.area == Polygon(HOLE)


async def test_three_corners_have_to_remain(client):
    line = Polygon((*OUTER[:2], OUTER[0]))
    with pytest.raises(RefusedError, match="2 vertices instead of 3") as refused:
        await client.search(Boolean({"tea"}, line), lon=14.5, lat=35.5)
    assert refused.value.field == "spec.boolean.polygon"
    with pytest.raises(RefusedError, match="2 vertices instead of 3"):
        await client.publisher().publish(GeoObject({"tea"}, ttl_s=3600.0, area=line))
