"""Boolean subscriptions: all keywords, within a circle that moves with the device."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

import nearcast
from nearcast import (
    Boolean,
    Bounds,
    Circle,
    Clause,
    GeoObject,
    Polygon,
    Rectangle,
    RefusedError,
    RegionMode,
    SubscriptionState,
    TopK,
)
from safe_region import oracle
from server.limits import Limits
from server.main import Server
from server.settings import load_settings
from simulator.replay.audit import oracle_range

LON, LAT = 14.5, 35.5
TEA = Boolean({"tea", "cake"}, Circle(400.0), moving=True)
BOX = Bounds(LON - 0.01, LAT - 0.01, LON + 0.01, LAT + 0.01)
L_SHAPE = tuple(
    (LON + 0.005 * x, LAT + 0.005 * y) for x, y in ((-3, -3), (3, -3), (3, 0), (0, 0), (0, 3), (-3, 3))
)
HOLE = tuple((LON + 0.005 * x, LAT + 0.005 * y) for x, y in ((-2, -2), (-1, -2), (-1, -1), (-2, -1)))
BOW_TIE = ((LON, LAT), (LON + 0.01, LAT + 0.01), (LON + 0.01, LAT), (LON, LAT + 0.01))
MOST = 40
STEP_DEG = 0.0005
"""Some fifty metres."""


@pytest.fixture
async def server(tmp_path):
    settings = load_settings({"area": "14,35,15,36", "store": str(tmp_path / "store.db"), "port": 0})
    server = Server(settings, Limits(matches_max=MOST))
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(server):
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        yield client


async def published(client, count, chance, reach_deg=0.02, ttl_s=3600.0):
    """Objects about the place, as (id, object)."""
    new = [
        GeoObject(
            chance.choice(({"tea"}, {"tea", "cake"}, {"tea", "cake", "milk"}, {"cake"})),
            LON + chance.uniform(-reach_deg, reach_deg),
            LAT + chance.uniform(-reach_deg, reach_deg),
            ttl_s,
        )
        for _ in range(count)
    ]
    return dict(zip(await client.publisher().publish(new), new, strict=True))


def expected(spec, device, objects, lon, lat):
    seen = [
        oracle.OracleObject(
            number, *device.frame.project(one.lon, one.lat), frozenset(one.keywords), 0, 1
        )
        for number, one in objects.items()
    ]
    wanted = oracle_range(spec, device.frame)
    return [
        one.object_id for one in oracle.matching(wanted, *device.frame.project(lon, lat), seen, now_ms=0)
    ]


def shown(subscription):
    return [match.object.id for match in subscription.results()]


async def test_a_walk_is_exact_and_mostly_silent(client):
    chance = random.Random(1)
    objects = await published(client, 300, chance)
    async with await client.attach("walker", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(TEA)
        lon, lat = LON, LAT
        for step in range(60):
            lon, lat = lon + chance.uniform(0, 1) * STEP_DEG, lat + chance.uniform(-1, 1) * STEP_DEG
            await device.move(lon, lat)
            if step % 10 == 5:
                objects |= await published(client, 10, chance)
            if step % 10 == 7:
                gone = chance.sample(sorted(objects), 10)
                await client.publisher().retract(*gone)
                objects = {number: one for number, one in objects.items() if number not in gone}
            await client.sync()
            assert subscription.state is SubscriptionState.EXACT
            assert shown(subscription) == expected(TEA, device, objects, lon, lat)
            assert all(match.score == 0.0 for match in subscription.results())
        assert 0 < device.counters.reports < 20


async def test_a_moving_rectangle_is_exact_for_every_client(client):
    """Wide and low, also for a private device, also where the server asks."""
    chance = random.Random(3)
    objects = await published(client, 300, chance)
    wide = Boolean({"tea"}, Rectangle(1500.0, 300.0), moving=True)
    for number, radius_m in enumerate((0.0, 200.0)):
        async with await client.attach(
            f"walker-{number}", lon=LON, lat=LAT, privacy_radius_m=radius_m
        ) as device:
            specs = [wide, replace(wide, region=RegionMode.NEAREST)][: 2 - number]
            held = [await device.subscribe(spec) for spec in specs]
            lon, lat = LON, LAT
            for step in range(40):
                lon += chance.uniform(0, 1) * STEP_DEG
                lat += chance.uniform(-1, 1) * STEP_DEG
                await device.move(lon, lat)
                if step % 10 == 5:
                    objects |= await published(client, 10, chance)
                await client.sync()
                for subscription in held:
                    assert subscription.state is SubscriptionState.EXACT
                    assert shown(subscription) == expected(wide, device, objects, lon, lat)
            assert 0 < device.counters.reports < 40
            (again,) = [one.spec for one in device.subscriptions if one.id == held[0].id]
            assert again.range == wide.range
            ids = [match.object.id for match in await device.search(wide)]
            assert ids == expected(wide, device, objects, lon, lat)


@pytest.mark.parametrize(
    ("spec", "field", "limit"),
    [
        (
            Boolean({"tea"}, Rectangle(0.0, 9.0), moving=True),
            "rectangle.width_m",
            "greater than 0, at most",
        ),
        (
            Boolean({"tea"}, Rectangle(9.0, 1e6), moving=True),
            "rectangle.height_m",
            "greater than 0, at most",
        ),
        (Boolean({"tea"}, BOX, moving=True), "moving", "false: rectangle.bounds is fixed"),
    ],
)
async def test_a_wrong_rectangle_is_an_error_with_the_field(client, spec, field, limit):
    async with await client.attach("walker", lon=LON, lat=LAT) as device:
        with pytest.raises(RefusedError, match=f"spec.boolean.{field} is .*{limit}"):
            await device.subscribe(spec)


async def test_a_device_that_holds_its_result_only_gets_location_requests(client):
    """The mode NEAREST: silent until something would enter or leave; asked about what is new."""
    chance = random.Random(1)
    objects = await published(client, 300, chance)
    spec = replace(TEA, region=RegionMode.NEAREST)
    async with await client.attach("walker", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(spec)
        lon, lat = LON, LAT
        for step in range(60):
            lon, lat = lon + chance.uniform(0, 1) * STEP_DEG, lat + chance.uniform(-1, 1) * STEP_DEG
            await device.move(lon, lat)
            if step % 10 == 5:
                objects |= await published(client, 10, chance)
            await client.sync()
            assert subscription.state is SubscriptionState.EXACT
            assert shown(subscription) == expected(spec, device, objects, lon, lat)
            assert set(subscription.region.buffer) == set(shown(subscription))
        assert 0 < device.counters.reports <= 60
        with pytest.raises(
            RefusedError, match=r"accuracy_m is 5\.0, must be with an exact position only"
        ):
            await device.move(lon, lat, accuracy_m=5.0)


async def test_a_mode_must_be_one_of_the_kind(client):
    async with await client.attach("walker", lon=LON, lat=LAT) as device:
        for spec, limit in (
            (replace(TEA, region=RegionMode.ELLIPSE), r"must be one of 1 \(ANCHORED\), 3 \(NEAREST\)"),
            (TopK({"tea"}, region=RegionMode.NEAREST), r"must be one of 1 \(ANCHORED\), 2 \(ELLIPSE\)"),
            (
                Boolean({"tea"}, BOX, region=RegionMode.NEAREST),
                "must be ANCHORED, since the range does not",
            ),
        ):
            with pytest.raises(RefusedError, match=f"spec.region is .*, {limit}"):
                await device.subscribe(spec)


async def test_a_private_device_is_exact_too(client):
    chance = random.Random(2)
    objects = await published(client, 300, chance)
    async with await client.attach("shy", lon=LON, lat=LAT, privacy_radius_m=150.0) as device:
        subscription = await device.subscribe(TEA)
        states = set()
        for _ in range(40):
            lon, lat = LON + chance.uniform(-4, 4) * STEP_DEG, LAT + chance.uniform(-4, 4) * STEP_DEG
            await device.move(lon, lat)
            await client.sync()
            states.add(subscription.state)
            assert shown(subscription) == expected(TEA, device, objects, lon, lat)
        assert states == {SubscriptionState.EXACT}


async def test_too_many_matches_start_and_end(client):
    chance = random.Random(3)
    objects = await published(client, 40, chance, reach_deg=0.001)
    spec = Boolean({"tea"}, Circle(400.0), moving=True)
    async with await client.attach("here", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(spec)
        assert subscription.state is SubscriptionState.EXACT
        more = await published(client, 60, chance, reach_deg=0.001)
        objects |= more
        await client.sync()
        everything = expected(spec, device, objects, LON, LAT)
        assert len(everything) > MOST
        assert subscription.state is SubscriptionState.TOO_MANY
        assert shown(subscription) == everything[:MOST]
        # A step changes nothing but the order; further on it asks for another part.
        await device.move(LON + 1e-5, LAT)
        assert device.counters.reports == 0
        await device.move(LON + 1e-3, LAT)
        await client.sync()
        assert device.counters.reports == 1
        assert subscription.state is SubscriptionState.TOO_MANY
        assert shown(subscription) == expected(spec, device, objects, LON + 1e-3, LAT)[:MOST]
        await client.publisher().retract(*more)
        await client.sync()
        objects = {number: one for number, one in objects.items() if number not in more}
        assert subscription.state is SubscriptionState.EXACT
        assert shown(subscription) == expected(spec, device, objects, LON + 1e-3, LAT)


async def test_it_survives_a_restart_beside_others(tmp_path):
    settings = load_settings({"area": "14,35,15,36", "store": str(tmp_path / "store.db"), "port": 0})
    chance = random.Random(4)
    server = Server(settings)
    await server.start()
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        objects = await published(client, 100, chance)
        async with await client.attach("d", lon=LON, lat=LAT) as device:
            await device.subscribe(TopK({"tea"}, k=3))
            await device.subscribe(TEA)
    await server.stop()
    server = Server(settings)
    await server.start()
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        async with await client.attach("d", lon=LON, lat=LAT) as device:
            await client.sync()
            top_k, boolean = device.subscriptions
            assert (type(top_k.spec), boolean.spec) == (
                TopK,
                Boolean((Clause(frozenset(TEA.expression)),), TEA.range, moving=True),
            )
            assert shown(boolean) == expected(TEA, device, objects, LON, LAT)
            assert len(shown(top_k)) == 3
        found = await client.search(TEA, lon=LON, lat=LAT)
        assert [match.object.id for match in found] == expected(TEA, device, objects, LON, LAT)
    await server.stop()


FIXED = (
    Boolean("tea AND (cake OR NOT milk)", Circle(700.0, (LON, LAT))),
    Boolean({"tea", "cake"}, BOX),
    Boolean("tea OR cake AND NOT tea", Polygon(L_SHAPE, (HOLE,))),
)


async def test_a_fixed_range_costs_its_device_no_report(client):
    chance = random.Random(5)
    objects = await published(client, 80, chance)
    async with await client.attach("walker", lon=LON, lat=LAT) as device:
        subscriptions = [await device.subscribe(spec) for spec in FIXED]
        lon, lat = LON, LAT
        for step in range(40):
            lon, lat = lon + chance.uniform(-3, 3) * STEP_DEG, lat + chance.uniform(-3, 3) * STEP_DEG
            await device.move(lon, lat)
            if step % 10 == 5:
                objects |= await published(client, 10, chance)
            if step % 10 == 7:
                gone = chance.sample(sorted(objects), 10)
                await client.publisher().retract(*gone)
                objects = {number: one for number, one in objects.items() if number not in gone}
            await client.sync()
            for subscription in subscriptions:
                found = shown(subscription)
                assert 0 < len(found) < len(objects)
                assert subscription.state is SubscriptionState.EXACT
                assert found == expected(subscription.spec, device, objects, lon, lat)
        assert device.counters.reports == 0
    for spec in FIXED:
        found = await client.search(spec, lon=0.0, lat=0.0)
        assert [match.object.id for match in found] == expected(spec, device, objects, LON, LAT)


async def test_every_kind_of_range_survives_a_restart(tmp_path):
    settings = load_settings({"area": "14,35,15,36", "store": str(tmp_path / "store.db"), "port": 0})
    server = Server(settings)
    await server.start()
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        objects = await published(client, 100, random.Random(7))
        async with await client.attach("d", lon=LON, lat=LAT) as device:
            for spec in FIXED:
                await device.subscribe(spec)
    await server.stop()
    server = Server(settings)
    await server.start()
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        device = await client.attach("d", lon=LON, lat=LAT)
        await client.sync()
        for subscription, spec in zip(device.subscriptions, FIXED, strict=True):
            assert subscription.spec.range == spec.range
            assert shown(subscription) == expected(spec, device, objects, LON, LAT)
    await server.stop()


WRONG = [
    (Boolean({"tea"}, Circle(0.0), moving=True), "spec.boolean.circle.radius_m"),
    (Boolean({"tea"}, Circle(1e9), moving=True), "spec.boolean.circle.radius_m"),
    (Boolean({"tea"}, Circle(math.nan)), "spec.boolean.circle.radius_m"),
    (Boolean({"tea"}, 5.0), "spec.boolean.range"),
    (Boolean({"tea"}, Circle(5.0)), "spec.boolean.circle.center"),
    (Boolean({"tea"}, Circle(5.0, (LON, LAT)), moving=True), "spec.boolean.circle.center"),
    (Boolean({"tea"}, Circle(5.0, (LON, 91.0))), "spec.boolean.circle.center.lat"),
    (Boolean({"tea"}, Circle(5.0, LON)), "spec.boolean.circle.center"),
    (Boolean({"tea"}, BOX, moving=True), "spec.boolean.moving"),
    (Boolean({"tea"}, Rectangle(5.0, 5.0)), "spec.boolean.rectangle.bounds"),
    (Boolean({"tea"}, Rectangle(5.0, math.nan), moving=True), "spec.boolean.rectangle.height_m"),
    (Boolean({"tea"}, Bounds(LON, LAT, LON, LAT + 0.1)), "spec.boolean.rectangle.bounds.lon_max"),
    (Boolean({"tea"}, Bounds(-14, LAT, LON, LAT + 0.1)), "spec.boolean.rectangle.bounds"),
    (Boolean({"tea"}, Bounds(LON, LAT, math.inf, LAT)), "spec.boolean.rectangle.bounds.lon_max"),
    (Boolean({"tea"}, Polygon(((LON, LAT), (LON + 1e-3, LAT)))), "spec.boolean.polygon"),
    (Boolean({"tea"}, Polygon(BOW_TIE)), "spec.boolean.polygon"),
    (Boolean({"tea"}, Polygon(BOW_TIE * 200)), "spec.boolean.polygon"),
    (Boolean({"tea"}, Polygon(L_SHAPE), moving=True), "spec.boolean.moving"),
    (Boolean("tea AND", BOX), "spec.boolean.expression"),
    (Boolean("NOT tea", BOX), "spec.boolean.expression"),
    (Boolean(set(), BOX), "spec.boolean.expression"),
    (Boolean({"t" * 65}, BOX), "spec.boolean.clauses[0].required[0]"),
    (Boolean(set("abcdefghijklmnopq"), BOX), "spec.boolean.clauses[0].required"),
    ("tea", "spec"),
]


async def test_wrong_specs_are_named(client):
    async with await client.attach("d", lon=LON, lat=LAT) as device:
        for spec, field in WRONG:
            with pytest.raises(RefusedError) as refused:
                await device.subscribe(spec)
            assert refused.value.field == field
            assert not device.subscriptions
