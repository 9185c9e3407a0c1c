"""Private devices and poor fixes, through a real server; and what the bytes on the socket say."""

from __future__ import annotations

import math
import random

import pytest

import nearcast
from nearcast import (
    Boolean,
    Circle,
    GeoObject,
    Reason,
    RefusedError,
    RegionMode,
    SubscriptionState,
    TopK,
)
from nearcast.v1 import geometry_pb2, objects_pb2, subscriptions_pb2
from safe_region import oracle
from safe_region.earth.frame import Area, Frame
from tests.sdk.channel import Channel
from tests.sdk.conftest import Place, until
from tests.support.tap import Tap

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
RADIUS_M = 500.0
SPECS = (TopK({"sushi"}, k=3, alpha=0.9), TopK({"sushi", "tea"}, k=5, alpha=0.5))


def somewhere(chance, side_m=4_000.0):
    return FRAME.unproject(chance.uniform(-side_m, side_m), chance.uniform(-side_m, side_m))


async def published(client, chance, count):
    """Publish objects; return what the oracle has to know of them."""
    new = []
    for _ in range(count):
        words = frozenset(chance.sample(("sushi", "tea", "books"), chance.randint(1, 2)))
        new.append(GeoObject(words, *somewhere(chance), 3600.0))
    found = {}
    for object_id, one in zip(await client.publisher().publish(new), new, strict=True):
        point = FRAME.project(one.lon, one.lat)
        found[object_id] = oracle.OracleObject(object_id, *point, one.keywords, 0, 2**62)
    return found


def expected(spec, objects, lon, lat):
    wanted = oracle.OracleSubscription(
        frozenset(spec.keywords), spec.k, spec.alpha, spec.similarity.name.lower()
    )
    here = FRAME.project(lon, lat)
    found = oracle.top_k(wanted, *here, FRAME.maxdist_m, objects.values(), 1)
    return [match.object_id for match in found]


def ids(subscription):
    return [match.object.id for match in subscription.results()]


class Walk:
    """A private device behind a tap, and everything it was at."""

    def __init__(self, client, device, subscriptions, objects, chance) -> None:
        self.client, self.device, self.subscriptions = client, device, subscriptions
        self.objects, self.chance = objects, chance
        self.x_m = self.y_m = 0.0
        self.seen = []

    async def step(self):
        if self.chance.random() < 0.2:
            self.x_m, self.y_m = (self.chance.uniform(-3_000.0, 3_000.0) for _ in range(2))
        self.x_m += self.chance.uniform(-300.0, 300.0)
        self.y_m += self.chance.uniform(-300.0, 300.0)
        lon, lat = FRAME.unproject(self.x_m, self.y_m)
        self.seen.append((lon, lat))
        await self.device.move(lon, lat, heading_deg=123.456, speed_mps=7.654321)
        await self.compare()

    async def compare(self):
        await self.client.sync()
        for subscription in self.subscriptions:
            assert subscription.state is SubscriptionState.EXACT
            assert ids(subscription) == expected(subscription.spec, self.objects, *self.seen[-1])


async def test_the_true_position_never_leaves_a_private_device(place, client):
    chance = random.Random(1)
    objects = await published(client, chance, 400)
    tap = Tap(place.target)
    async with nearcast.connect(await tap.start()) as private:
        start = FRAME.unproject(0.0, 0.0)
        device = await private.attach(
            "d", lon=start[0], lat=start[1], privacy_radius_m=RADIUS_M, rng=random.Random(2)
        )
        subscriptions = [await device.subscribe(spec) for spec in SPECS]
        walk = Walk(private, device, subscriptions, objects, chance)
        walk.seen.append(start)
        await walk.compare()
        for number in range(120):
            await walk.step()
            if number % 40 == 20:
                count = len(tap.connections) + 1
                tap.cut()
                await until(lambda: len(tap.connections) == count)  # noqa: B023 - awaited here
                await until(lambda: subscriptions[0].state is SubscriptionState.EXACT)
                await walk.compare()
            if number % 40 == 30:
                objects |= await published(client, chance, 20)
                await walk.compare()
        found = await device.search(TopK({"tea"}, k=4))
        assert [one.object.id for one in found] == expected(TopK({"tea"}, k=4), objects, *walk.seen[-1])
    await tap.stop()
    check_what_was_said(tap, walk)


