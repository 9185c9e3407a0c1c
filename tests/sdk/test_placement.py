"""Positions that are most likely a mistake are served, and the app's developer is warned."""

from __future__ import annotations

import warnings

import pytest

from nearcast import Boolean, Bounds, Circle, GeoObject, PlacementWarning, Polygon, Rectangle, TopK

SPEC = TopK({"sushi"}, k=3)
SWAPPED = "inside with lon and lat swapped: the area is lon 14 to 15, lat 35 to 36"


def warned(caught):
    return [str(one.message) for one in caught if one.category is PlacementWarning]


async def test_lon_and_lat_swapped(client):
    await client.publisher().publish([GeoObject({"sushi"}, 14.5, 35.5, 3600.0)])
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    with pytest.warns(PlacementWarning, match=SWAPPED) as caught:
        await device.move(lon=35.5, lat=14.5)
    assert caught[0].filename == __file__, "it names the line of the app"
    assert not [one for one in warned(caught) if "35.5" in one], "no position is in it"
    await client.sync()
    assert len(subscription.results()) == 1, "the position is valid"
    with warnings.catch_warnings(record=True) as again:
        warnings.simplefilter("always")
        await device.move(lon=35.6, lat=14.6)
    assert not again, "once a device"


@pytest.mark.parametrize("is_fleet", [False, True])
async def test_already_when_it_attaches(client, is_fleet):
    async with client.fleet() as fleet:
        attach = fleet.attach if is_fleet else client.attach
        with pytest.warns(PlacementWarning, match=SWAPPED) as caught:
            await attach("d", lon=35.5, lat=14.5)
        assert caught[0].filename == __file__


async def test_far_outside(client):
    """The diagonal is some 143 km: what is that far beyond the border is no suburb."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        device = await client.attach("d", lon=14.5, lat=35.5)
        await device.move(lon=16.5, lat=35.5)
        await device.move(lon=14.5, lat=34.0)
        await device.move(lon=15.5, lat=36.5)
        await device.move(lon=15.0, lat=36.0)
    with pytest.warns(PlacementWarning, match=r"device 'd': its position is 1,7\d\d km outside"):
        await device.move(lon=2.35, lat=48.86)


def box(lon, lat):
    return Bounds(lon, lat, lon + 0.1, lat + 0.1)


def ring(lon, lat):
    return Polygon(((lon, lat), (lon + 0.1, lat), (lon, lat + 0.1)))


def disc(lon, lat):
    return Circle(1_000.0, center=(lon, lat))


@pytest.mark.parametrize("make", [box, ring, disc])
async def test_a_fixed_range_that_is_not_in_the_area(client, make):
    device = await client.attach("d", lon=14.5, lat=35.5)
    with pytest.warns(PlacementWarning, match=f"range of a subscription .* {SWAPPED}") as caught:
        subscription = await device.subscribe(Boolean({"tea"}, make(35.5, 14.5)))
    assert caught[0].filename == __file__, "it names the line of the app"
    assert subscription.results() == [], "it is accepted all the same"
    with pytest.warns(PlacementWarning, match="device 'd': the range of a subscription"):
        await device.subscribe(Boolean({"tea"}, make(2.35, 48.86)))
    other = await client.attach("e", lon=14.5, lat=35.5)
    far = (
        r"device 'e': the range of a subscription is outside the service area, lon .*, by 1,7\d\d\.\d km"
    )
    with pytest.warns(PlacementWarning, match=far) as caught:
        await other.search(Boolean({"tea"}, make(2.35, 48.86)))
    assert caught[0].filename == __file__


async def test_a_range_that_touches_the_area_is_none_of_these(client):
    device = await client.attach("d", lon=14.5, lat=35.5)
    specs = [
        Boolean({"tea"}, Bounds(15.0, 36.0, 15.5, 36.5)),
        Boolean({"tea"}, Bounds(14.9, 35.9, 15.5, 36.5)),
        Boolean({"tea"}, Circle(10_000.0, center=(15.1, 35.5))),
        Boolean({"tea"}, Circle(1_000.0), moving=True),
        Boolean({"tea"}, Rectangle(1_000.0, 1_000.0), moving=True),
        TopK({"tea"}),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for spec in specs:
            await device.subscribe(spec)
