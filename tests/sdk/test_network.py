"""Connections that break, stall, lag and move: devices answer meanwhile, say so, and catch up."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter

import pytest

import nearcast
from nearcast import (
    Boolean,
    Circle,
    GeoObject,
    Polygon,
    RefusedError,
    SubscriptionState,
    TopK,
    UnavailableError,
)
from nearcast.protocol.clock import Clock
from tests.sdk.conftest import PATIENCE_S, Place, until
from tests.sdk.test_reconnect import SPEC, ids, is_exact, row
from tests.support.proxy import Pair, Proxy

State = SubscriptionState


class Narrow(Proxy):
    """A relay whose connections stall once they have carried a number of bytes to the client."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.bytes_max = math.inf
        self._carried: Counter[Pair] = Counter()

    def passing(self, pair: Pair, data: bytes, *, to_server: bool) -> None:
        self._carried[pair] += 0 if to_server else len(data)
        if self._carried[pair] > self.bytes_max:
            pair.flowing.clear()


@pytest.fixture
async def narrow(place):
    proxy = Narrow(place.target)
    proxy.target = await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
def attempts(monkeypatch):
    """The attempts for which streams have waited; the waits themselves are left out."""
    found = []

    def waited_s(attempt, _jitter):
        found.append(attempt)
        return 0.0

    monkeypatch.setattr("nearcast.transport.device_stream.backoff_s", waited_s)
    return found


async def best(client, lon):
    return [match.object.id for match in await client.search(SPEC, lon=lon, lat=35.5)]


def lists(subscription):
    return [match.object.id for match in subscription.results()]


async def test_offline_it_shows_results_inside_its_region_and_is_stale_outside(place, client, proxy, far):
    await client.publisher().publish(row(100))
    device = await far.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    assert subscription.state is State.EXACT
    proxy.is_open = False
    proxy.cut()
    await until(lambda: subscription.state is State.OFFLINE)
    await device.move(lon=14.501, lat=35.5)
    assert subscription.state is State.OFFLINE
    assert lists(subscription) == await best(client, 14.501), "nothing has happened: it is exact"
    await device.move(lon=14.9, lat=35.5)
    assert subscription.state is State.OFFLINE_STALE
    await device.move(lon=14.5, lat=35.5)
    assert subscription.state is State.OFFLINE
    (news,) = await client.publisher().publish(row(1, start=14.5))
    assert news not in ids(subscription)
    proxy.is_open = True
    await until(lambda: subscription.state is State.EXACT)
    await until(lambda: news in ids(subscription))
    assert device.counters.reports == 0, "it was resumed, and sent nothing"
    assert place.server.coordinator.counters.deltas_resent == 1
    await device.detach()
    assert subscription.state is State.ENDED


async def test_objects_expire_offline(virtual_place, virtual):
    """With too few left inside the reach the list may lack something, and that is said."""
    short = [GeoObject({"sushi"}, 14.5, 35.5, 5.0) for _ in range(2)]
    ids_short = await virtual.publisher().publish(short)
    await virtual.publisher().publish(row(100))
    device = await virtual.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(TopK({"sushi"}, k=2, alpha=0.9))
    assert ids(subscription) == ids_short
    await virtual_place.stop()
    await until(lambda: subscription.state is State.OFFLINE)
    virtual.clock.observe(7_000)
    device.pass_time()
    assert not set(ids(subscription)) & set(ids_short)
    assert subscription.state in {State.OFFLINE, State.OFFLINE_STALE}
    virtual.clock.observe(5_000_000)
    device.pass_time()
    assert ids(subscription) == []
    assert subscription.state is State.OFFLINE_STALE


async def test_a_stalled_connection_delays_no_other_and_catches_up(client, proxy, far):
    await client.publisher().publish(row(100))
    stalled = await (await far.attach("stalled", lon=14.5, lat=35.5)).subscribe(SPEC)
    other = await (await client.attach("other", lon=14.5, lat=35.5)).subscribe(SPEC)
    proxy.stall()
    before = ids(stalled)
    publisher = client.publisher()
    for _ in range(50):
        (news,) = await publisher.publish(row(1, start=14.5))
    await client.sync()
    assert ids(other) == await best(client, 14.5)
    assert ids(stalled) == before
    proxy.resume()
    await until(lambda: ids(stalled) == ids(other))
    assert proxy.accepted_count == 1, "on the same connection"
    assert news