def check_what_was_said(tap, walk):
    requests = tap.requests()
    kinds = {request.WhichOneof("command") for request in requests}
    assert kinds >= {"hello", "subscribe", "report", "unsubscribe", "ping"}
    assert sum(request.WhichOneof("command") == "hello" for request in requests) == 4
    sent = []
    for request in requests:
        kind = request.WhichOneof("command")
        if kind in ("hello", "subscribe", "report"):
            message = getattr(request, kind)
            assert message.margin_m == RADIUS_M
            sent.append((message.position.lon, message.position.lat))
        if kind == "report":
            assert not request.report.HasField("heading_deg")
            assert not request.report.HasField("speed_mps")
    # Not even in bytes that belong to nothing, and in no encoding as a double.
    output = tap.doubles()
    secret = {number for position in walk.seen for number in position} | {123.456, 7.654321}
    assert not output & secret
    # Nearer to any true position than chance has it: no. The nearest of n points in a disc.
    points = dict.fromkeys(sent)
    assert len(points) > 20
    near_m = RADIUS_M / math.sqrt(len(points) * len(walk.seen)) / 100.0
    for lon, lat in points:
        for other in walk.seen:
            assert distance_m((lon, lat), other) > near_m


def distance_m(left, right):
    a, b = FRAME.project(*left), FRAME.project(*right)
    return math.dist(a, b)


def test_blurs_are_uniform_in_the_disc():
    from nearcast.protocol.location import Location  # noqa: PLC0415

    chance = random.Random(3)
    offsets = []
    for _ in range(4_000):
        where = Location(14.5, 35.5, 0.0, RADIUS_M, chance)
        shown = where.shared(FRAME)
        point = FRAME.project(shown.lon, shown.lat)
        offsets.append((point.x_m, point.y_m))
    squares = [(x * x + y * y) / RADIUS_M**2 for x, y in offsets]
    assert max(squares) <= 1.0
    # Standard deviations of the means: 1/sqrt(12 n) and R/2 /sqrt(n); five of them are allowed.
    assert abs(sum(squares) / 4_000 - 0.5) < 5.0 * math.sqrt(1.0 / 12.0 / 4_000)
    for axis in (0, 1):
        mean = sum(offset[axis] for offset in offsets) / 4_000
        assert abs(mean) < 5.0 * RADIUS_M / 2.0 / math.sqrt(4_000)


async def test_a_device_at_rest_sends_one_point(virtual_place, virtual):
    """Objects expire again and again, so that reports are due; there is nothing to average."""
    publisher = virtual.publisher()
    chance = random.Random(4)
    for wave in range(12):
        await publisher.publish(
            [GeoObject({"sushi"}, *somewhere(chance), 10.0 * (wave + 1)) for _ in range(20)]
        )
    tap = Tap(virtual_place.target)
    async with nearcast.connect(await tap.start()) as private:
        device = await private.attach(
            "d", lon=14.5, lat=35.5, privacy_radius_m=RADIUS_M, rng=random.Random(8)
        )
        subscription = await device.subscribe(SPECS[0])
        for wave in range(12):
            await private.advance_clock(1_000 + 10_000 * (wave + 1))
            await device.move(14.5 + 0.00001 * wave, 35.5)
            await private.sync()
            assert subscription.state is SubscriptionState.EXACT
        assert device.counters.reports >= 2
    await tap.stop()
    reports = [one.report.position for one in tap.requests() if one.HasField("report")]
    assert len({(one.lon, one.lat) for one in reports}) == 1


async def test_the_mode_ellipse_is_refused(client):
    device = await client.attach("d", lon=14.5, lat=35.5, privacy_radius_m=RADIUS_M)
    lamps = TopK({"sushi"}, region=RegionMode.ELLIPSE)
    with pytest.raises(RefusedError, match="exact position") as refused:
        await device.subscribe(lamps)
    assert (refused.value.reason, refused.value.field) == (Reason.INVALID_FIELD, "spec.region")
    other = await client.attach("e", lon=14.5, lat=35.5)
    await other.subscribe(lamps)
    with pytest.raises(RefusedError, match="accuracy_m"):
        await other.move(14.5, 35.6, accuracy_m=10.0)
    assert other.geofence().lat == 35.5


async def test_a_radius_beyond_the_servers_limit_is_refused(client):
    with pytest.raises(RefusedError) as refused:
        await client.attach("d", lon=14.5, lat=35.5, privacy_radius_m=6_000.0)
    assert (refused.value.field, refused.value.limit) == ("hello.margin_m", "0 to 5000 metres")


