"""Objects with areas: a rectangle, or a polygon, which ranges match where they touch it."""

from __future__ import annotations

import random

import pytest

import nearcast
from nearcast import Boolean, Bounds, Circle, GeoObject, Polygon, RefusedError, SubscriptionState, TopK
from safe_region import oracle
from safe_region.earth.frame import Area, Frame
from safe_region.oracle.plane import OraclePolygon, OracleRectangle, is_within
from server.main import Server
from server.settings import load_settings
from simulator.replay.audit import oracle_range

LON, LAT = 14.5, 35.5
STEP_DEG = 0.0005
TEA = Boolean({"tea"}, Circle(400.0), moving=True)
L_SHAPE = ((-3, -3), (3, -3), (3, 0), (0, 0), (0, 3), (-3, 3))
HOLE = ((-2, -2), (-1, -2), (-1, -1), (-2, -1))


def ring(lon, lat, size, corners=L_SHAPE):
    return tuple((lon + size * x, lat + size * y) for x, y in corners)


FIXED = (
    Boolean({"tea"}, Circle(500.0, (LON, LAT))),
    Boolean({"tea"}, Bounds(LON, LAT - 0.003, LON + 0.004, LAT)),
    Boolean("tea AND NOT milk", Polygon(ring(LON, LAT, 0.003), (ring(LON, LAT, 0.003, HOLE),))),
)


@pytest.fixture
async def start(tmp_path):
    settings = load_settings({"area": "14,35,15,36", "store": str(tmp_path / "store.db"), "port": 0})
    servers = []

    async def start():
        servers.append(Server(settings))
        await servers[-1].start()
        return servers[-1]

    yield start
    await servers[-1].stop()


def an_object(chance):
    words = chance.choice(({"tea"}, {"tea", "milk"}, {"milk"}))
    lon, lat = LON + chance.uniform(-0.01, 0.01), LAT + chance.uniform(-0.01, 0.01)
    kind = chance.choice(("point", "rectangle", "polygon"))
    size = chance.choice((0.0001, 0.0005, 0.002))
    if kind == "point":
        return GeoObject(words, lon, lat, 3600.0)
    if kind == "rectangle":
        area = Bounds(lon, lat, lon + size * chance.random(), lat + size * chance.random())
        return GeoObject(words, ttl_s=3600.0, area=area)
    return GeoObject(words, ttl_s=3600.0, area=Polygon(ring(lon, lat, size / 3)))


def plane(area, frame):
    if isinstance(area, Bounds):
        low, high = frame.project(area.lon_min, area.lat_min), frame.project(area.lon_max, area.lat_max)
        return OracleRectangle(*low, *high)
    return None if area is None else OraclePolygon((tuple(frame.project(*one) for one in area.outer),))


class World:
    """What was published, with the points that the server has chosen."""

    def __init__(self, client):
        self.client = client
        self.frame = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
        self.seen = {}

    async def publish(self, objects):
        ids = await self.client.publisher().publish(objects)
        everywhere = Boolean("tea OR milk", Circle(50_000.0, (LON, LAT)))
        found = {
            one.object.id: one.object for one in await self.client.search(everywhere, lon=LON, lat=LAT)
        }
        for number, one in zip(ids, objects, strict=True):
            live = found[number]
            assert live.area == one.area
            point, area = self.frame.project(live.lon, live.lat), plane(one.area, self.frame)
            assert area is None or is_within(area, point, None), "the point lies in the area"
            words = frozenset(one.keywords)
            self.seen[number] = oracle.OracleObject(number, *point, words, 0, 1, area)
        return ids

    async def retract(self, ids):
        await self.client.publisher().retract(*ids)
        for number in ids:
            del self.seen[number]

    def expected(self, spec, lon, lat):
        place = self.frame.project(lon, lat)
        if isinstance(spec, TopK):
            wanted = oracle.OracleSubscription(frozenset(spec.keywords), spec.k, spec.alpha, "jaccard")
            found = oracle.top_k(wanted, *place, self.frame.maxdist_m, self.seen.values(), 0)
        else:
            found = oracle.matching(oracle_range(spec, self.frame), *place, self.seen.values(), 0)
        return [one.object_id for one in found]