@pytest.mark.parametrize("is_fleet", [False, True])
async def test_another_network(client, proxy, far, is_fleet):
    """The old connection is a black hole. The app knows, and devices resume on a new one at once."""
    await client.publisher().publish(row(100))
    async with far.fleet() as fleet:
        attach = fleet.attach if is_fleet else far.attach
        devices = [await attach(f"d{i}", lon=14.5, lat=35.5) for i in range(3)]
        subscriptions = [await device.subscribe(SPEC) for device in devices]
        proxy.stall()
        (news,) = await client.publisher().publish(row(1, start=14.5))
        await devices[0].move(lon=14.8, lat=35.5)
        assert subscriptions[0].state is State.STALE
        await far.network_changed()
        await until(lambda: all(one.state is State.EXACT for one in subscriptions))
        assert await is_exact(far, subscriptions[0], 14.8)
        assert all(news in ids(one) for one in subscriptions[1:])
        assert proxy.accepted_count == 2


async def test_a_device_that_reattaches_in_a_fleet_gets_nothing_of_its_earlier_instance(
    client, proxy, far, caplog
):
    """What was on its way to that one is a gap to the new one, for which all would have to be resumed."""
    await client.publisher().publish(row(100))
    async with far.fleet() as fleet:
        device = await fleet.attach("d", lon=14.5, lat=35.5)
        await device.subscribe(SPEC)
        other = await (await fleet.attach("other", lon=14.5, lat=35.5)).subscribe(SPEC)
        proxy.stall()
        await client.publisher().publish(row(5, start=14.5))
        await client.sync()  # the news is written
        await device.detach()
        again = asyncio.create_task(fleet.attach("d", lon=14.5, lat=35.5))
        await asyncio.sleep(0)
        proxy.resume()
        (subscription,) = (await again).subscriptions
        await until(lambda: subscription.state is other.state is State.EXACT)
        assert ids(subscription) == ids(other) == await best(far, 14.5)
        assert proxy.accepted_count == 1
    assert "resuming" not in caplog.text


async def test_a_dead_connection_is_noticed_by_itself(client, proxy):
    await client.publisher().publish(row(10))
    async with nearcast.connect(proxy.target, keepalive_s=1.0) as far:
        subscription = await (await far.attach("d", lon=14.5, lat=35.5)).subscribe(SPEC)
        proxy.is_open = False
        proxy.stall()
        await until(lambda: subscription.state is State.OFFLINE)
        proxy.is_open = True
        await until(lambda: subscription.state is State.EXACT)
        assert await is_exact(far, subscription, 14.5)


async def test_the_server_notices_a_dead_connection_too(tmp_path):
    place = Place(tmp_path / "store.db", keepalive_ms=1_000)
    await place.start()
    proxy = Proxy(place.target)
    async with nearcast.connect(await proxy.start()) as far:
        await (await far.attach("d", lon=14.5, lat=35.5)).subscribe(SPEC)
        session = place.server.coordinator.sessions["d"]
        proxy.stall()
        await until(lambda: not session.is_attached)
    await proxy.stop()
    await place.stop()


async def test_slow_messages_arrive_in_order(client, proxy, far):
    await client.publisher().publish(row(100))
    device = await far.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    proxy.delay_s = 0.02
    for step in range(5):
        await device.move(lon=14.1 + 0.17 * step, lat=35.5)
        await client.publisher().publish(row(2, start=14.1 + 0.17 * step))
    assert await is_exact(far, subscription, 14.1 + 0.17 * 4)


async def test_cut_again_and_again_while_things_happen(place, client, proxy, far):
    """No gap, no step back, and in the end the list is right."""
    publisher = client.publisher()
    alive = await publisher.publish(row(100))
    device = await far.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    for round_number in range(20):
        alive += await publisher.publish(row(3, start=14.5 + 0.001 * round_number))
        await publisher.retract(alive.pop(0))
        await device.move(lon=14.5 + 0.015 * (round_number % 5), lat=35.5)
        if round_number % 2:
            count = proxy.accepted_count
            proxy.cut()
            await until(lambda: proxy.accepted_count > count)  # noqa: B023 - awaited here
    await until(lambda: subscription.state is State.EXACT)
    await far.sync()
    assert await is_exact(client, subscription, 14.5 + 0.015 * 4)
    seen = [one.hello.version for one in proxy.requests() if one.HasField("hello")]
    assert len(seen) > 10
    assert seen == sorted(seen)
    place.server.coordinator.check()