BAD = [
    ({"privacy_radius_m": -1.0}, "privacy_radius_m"),
    ({"accuracy_m": math.nan}, "accuracy_m"),
    ({"prefetch_m": math.inf}, "prefetch_m"),
    ({"lon": 181.0}, "position.lon"),
]


async def test_numbers_out_of_their_limits(client):
    for changes, field in BAD:
        with pytest.raises(RefusedError) as refused:
            await client.attach("d", **{"lon": 14.5, "lat": 35.5, **changes})
        assert refused.value.field == field


async def test_poor_fixes_get_larger_buffers(client):
    chance = random.Random(5)
    objects = await published(client, chance, 400)
    device = await client.attach("d", lon=14.5, lat=35.5, accuracy_m=200.0)
    subscription = await device.subscribe(SPECS[0])
    assert subscription.state is SubscriptionState.EXACT
    assert device.counters.reports == 0
    region = subscription.region
    for _ in range(200):
        # Wherever within 200 m it really is, it holds the result.
        angle, share = chance.uniform(0.0, 2.0 * math.pi), chance.uniform(0.0, 1.0)
        x_m, y_m = 200.0 * share * math.cos(angle), 200.0 * share * math.sin(angle)
        best = region.evaluate(x_m, y_m, 1).best
        there = expected(SPECS[0], objects, *FRAME.unproject(x_m, y_m))
        assert [object_id for _, object_id in best] == there
    await device.move(14.5, 35.5, accuracy_m=900.0)
    await client.sync()
    assert subscription.state is SubscriptionState.EXACT
    assert device.counters.reports == 1
    for _ in range(20):
        await device.move(14.5, 35.5, accuracy_m=chance.uniform(0.0, 900.0))
    assert device.counters.reports == 1


@pytest.fixture
async def stingy(tmp_path):
    place = Place(tmp_path / "store.db", margin_buffer_max=9, buffer_extra=8)
    await place.start()
    async with nearcast.connect(place.target) as client:
        yield client
    await place.stop()


async def test_too_vague_is_a_state_and_no_loop(stingy):
    chance = random.Random(6)
    objects = await published(stingy, chance, 400)
    device = await stingy.attach("d", lon=14.5, lat=35.5, accuracy_m=2_000.0)
    subscription = await device.subscribe(SPECS[0])
    await stingy.sync()
    assert subscription.state is SubscriptionState.TOO_VAGUE
    assert ids(subscription) == expected(SPECS[0], objects, 14.5, 35.5), "the best of what it holds"
    for _ in range(30):
        await device.move(14.5 + chance.uniform(-0.01, 0.01), 35.5, accuracy_m=2_000.0)
        await stingy.sync()
        assert subscription.state is SubscriptionState.TOO_VAGUE
    assert device.counters.reports == 0
    await device.move(14.54, 35.5, accuracy_m=2_000.0)  # 3.6 km: beyond the margin
    await stingy.sync()
    assert device.counters.reports == 1
    assert subscription.state is SubscriptionState.TOO_VAGUE
    await device.move(14.54, 35.5, accuracy_m=5.0)
    await stingy.sync()
    assert subscription.state is SubscriptionState.EXACT
    assert ids(subscription) == expected(SPECS[0], objects, 14.54, 35.5)


async def test_a_fix_poorer_than_the_server_takes(client):
    await published(client, random.Random(7), 400)
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPECS[0])
    await device.move(14.5, 35.5, accuracy_m=20_000.0)
    await client.sync()
    await client.sync()
    assert device.counters.reports == 1
    assert subscription.state is SubscriptionState.TOO_VAGUE
    await device.move(14.5, 35.5)
    assert subscription.state is SubscriptionState.EXACT


async def test_private_devices_of_a_fleet_where_the_buffer_does_not_suffice(stingy):
    """Who is too vague says so, and is quiet within its radius; who says EXACT is."""
    chance = random.Random(9)
    objects = await published(stingy, chance, 400)
    radii = (100.0, 400.0, 1_500.0)
    states = set()
    async with stingy.fleet() as fleet:
        devices = [
            await fleet.attach(
                f"d{i}", lon=14.5, lat=35.5, privacy_radius_m=radius_m, rng=random.Random(i)
            )
            for i, radius_m in enumerate(radii)
        ]
        subscriptions = [await device.subscribe(SPECS[0]) for device in devices]
        for _ in range(60):
            lon, lat = somewhere(chance, 1_000.0)
            for device in devices:
                await device.move(lon, lat)
            await stingy.sync()
            for device, subscription in zip(devices, subscriptions, strict=True):
                states.add((device.id, subscription.state))
                if subscription.state is SubscriptionState.EXACT:
                    assert ids(subscription) == expected(SPECS[0], objects, lon, lat)
                else:
                    assert subscription.state is SubscriptionState.TOO_VAGUE
    assert ("d0", SubscriptionState.EXACT) in states
    assert ("d0", SubscriptionState.TOO_VAGUE) not in states
    assert ("d2", SubscriptionState.TOO_VAGUE) in states
    # It moves by up to 2.8 km and is often within its margin of where it was.
    assert devices[2].counters.reports < 40


