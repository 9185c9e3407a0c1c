"""Windows: which of the live objects count, by their age."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

import nearcast
from nearcast import (
    Boolean,
    Bounds,
    ChangeKind,
    ChangeReason,
    Circle,
    GeoObject,
    Last,
    RefusedError,
    SubscriptionState,
    TopK,
)
from tests.sdk.conftest import Place, until
from tests.support.amounts import examples

LON, LAT = 14.5, 35.5
NEAR = TopK({"tea"}, k=3, alpha=0.9)
AROUND = Boolean({"tea"}, Circle(2_000.0), moving=True)
HERE = Boolean({"tea"}, Bounds(LON - 0.02, LAT - 0.02, LON + 0.02, LAT + 0.02))
KINDS = {"top-k": NEAR, "around": AROUND, "here": HERE}


def tea(i=0, ttl_s=3_600.0, key=""):
    """An object near the device, the nearer the smaller the number."""
    return GeoObject({"tea"}, LON + 0.0001 * i, LAT, ttl_s, key=key)


def ids(subscription):
    return [match.object.id for match in subscription.results()]


async def sync(client, now_ms):
    """Let all arrive, and devices know what time it is."""
    await client.advance_clock(now_ms)
    await client.sync()


@pytest.fixture(params=KINDS)
def spec(request):
    return KINDS[request.param]


async def test_objects_that_are_too_old_leave(virtual, spec):
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(replace(spec, window=Last(seconds=10)))
        publisher = virtual.publisher()
        first = await publisher.publish([tea(1), tea(2, ttl_s=4.0)])
        await sync(virtual, 3_000)
        second = await publisher.publish([tea(3)])
        await sync(virtual, 4_999)
        assert ids(subscription) == [*first, *second]
        assert device.geofence().until_ms == 5_000
        changes = aiter(subscription.changes())
        for _ in range(3):
            await anext(changes)
        await sync(virtual, 5_000)
        gone = await anext(changes)
        assert (gone.kind, gone.object.id, gone.reason) == (
            ChangeKind.LEFT,
            first[1],
            ChangeReason.EXPIRED,
        )
        await sync(virtual, 10_999)
        assert ids(subscription) == [first[0], *second]
        deltas = device.counters.deltas
        await sync(virtual, 11_000)
        assert ids(subscription) == second
        gone = await anext(changes)
        assert (gone.kind, gone.object.id, gone.reason) == (
            ChangeKind.LEFT,
            first[0],
            ChangeReason.OUT_OF_WINDOW,
        )
        assert subscription.state is SubscriptionState.EXACT
        assert device.counters.deltas == deltas, "the device knows it without a word"


async def test_the_last_so_many_published(virtual, spec):
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(replace(spec, window=Last(count=3)))
        publisher = virtual.publisher()
        first = await publisher.publish([tea(1), tea(2)])
        await virtual.sync()
        assert ids(subscription) == first
        changes = aiter(subscription.changes())
        for _ in range(2):
            await anext(changes)
        (far,) = await publisher.publish([GeoObject({"coffee"}, LON + 0.4, LAT, 60.0)])
        (third,) = await publisher.publish([tea(3)])
        await virtual.sync()
        assert ids(subscription) == [first[1], third]
        gone = await anext(changes)
        assert (gone.kind, gone.reason) == (ChangeKind.LEFT, ChangeReason.OUT_OF_WINDOW)
        await publisher.retract(far, third)
        await virtual.sync()
        assert ids(subscription) == [first[1]], "nothing comes back in its place"
        many = await publisher.publish([tea(10 + i) for i in range(7)])
        await virtual.sync()
        assert ids(subscription) == many[-3:], "of a batch larger than the window the last"


async def test_a_replacement_counts_again(virtual):
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(replace(NEAR, window=Last(count=2)))
        publisher = virtual.publisher()
        (old,) = await publisher.publish([tea(1, key="a")])
        (other,) = await publisher.publish([tea(2)])
        (same,) = await publisher.publish([tea(1, key="a")])
        assert same == old, "a retry is no publication"
        (new,) = await publisher.publish([tea(3, key="a")])
        await virtual.sync()
        assert ids(subscription) == [other, new]


async def test_search_has_windows_too(virtual, spec):
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        publisher = virtual.publisher()
        first = await publisher.publish([tea(1)])
        await sync(virtual, 5_000)
        second = await publisher.publish([tea(2), tea(3)])
        for window, expected in (
            (Last(seconds=5), first + second),
            (Last(seconds=4), second),
            (Last(count=1), second[1:]),
            (None, first + second),
        ):
            found = await device.search(replace(spec, window=window))
            assert [match.object.id for match in found] == expected


async def test_a_window_survives_a_restart(tmp_path, spec):
    """Also what was published last and is gone: it has had its number."""
    place = Place(tmp_path / "store.db", virtual_time=True)
    await place.start()
    async with nearcast.connect(place.target) as client:
        await client.advance_clock(1_000)
        device = await client.attach("d", lon=LON, lat=LAT)
        subscriptions = [
            await device.subscribe(replace(spec, window=window))
            for window in (Last(count=3), Last(seconds=10))
        ]
        publisher = client.publisher()
        first = await publisher.publish([tea(i) for i in range(3)])
        await client.advance_clock(6_000)
        (last,) = await publisher.publish([tea(9)])
        await publisher.retract(last)
        await client.sync()
        expected = [first[1:], first]
        assert list(map(ids, subscriptions)) == expected
        await place.stop()
        await place.start()
        await until(lambda: all(one.state is SubscriptionState.EXACT for one in subscriptions))
        await client.sync()
        assert list(map(ids, subscriptions)) == expected
        await sync(client, 11_000)
        (new,) = await publisher.publish([tea(5)])
        await client.sync()
        assert list(map(ids, subscriptions)) == [[first[2], new], [new]]
        await device.detach()
    async with nearcast.connect(place.target) as client:
        again = await client.attach("d", lon=LON, lat=LAT)
        windows = {one.spec.window for one in again.subscriptions}
        assert windows == {Last(count=3), Last(seconds=10.0)}
        await again.detach()
    await place.stop()


async def test_without_a_stream_only_a_window_of_time_is_exact(client, far, proxy, spec):
    device = await far.attach("d", lon=LON, lat=LAT)
    timed = await device.subscribe(replace(spec, window=Last(seconds=600)))
    counted = await device.subscribe(replace(spec, window=Last(count=100)))
    expected = await client.publisher().publish([tea(i) for i in range(5)])
    await until(lambda: ids(timed) == ids(counted) == expected[: 3 if spec is NEAR else 5])
    proxy.is_open = False
    proxy.cut()
    await until(lambda: timed.state is SubscriptionState.OFFLINE)
    assert counted.state is SubscriptionState.OFFLINE_STALE
    assert ids(counted) == ids(timed)
    proxy.is_open = True
    await until(lambda: counted.state is timed.state is SubscriptionState.EXACT)
    await device.detach()


async def drive(place, seed, ttl_s, window):
    """Let devices go about among objects that come and go; return what they said and were sent."""
    chance = random.Random(seed)
    await place.start()
    async with nearcast.connect(place.target) as client:
        await client.advance_clock(1_000)
        publisher, now_ms, sent = client.publisher(), 1_000, []
        devices = [await client.attach(f"d{i}", lon=LON, lat=LAT) for i in range(6)]
        lists = [
            await device.subscribe(replace(kind, window=window))
            for device in devices
            for kind in (NEAR, AROUND)
        ]
        places = [LON] * len(devices)
        for _ in range(40):
            now_ms += chance.choice((500, 1_000, 4_000))
            # Reports and objects come on different streams: each step ends before the next one starts.
            # One object a request: the server divides requests into slices by the time that they take.
            await client.advance_clock(now_ms)
            await client.sync()
            for _ in range(chance.randint(0, 25)):
                await publisher.publish([tea(chance.uniform(-2_000, 2_000), ttl_s)])
            await client.sync()
            for i, device in enumerate(devices):
                places[i] += chance.uniform(-0.02, 0.02)
                await device.move(places[i], LAT, heading_deg=chance.choice((None, 90.0)))
            await client.sync()
            assert all(one.state is SubscriptionState.EXACT for one in lists)
            sent.append([ids(one) for one in lists])
        counters = [(device.counters.reports, device.counters.objects) for device in devices]
        await asyncio.gather(*(device.detach() for device in devices))
    await place.stop()
    return sent, counters


@pytest.mark.parametrize("seed", range(examples(1)))
async def test_a_window_of_time_costs_as_much_as_lifetimes_that_end_with_it(tmp_path, seed):
    """Same lists, same reports, same objects sent."""
    ran = [
        await drive(Place(tmp_path / f"{name}.db", virtual_time=True), seed, ttl_s, window)
        for name, ttl_s, window in (("lives", 20.0, None), ("window", 3_600.0, Last(seconds=20)))
    ]
    assert ran[0] == ran[1]
    assert sum(reports for reports, _ in ran[0][1]) > 20


WRONG_WINDOWS = [
    (Last(), "spec.window is Last"),
    (Last(seconds=5, count=5), "spec.window is Last"),
    (Last(seconds=0), "spec.window.seconds is 0"),
    (Last(seconds=-1), "spec.window.seconds is -1"),
    (Last(seconds=float("nan")), "spec.window.seconds is nan"),
    (Last(seconds=1e12), "spec.window.seconds is 1000000000000.0"),
    (Last(count=0), "spec.window.count is 0"),
    (Last(count=2.5), "spec.window.count is 2.5"),
    (Last(count=10**30), "spec.window.count is 9007199254740992"),
]


async def test_a_wrong_window_is_named(client, spec):
    async with await client.attach("d", lon=LON, lat=LAT) as device:
        for window, said in WRONG_WINDOWS:
            with pytest.raises(RefusedError, match=said):
                await device.subscribe(replace(spec, window=window))
        assert await device.subscribe(replace(spec, window=Last(seconds=1.0)))