@pytest.mark.parametrize("lasts", [False, True])
async def test_waits_grow_while_streams_end_before_devices_have_caught_up(
    client, narrow, attempts, monkeypatch, lasts
):
    """A welcome arrives each time, and what follows is too much for the connection."""
    if lasts:  # each stream is open for longer than that
        monkeypatch.setattr("nearcast.transport.device_stream.BACKOFF_MAX_S", -1.0)
    async with nearcast.connect(narrow.target) as far:
        device = await far.attach("d", lon=14.5, lat=35.5)
        subscription = await device.subscribe(Boolean({"a"}, Circle(5_000.0), moving=True))
        narrow.stall()
        large = [GeoObject({"a"}, 14.5, 35.5, 3600.0, payload=bytes(3_000)) for _ in range(200)]
        await client.publisher().publish(large)
        narrow.bytes_max = 10_000
        firsts = []
        for _ in range(5):
            count = len(attempts)
            narrow.cut()
            await until(lambda: len(attempts) > count)  # noqa: B023 - awaited here
            await until(lambda: device.is_online)
            assert subscription.state is not State.EXACT
            firsts.append(attempts[count])
        assert firsts == [1] * 5 if lasts else attempts == list(range(1, len(attempts) + 1))
        narrow.bytes_max = math.inf
        narrow.cut()
        await until(lambda: subscription.state is State.EXACT)
        attempts.clear()
        narrow.cut()
        await until(lambda: attempts)
        assert attempts[0] == 1, "it had caught up"


class SuspendedTime:
    """The clock of a machine that was suspended. The event loop's clock stood still meanwhile."""

    def __init__(self) -> None:
        self.asleep_ns = 0

    def clock_gettime_ns(self, number):
        return time.clock_gettime_ns(number) + self.asleep_ns

    def monotonic_ns(self):
        return time.monotonic_ns() + self.asleep_ns


@pytest.mark.parametrize("calls", [True, False], ids=["a call", "the timer"])
async def test_what_has_expired_during_a_suspend_is_noticed(client, monkeypatch, calls):
    """The server was suspended as well: both are on one machine."""
    suspended = SuspendedTime()
    monkeypatch.setattr("safe_region.steady_clock.time", suspended)
    if not calls:
        monkeypatch.setattr("nearcast.device._TIMER_S_MAX", 0.01)
    short = [GeoObject({"sushi"}, 14.5, 35.5, 300.0) for _ in range(60)]
    await client.publisher().publish([*short, *row(100)])
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    before = ids(subscription)
    suspended.asleep_ns = 301 * 10**9
    if calls:
        assert subscription.state is State.STALE
        async with asyncio.timeout(PATIENCE_S):
            await subscription.exact_results()
    await until(lambda: subscription.state is State.EXACT)
    assert device.counters.reports > 0
    assert ids(subscription) == await best(client, 14.5)
    assert not set(ids(subscription)) & set(before)


async def test_a_publisher_with_a_broken_connection(client, proxy, far):
    """With a key it is tried again and published once; without one, nobody knows, and that is said."""
    publisher = far.publisher()
    await publisher.publish([GeoObject({"a"}, 14.5, 35.5, 3600.0, key="warm")])
    proxy.stall()
    keyed = asyncio.create_task(publisher.publish([GeoObject({"a"}, 14.5, 35.5, 3600.0, key="k")]))
    await asyncio.sleep(0.05)
    await far.network_changed()
    (object_id,) = await keyed
    assert await publisher.publish([GeoObject({"a"}, 14.5, 35.5, 3600.0, key="k")]) == [object_id]
    proxy.stall()
    keyless = asyncio.create_task(publisher.publish([GeoObject({"a"}, 14.5, 35.5, 3600.0)]))
    await asyncio.sleep(0.05)
    await far.network_changed()
    with pytest.raises(UnavailableError):
        await keyless
    assert len(await client.search(TopK({"a"}), lon=14.5, lat=35.5)) in {2, 3}


async def test_a_cancelled_publish_is_cancelled(proxy, far):
    publisher = far.publisher()
    await publisher.publish([GeoObject({"a"}, 14.5, 35.5, 3600.0)])
    proxy.stall()
    publishing = asyncio.create_task(publisher.publish([GeoObject({"a"}, 14.5, 35.5, 3600.0)]))
    await asyncio.sleep(0.05)
    publishing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await publishing
    proxy.resume()
    assert await publisher.publish([GeoObject({"a"}, 14.5, 35.5, 3600.0)])


async def test_a_refusal_is_not_tried_again(client):
    with pytest.raises(RefusedError):
        await client.publisher().publish([GeoObject({"a"}, 80.0, 35.5, 3600.0, key="k")])


async def test_a_call_under_way_when_the_network_changes(proxy, far):
    """It is not cancelled: nobody has cancelled the caller. It says that its connection is gone."""
    await far.publisher().publish(row(1))
    proxy.stall()
    search = asyncio.create_task(far.search(SPEC, lon=14.5, lat=35.5))
    await asyncio.sleep(0.05)
    await far.network_changed()
    with pytest.raises(UnavailableError):
        await search


async def test_a_clock_continues_after_a_leap():
    clock = Clock()
    clock.adjust(1_000_000, is_virtual=False)
    clock.observe(5_000_000)
    before_ms = clock.now_ms()
    assert before_ms >= 5_000_000
    await until(lambda: clock.now_ms() > before_ms)