async def test_a_search_of_a_device_that_is_too_vague_is_refused(stingy):
    """A list that is not exact is not returned; where the margin is covered, it is exact."""
    chance = random.Random(11)
    objects = await published(stingy, chance, 400)
    exact = await stingy.attach("exact", lon=14.5, lat=35.5)
    found = await exact.search(SPECS[0])
    assert [match.object.id for match in found] == expected(SPECS[0], objects, 14.5, 35.5)
    covered = await stingy.attach("covered", lon=14.5, lat=35.5, privacy_radius_m=20.0)
    found = await covered.search(SPECS[0])
    assert [match.object.id for match in found] == expected(SPECS[0], objects, 14.5, 35.5)
    poor = await stingy.attach("poor", lon=14.5, lat=35.5, accuracy_m=2_000.0)
    with pytest.raises(RefusedError, match="small enough for the server to cover it") as refused:
        await poor.search(SPECS[0])
    assert (refused.value.reason, refused.value.field) == (Reason.INVALID_FIELD, "accuracy_m")
    assert refused.value.value == "2000.0"
    assert not poor.subscriptions
    # Of a private one it depends on the point that it shows: the device itself knows where it is.
    refusals = []
    for seed in range(20):
        vague = await stingy.attach(
            f"vague-{seed}",
            lon=14.5,
            lat=35.5,
            privacy_radius_m=2_000.0,
            rng=random.Random(seed),
        )
        try:
            found = [match.object.id for match in await vague.search(SPECS[0])]
        except RefusedError as error:
            refusals.append(error)
        else:
            assert found == expected(SPECS[0], objects, 14.5, 35.5)
    assert {error.field for error in refusals} == {"privacy_radius_m"}
    assert 2 <= len(refusals) < 20


async def test_a_search_of_a_private_device_with_too_many_matches_is_refused(client):
    """The server sends those nearest to the point that it is shown, which is another one."""
    here = [GeoObject({"sushi"}, 14.5 + 1e-6 * i, 35.5, 3600.0) for i in range(1_001)]
    await client.publisher().publish(here)
    spec = Boolean({"sushi"}, Circle(700.0), moving=True)
    exact = await client.attach("exact", lon=14.5, lat=35.5)
    assert len(await exact.search(spec)) == 1_000
    private = await client.attach("private", lon=14.5, lat=35.5, privacy_radius_m=100.0)
    with pytest.raises(RefusedError, match="privacy_radius_m"):
        await private.search(spec)


MODES = [
    TopK({"sushi"}, k=2, region=RegionMode.ELLIPSE),
    TopK({"sushi"}, k=2, region=RegionMode.STATIONARY),
    Boolean({"sushi"}, Circle(700.0), moving=True, region=RegionMode.NEAREST),
]


