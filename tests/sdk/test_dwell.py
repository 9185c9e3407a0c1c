"""A time to dwell: objects enter the result when they have matched for so long."""

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
    Rectangle,
    RefusedError,
    SubscriptionState,
)
from nearcast.protocol.dwell import POSITIONS_MAX
from safe_region import oracle
from simulator.replay.audit import oracle_range
from tests.sdk.conftest import until
from tests.support.amounts import examples

LON, LAT = 14.5, 35.5
STEP_DEG = 0.002
"""Some two hundred metres."""
TEA = Boolean({"tea"}, Circle(400.0), moving=True, dwell_s=5.0)
FIXED = Boolean({"tea"}, Bounds(LON - 0.02, LAT - 0.02, LON + 0.02, LAT + 0.02), dwell_s=3.0)


def ids(subscription):
    return [match.object.id for match in subscription.results()]


async def sync(client, now_ms):
    """Let all arrive, and devices know what time it is."""
    await client.advance_clock(now_ms)
    await client.sync()


class Walk:
    """A device that goes about among objects that come and go; what it did, for the oracle."""

    def __init__(self, client, device, seed) -> None:
        self.chance = random.Random(seed)
        self.client, self.device = client, device
        self.now_ms = 1_000
        self.lon, self.lat = LON, LAT
        self.objects: list[oracle.OracleObject] = []
        self.paths: dict[int, list[tuple[int, float, float]]] = {}

    def place(self):
        return (self.now_ms, *self.device.frame.project(self.lon, self.lat))

    async def subscribe(self, spec):
        subscription = await self.device.subscribe(spec)
        self.paths[subscription.id] = [self.place()]
        return subscription

    async def publish(self, count):
        new = []
        for _ in range(count):
            lon, lat = (self.chance.uniform(-0.01, 0.01) for _ in range(2))
            new.append(
                GeoObject({"tea"}, self.lon + lon, self.lat + lat, self.chance.choice((4.0, 60.0)))
            )
        for object_id, one in zip(await self.client.publisher().publish(new), new, strict=True):
            point = self.device.frame.project(one.lon, one.lat)
            expiry_ms = self.now_ms + round(1_000 * one.ttl_s)
            found = oracle.OracleObject(object_id, *point, frozenset({"tea"}), self.now_ms, expiry_ms)
            self.objects.append(found)

    async def move(self):
        self.lon += self.chance.uniform(-1, 1) * STEP_DEG
        self.lat += self.chance.uniform(-1, 1) * STEP_DEG
        await self.device.move(self.lon, self.lat)
        for path in self.paths.values():
            path.append(self.place())

    async def pass_time(self, by_ms):
        self.now_ms += by_ms
        await sync(self.client, self.now_ms)

    def expected(self, subscription):
        wanted = oracle_range(subscription.spec, self.device.frame)
        path, dwell_ms = self.paths[subscription.id], round(1_000 * subscription.spec.dwell_s)
        return [
            one.object_id for one in oracle.dwelling(wanted, path, self.objects, self.now_ms, dwell_ms)
        ]


@pytest.mark.parametrize("seed", range(examples(3)))
async def test_results_are_those_that_have_dwelt(virtual, seed):
    """Several positions while a report is under way, objects that come meanwhile, and go."""
    radius_m = (0.0, 0.0, 150.0)[seed % 3]
    async with await virtual.attach("d", lon=LON, lat=LAT, privacy_radius_m=radius_m) as device:
        walk = Walk(virtual, device, seed)
        await walk.publish(60)
        specs = (TEA, replace(TEA, range=Rectangle(900.0, 500.0), dwell_s=2.5), FIXED)
        subscriptions = [await walk.subscribe(spec) for spec in specs]
        shown = 0
        for _ in range(40):
            if walk.chance.random() < 0.3:
                await walk.publish(8)
            for _ in range(walk.chance.choice((0, 0, 1, 3))):
                await walk.move()
            await walk.pass_time(walk.chance.choice((500, 1_000, 2_500)))
            for subscription in subscriptions:
                assert subscription.state is SubscriptionState.EXACT
                assert ids(subscription) == walk.expected(subscription)
                shown += len(ids(subscription))
        assert shown > 100, "nothing that is shown, nothing that is shown to be right"


async def test_entering_is_reported_on_time_and_leaving_at_once(virtual):
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(TEA)
        (object_id,) = await virtual.publisher().publish([GeoObject({"tea"}, LON, LAT, 3600.0)])
        await sync(virtual, 2_000)
        assert ids(subscription) == []
        changes = aiter(subscription.changes())
        sent = asyncio.create_task(anext(changes))
        await sync(virtual, 5_999)
        assert not sent.done()
        assert device.geofence().until_ms == 6_000
        await sync(virtual, 6_000)
        change = await sent
        assert (change.kind, change.object.id) == (ChangeKind.ENTERED, object_id)
        assert change.reason is ChangeReason.DWELLED
        await device.move(LON + 0.1, LAT)
        assert (await anext(changes)).kind is ChangeKind.LEFT
        await device.move(LON, LAT)
        await sync(virtual, 10_999)
        assert ids(subscription) == []
        await sync(virtual, 11_000)
        assert ids(subscription) == [object_id]
        found = await device.search(TEA)
        assert [match.object.id for match in found] == [object_id]


async def test_in_real_time_a_timer_reports_it(client):
    async with await client.attach("d", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(replace(TEA, dwell_s=0.2))
        await client.publisher().publish([GeoObject({"tea"}, LON, LAT, 3600.0)])
        async for change in subscription.changes():
            assert change.reason is ChangeReason.DWELLED
            break
        assert len(ids(subscription)) == 1


async def test_timers_outlive_a_broken_stream_and_no_new_instance(place, proxy, far, client):
    """What had been there keeps its time; another instance of the app begins anew."""
    (first,) = await client.publisher().publish([GeoObject({"tea"}, LON, LAT, 3600.0)])
    spec = replace(FIXED, dwell_s=0.4)
    device = await far.attach("d", lon=LON, lat=LAT)
    subscription = await device.subscribe(spec)
    await until(lambda: ids(subscription) == [first])
    proxy.cut()
    await until(lambda: subscription.state is not SubscriptionState.EXACT)
    assert ids(subscription) == [first]
    await until(lambda: subscription.state is SubscriptionState.EXACT)
    assert ids(subscription) == [first], "without a gap"
    await device.detach()
    async with nearcast.connect(place.target) as other:
        again = await other.attach("d", lon=LON, lat=LAT)
        (subscription,) = again.subscriptions
        assert subscription.spec == replace(spec, expression=subscription.spec.expression)
        assert ids(subscription) == []
        await until(lambda: ids(subscription) == [first])
        await again.detach()


async def test_more_positions_than_are_kept(virtual):
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(FIXED)
        for number in range(POSITIONS_MAX + 10):
            await device.move(LON + 1e-6 * number, LAT)
        (object_id,) = await virtual.publisher().publish([GeoObject({"tea"}, LON, LAT, 3600.0)])
        await sync(virtual, 4_000)
        assert ids(subscription) == [object_id]


async def test_a_wrong_time_is_named(client):
    async with await client.attach("d", lon=LON, lat=LAT) as device:
        for dwell_s in (-1.0, float("nan"), "5", 1e6, 0.0004, 10**400):
            with pytest.raises(RefusedError, match=r"spec\.boolean\.dwell_s is "):
                await device.subscribe(replace(TEA, dwell_s=dwell_s))
