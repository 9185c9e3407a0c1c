"""A scale of a subscription's own, through a real server and its store; distances on the ground."""

from __future__ import annotations

import json

import pytest

import nearcast
from nearcast import Boolean, Bounds, Circle, GeoObject, Last, RefusedError, RegionMode, TopK
from safe_region import oracle
from safe_region.earth.frame import Area, Frame
from safe_region.earth.ground import ground_distance_m
from server import model
from server.core.specs.top_k import TopKKind
from server.settings import load_settings
from tests.support.servers import serving

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
HERE = (14.5, 35.5)
SPECS = {
    f"{region.name}, {scale_m}, {window}": TopK(
        {"sushi", "tea"}, 5, 0.5, region=region, window=window, distance_scale_m=scale_m
    )
    for region in (RegionMode.ANCHORED, RegionMode.STATIONARY)
    for scale_m in (None, 1.0, 5_000, 20_037_508.0)
    for window in (None, Last(count=50))
}
PLACES = [(14.5 + 0.01 * i, 35.5, {"sushi", "tea"} if i % 3 == 0 else {"tea"}) for i in range(12)]


def expected(spec, objects):
    wanted = oracle.OracleSubscription(
        frozenset(spec.keywords), spec.k, spec.alpha, "jaccard", distance_scale_m=spec.distance_scale_m
    )
    best = oracle.top_k(wanted, *FRAME.project(*HERE), FRAME.maxdist_m, objects, 1)
    return [(one.object_id, oracle.score(wanted, one.length_m, FRAME.maxdist_m)) for one in best]


def found(matches):
    return [(match.object.id, match.score) for match in matches]


async def test_results_and_scores_by_any_scale_and_after_a_restart(place):
    async with nearcast.connect(place.target) as client:
        new = [GeoObject(words, lon, lat, 3600.0) for lon, lat, words in PLACES]
        ids = await client.publisher().publish(new)
        objects = [
            oracle.OracleObject(one, *FRAME.project(lon, lat), frozenset(words), 0, 9)
            for one, (lon, lat, words) in zip(ids, PLACES, strict=True)
        ]
        lists = {name: expected(spec, objects) for name, spec in SPECS.items()}
        assert len({tuple(one for one, _ in best) for best in lists.values()}) == 3, "scales decide"
        device = await client.attach("d", lon=HERE[0], lat=HERE[1])
        numbers = {}
        for name, spec in SPECS.items():
            subscription = await device.subscribe(spec)
            numbers[subscription.id] = name
            assert found(subscription.results()) == lists[name]
            assert found(await client.search(spec, lon=HERE[0], lat=HERE[1])) == lists[name]
        place.server.coordinator.check()
    await place.stop()
    await place.start()
    async with nearcast.connect(place.target) as client:
        device = await client.attach("d", lon=HERE[0], lat=HERE[1])
        await client.sync()
        assert {one.id for one in device.subscriptions} == numbers.keys()
        for subscription in device.subscriptions:
            name = numbers[subscription.id]
            assert SPECS[name] == subscription.spec
            assert subscription.spec.distance_scale_m == SPECS[name].distance_scale_m
            assert found(subscription.results()) == lists[name]


@pytest.mark.parametrize(
    ("spec", "written"),
    [
        (model.TopK(("a",), 2, 0.5), [["a"], 2, 0.5, 1, 1, [0, 0], 0]),
        (model.TopK(("a",), 2, 0.5, window=model.Window(count=9)), [["a"], 2, 0.5, 1, 1, [0, 9], 0]),
        (model.TopK(("a",), 2, 0.5, distance_scale_m=0.1 + 7), [["a"], 2, 0.5, 1, 1, [0, 0], 0.1 + 7]),
    ],
)
def test_the_stored_scale(spec, written):
    assert json.loads(TopKKind.encoded(spec)) == written


async def test_specs_that_differ_in_the_scale_differ():
    one, other = TopK({"a"}, distance_scale_m=5_000), TopK({"a"}, distance_scale_m=5_000.5)
    assert one == TopK(frozenset({"a"}), distance_scale_m=5_000.0)
    assert one != TopK(frozenset({"a"}), distance_scale_m=other.distance_scale_m)
    assert one != TopK(frozenset({"a"}))


async def test_a_wrong_scale_is_refused_and_changes_nothing(client):
    device = await client.attach("d", lon=HERE[0], lat=HERE[1])
    for scale_m in (0, 0.0, 0.5, -1.0, 2.1e7, float("nan"), float("inf"), "far", True):
        with pytest.raises(RefusedError) as refused:
            await device.subscribe(TopK({"a"}, distance_scale_m=scale_m))
        assert refused.value.field == "spec.top_k.distance_scale_m"
        assert not device.subscriptions
    gauges = (await client.status()).gauges
    assert not any(count for name, count in gauges.items() if "subscriptions" in name)


@pytest.mark.parametrize("is_private", [False, True])
async def test_distances_are_from_the_device_on_the_ground(client, is_private):
    """Of all kinds, and from the true position; to an object with an area to its point."""
    new = [GeoObject(words, lon, lat, 3600.0) for lon, lat, words in PLACES]
    wide = GeoObject({"tea"}, ttl_s=3600.0, area=Bounds(14.4, 35.4, 14.7, 35.8))
    await client.publisher().publish([*new, wide])
    device = await client.attach("d", lon=14.2, lat=35.2, privacy_radius_m=500.0 if is_private else 0.0)
    specs = (
        TopK({"tea"}, k=50),
        Boolean({"tea"}, Circle(40_000.0, HERE)),
        Boolean({"tea"}, Circle(45_000.0), moving=True),
    )
    subscriptions = [await device.subscribe(spec) for spec in specs]
    lon, lat = HERE[0] - 0.001, HERE[1]
    await device.move(lon=lon, lat=lat)
    await client.sync()
    for subscription in subscriptions:
        searched = await client.search(subscription.spec, lon=lon, lat=lat)
        assert len(searched) == len(new) + 1
        for matches in (subscription.results(), searched):
            for match in matches:
                item = match.object
                assert match.distance_m == ground_distance_m(lon, lat, item.lon, item.lat)


async def test_two_places_are_as_far_apart_in_every_area(tmp_path):
    """A tenth of a degree on the parallel of 35.9: 6,385,486 m (N) * cos(35.9) * pi / 1,800."""
    for name, area in (("malta", "14.18,35.8,14.58,36.09"), ("italy", "6.6,35.4,18.6,47.1")):
        settings = load_settings({"area": area, "store": str(tmp_path / f"{name}.db"), "port": 0})
        async with serving(settings) as server, nearcast.connect(f"127.0.0.1:{server.port}") as client:
            await client.publisher().publish([GeoObject({"tea"}, 14.4, 35.9, 3600.0)])
            (match,) = await client.search(TopK({"tea"}), lon=14.5, lat=35.9)
            assert match.distance_m == pytest.approx(9_027.74, rel=1e-5)