@pytest.mark.parametrize("vague", [{"accuracy_m": 20.0}, {"privacy_radius_m": 200.0}])
@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_vague_device_attaches_with_subscriptions_of_an_earlier_instance(
    tmp_path, vague, is_restarted
):
    """What needs an exact position is TOO_VAGUE until there is one; it can be ended without."""
    place = Place(tmp_path / "store.db")
    await place.start()
    async with nearcast.connect(place.target) as client:
        near = [GeoObject({"sushi"}, 14.5 + 0.0001 * i, 35.5, 3600.0) for i in range(6)]
        await client.publisher().publish(near)
        before = await client.attach("d", lon=14.5, lat=35.5)
        for spec in (*MODES, SPECS[0]):
            await before.subscribe(spec)
        await before.detach()
        if is_restarted:
            await place.stop()
            await place.start()
        device = await client.attach("d", lon=14.5, lat=35.5, **vague)
        *exact_only, anchored = device.subscriptions
        await client.sync()
        assert anchored.state is SubscriptionState.EXACT
        assert {one.state for one in exact_only} == {SubscriptionState.TOO_VAGUE}
        assert not any(one.results() for one in exact_only)
        # The server asks it nothing, and it says nothing.
        await client.publisher().publish([GeoObject({"sushi"}, 14.5, 35.5, 3600.0)])
        await device.move(14.5001, 35.5, accuracy_m=vague.get("accuracy_m", 0.0))
        await client.sync()
        assert {one.state for one in exact_only} == {SubscriptionState.TOO_VAGUE}
        assert device.counters.reports == 0
        for one in exact_only:
            assert math.isinf(one.geofence().radius_m)
        await client.network_changed()
        await until(lambda: anchored.state is SubscriptionState.EXACT)
        assert {one.state for one in exact_only} == {SubscriptionState.TOO_VAGUE}
        await exact_only.pop().unsubscribe()
        if "accuracy_m" in vague:
            await device.move(14.5, 35.5)
            await client.sync()
            for one in (*exact_only, anchored):
                assert one.state is SubscriptionState.EXACT
                found = await client.search(one.spec, lon=14.5, lat=35.5)
                assert ids(one) == [match.object.id for match in found]
            with pytest.raises(RefusedError, match="accuracy_m"):
                await device.move(14.5, 35.5, accuracy_m=10.0)
        place.server.coordinator.check()
    await place.stop()


async def test_an_exact_device_reconnects_as_a_vague_one(client, place):
    """Another client may do that, of the same instance: nothing is evaluated at a place that is vague."""
    await client.publisher().publish([GeoObject({"sushi"}, 14.5, 35.5, 3600.0) for _ in range(6)])
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(MODES[0])
    assert subscription.state is SubscriptionState.EXACT
    device._session.location.move(14.5, 35.5, 20.0)  # noqa: SLF001 - the SDK itself refuses it
    await client.network_changed()
    handle = place.server.coordinator.sessions["d"].handles[subscription.id]
    await until(lambda: not place.server.coordinator.matching.is_awake(handle))
    await until(lambda: subscription.state is SubscriptionState.TOO_VAGUE)
    await client.publisher().publish([GeoObject({"sushi"}, 14.5, 35.5, 3600.0)])
    await device.move(14.5, 35.5)
    await client.sync()
    assert subscription.state is SubscriptionState.EXACT
    place.server.coordinator.check()


def test_a_response_that_counts_an_object_that_has_expired_is_not_the_last_word():
    """The object ended while the response was on its way: a further report gets others in its place."""
    passed_ms = 0
    line = Channel(privacy_radius_m=200.0, steady=lambda: passed_ms)
    spec = TopK({"sushi"}, k=1, alpha=0.5)
    mine = line.device.subscribe(spec)
    line.welcome({})
    (asked,) = [one.subscribe for one in line.sent if one.HasField("subscribe")]
    place = FRAME.project(asked.position.lon, asked.position.lat)
    here = geometry_pb2.Point(x_m=place.x_m, y_m=place.y_m)

    def entry(object_id, r_m, expiry_ms):
        item = objects_pb2.Object(id=object_id, point=here, created_ms=1, expiry_ms=expiry_ms)
        return subscriptions_pb2.Entry(object=item, r_m=r_m)

    bound = {"anchor": here, "reach": {"length_m": 1_000.0, "object_id": 9}}
    best, next_best = entry(1, 0.0, 2_000), entry(2, 900.0, 60_000)
    cause = subscriptions_pb2.CAUSE_SUBSCRIBED
    line.delta(mine.id, 1, snapshot=True, cause=cause, add=[best, next_best], time_ms=1_000, **bound)
    assert mine.state is SubscriptionState.EXACT
    line.kinds()
    passed_ms = 1_500
    line.device.pass_time()
    assert line.kinds() == ["report"]
    cause = subscriptions_pb2.CAUSE_REPORTED
    line.delta(mine.id, 2, cause=cause, report_sequence=1, time_ms=1_900, **bound)
    assert line.kinds() == [], "the server counts the object until its time has passed on"
    assert mine.state is SubscriptionState.STALE
    passed_ms = 2_099
    line.device.pass_time()
    assert line.kinds() == []
    assert line.device.next_expiry_ms() == 3_100
    passed_ms = 2_100
    line.device.pass_time()
    assert line.kinds() == ["report"]
    line.delta(mine.id, 3, cause=cause, report_sequence=2, time_ms=2_600, **bound)
    assert line.kinds() == [], "no report helps"
    assert mine.state is SubscriptionState.TOO_VAGUE