async def test_a_clock_reports_leaps_only():
    clock = Clock()
    clock.adjust(1_000_000, is_virtual=False)
    leaps = []
    clock.on_leap = lambda: leaps.append(clock.now_ms())
    clock.observe(clock.now_ms() + 40)
    assert not leaps
    clock.observe(clock.now_ms() + 80)
    assert len(leaps) == 1, "many small leaps are a leap, too"
    clock.adjust(1_000_000, is_virtual=False)
    clock.adjust(1_000_400, is_virtual=False)
    assert len(leaps) == 2, "timers were set by the clock that was set back"


async def test_a_leap_in_one_result_applies_to_all(virtual_place, virtual):
    """Time goes on, and only one list of one device is told. All of the client's have lost objects."""
    publisher = virtual.publisher()
    await publisher.publish([GeoObject({"tea"}, 14.1, 35.1, 100.0) for _ in range(10)])
    await publisher.publish([GeoObject({"tea"}, 14.9, 35.9, 9000.0) for _ in range(50)])
    sent = await virtual.attach("told", lon=14.12, lat=35.12)
    other = await virtual.attach("other", lon=14.1, lat=35.1)
    news = await sent.subscribe(SPEC)
    lists_of_tea = [await one.subscribe(TopK({"tea"}, k=3, alpha=0.9)) for one in (sent, other)]
    async with nearcast.connect(virtual_place.target) as elsewhere:
        await elsewhere.advance_clock(200_000)
        (news_id,) = await elsewhere.publisher().publish([GeoObject({"sushi"}, 14.5, 35.5, 60.0)])
    await until(lambda: ids(news) == [news_id])
    expected = [await best_tea(virtual, lon, lat) for lon, lat in ((14.12, 35.12), (14.1, 35.1))]
    await until(lambda: all(one.state is State.EXACT for one in lists_of_tea))
    assert [ids(one) for one in lists_of_tea] == expected
    assert expected[0]


async def best_tea(client, lon, lat):
    found = await client.search(TopK({"tea"}, k=3, alpha=0.9), lon=lon, lat=lat)
    return [match.object.id for match in found]


@pytest.mark.parametrize("is_fleet", [False, True])
async def test_the_wall_clock_is_ahead_when_the_server_comes_back(place, client, is_fleet, monkeypatch):
    """All objects have expired while it was away, by its clock; devices have their word for it."""
    await client.publisher().publish(row(100))
    async with client.fleet() as fleet:
        attach = fleet.attach if is_fleet else client.attach
        devices = [await attach(f"d{i}", lon=14.5, lat=35.5) for i in range(3)]
        subscriptions = [await device.subscribe(SPEC) for device in devices]
        await place.stop()
        begin_ns = time.time_ns()
        monkeypatch.setattr(time, "time_ns", lambda: begin_ns + 7_200 * 10**9)
        await place.start()
        await until(lambda: all(one.state is State.EXACT for one in subscriptions))
        assert [ids(one) for one in subscriptions] == [[], [], []]


async def test_a_new_device_of_a_fleet_fails_at_once_without_a_server(place, client):
    """The others of its fleet wait for the server, and come back when it does."""
    await client.publisher().publish(row(10, start=14.5))
    async with client.fleet() as fleet:
        known = await fleet.attach("known", lon=14.5, lat=35.5)
        subscription = await known.subscribe(SPEC)
        await place.stop()
        await until(lambda: subscription.state is State.OFFLINE)
        with pytest.raises(UnavailableError):
            await fleet.attach("newcomer", lon=14.5, lat=35.5)
        await place.start()
        await until(lambda: subscription.state is State.EXACT)
        assert await fleet.attach("newcomer", lon=14.5, lat=35.5)


@pytest.mark.filterwarnings("ignore::nearcast.PlacementWarning")
@pytest.mark.parametrize("name", ["", "fence"])
async def test_a_fence_about_a_place_on_the_equator_is_resumed_as_it_is(place, client, name):
    """The server takes a coordinate such as 1e-18 for 0."""
    angles = [i * math.pi / 4 for i in range(8)]
    corners = [(14.5 + 0.01 * math.cos(angle), 0.01 * math.sin(angle)) for angle in angles]
    assert any(0.0 < abs(lat) < 1e-17 for _, lat in corners)
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(Boolean({"tea"}, Polygon(corners)), name=name)
    number = subscription.id
    counters = place.server.coordinator.counters
    await client.network_changed()
    await until(lambda: counters.hellos == 2 and subscription.state is State.EXACT)
    await subscription.exact_results()
    await client.sync()
    assert counters.hellos == 2
    assert (subscription.id, list(device.subscriptions)) == (number, [subscription])
    assert place.server.coordinator.matching.engine.subscription_count == 1