def shown(subscription):
    return [match.object.id for match in subscription.results()]


async def walk(client, world, device, subscriptions, chance, steps):
    lon, lat = LON, LAT
    for step in range(steps):
        lon, lat = lon + chance.uniform(-1, 2) * STEP_DEG, lat + chance.uniform(-1, 1) * STEP_DEG
        await device.move(lon, lat)
        if step % 10 == 5:
            await world.publish([an_object(chance) for _ in range(20)])
        if step % 10 == 7:
            await world.retract(chance.sample(sorted(world.seen), 20))
        await client.sync()
        for subscription in subscriptions:
            assert subscription.state is SubscriptionState.EXACT
            assert shown(subscription) == world.expected(subscription.spec, lon, lat)
    return lon, lat


async def test_every_range_finds_areas_exactly_and_a_restart_keeps_them(start):
    chance = random.Random(1)
    specs = (TEA, *FIXED, TopK({"tea"}, k=5))
    server = await start()
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        world = World(client)
        await world.publish([an_object(chance) for _ in range(300)])
        async with await client.attach("walker", lon=LON, lat=LAT) as device:
            subscriptions = [await device.subscribe(spec) for spec in specs]
            lon, lat = await walk(client, world, device, subscriptions, chance, 60)
            assert 0 < device.counters.reports < 40
            areas = [one.area for one in world.seen.values() if one.object_id in shown(subscriptions[0])]
            assert {type(one) for one in areas} >= {OracleRectangle, OraclePolygon}
    await server.stop()
    server = await start()
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        for spec in specs:
            found = await client.search(spec, lon=lon, lat=lat)
            assert [match.object.id for match in found] == world.expected(spec, lon, lat)
        world.client = client
        async with await client.attach("walker", lon=LON, lat=LAT) as device:
            await client.sync()
            await walk(client, world, device, device.subscriptions, chance, 20)


async def test_a_private_device_is_exact_too(start):
    chance = random.Random(2)
    server = await start()
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        world = World(client)
        await world.publish([an_object(chance) for _ in range(300)])
        async with await client.attach("shy", lon=LON, lat=LAT, privacy_radius_m=150.0) as device:
            subscription = await device.subscribe(TEA)
            await walk(client, world, device, [subscription], chance, 40)


async def test_the_same_area_is_a_retry_and_another_one_a_replacement(start):
    server = await start()
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        publisher = client.publisher()

        def post(area):
            return publisher.publish([GeoObject({"tea"}, ttl_s=3600.0, key="a", area=area)])

        box = Bounds(LON, LAT, LON + 0.02, LAT + 0.02)
        corners = ((LON, LAT), (LON + 0.02, LAT), (LON + 0.02, LAT + 0.02), (LON, LAT + 0.02))
        (first,) = await post(box)
        assert await post(box) == [first]
        (second,) = await post(Polygon(corners))
        assert second > first
        assert await post(Polygon(corners)) == [second]
        (third,) = await publisher.publish([GeoObject({"tea"}, LON + 0.01, LAT + 0.01, 3600.0, key="a")])
        (found,) = await client.search(TopK({"tea"}), lon=LON, lat=LAT)
        assert (found.object.id, found.object.area) == (third, None)


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (GeoObject({"tea"}, ttl_s=60.0), "objects[0].position"),
        (GeoObject({"tea"}, LON, ttl_s=60.0), "objects[0].position"),
        (GeoObject({"tea"}, LON, LAT), "objects[0].ttl_s"),
        (GeoObject({"tea"}, LON, LAT, 60.0, area=Bounds(14, 35, 14.1, 35.1)), "objects[0].position"),
        (GeoObject({"tea"}, ttl_s=60.0, area=Circle(5.0, (LON, LAT))), "objects[0].area"),
        (
            GeoObject(
                {"tea"}, ttl_s=60.0, area=Polygon(ring(LON, LAT, 0.1), (ring(LON, LAT, 0.1, HOLE),))
            ),
            "objects[0].area.polygon.holes",
        ),
    ],
)
async def test_an_invalid_place_is_refused_before_it_is_sent(start, new, field):
    server = await start()
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        with pytest.raises(RefusedError) as refused:
            await client.publisher().publish([new])
        assert refused.value.field == field
