"""Stationary subscriptions: the device holds its result, and the server keeps it right."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from nearcast import (
    ChangeKind,
    ChangeReason,
    GeoObject,
    Last,
    RefusedError,
    RegionMode,
    Similarity,
    SubscriptionState,
    TopK,
)
from safe_region import oracle
from tests.sdk.conftest import until
from tests.support.amounts import examples

LON, LAT = 14.5, 35.5
HERE = TopK({"tea"}, k=3, alpha=0.9, region=RegionMode.STATIONARY)


def tea(i=0, ttl_s=3_600.0):
    """An object near the device, the nearer the smaller the number."""
    return GeoObject({"tea"}, LON + 0.0001 * i, LAT, ttl_s)


def ids(subscription):
    return [match.object.id for match in subscription.results()]


async def sync(client, now_ms):
    """Let all arrive, and devices know what time it is."""
    await client.advance_clock(now_ms)
    await client.sync()


async def test_the_next_best_comes_when_one_expires(virtual):
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(HERE)
        published = await virtual.publisher().publish(
            [tea(i, 5.0 if i == 1 else 3_600.0) for i in range(10)]
        )
        await virtual.sync()
        assert ids(subscription) == published[:3]
        assert len(subscription.region.buffer) == 3, "nothing is held beyond the result"
        changes = aiter(subscription.changes())
        for _ in range(3):
            await anext(changes)
        await sync(virtual, 6_000)
        assert ids(subscription) == [published[0], *published[2:4]]
        assert subscription.state is SubscriptionState.EXACT
        seen = [await anext(changes), await anext(changes)]
        assert {(one.kind, one.object.id) for one in seen} == {
            (ChangeKind.LEFT, published[1]),
            (ChangeKind.ENTERED, published[3]),
        }
        assert {one.reason for one in seen} <= {ChangeReason.EXPIRED, ChangeReason.REFILLED}
        assert device.counters.reports == 0
        await virtual.publisher().retract(published[0])
        await virtual.sync()
        assert ids(subscription) == published[2:5]


async def test_in_real_time_a_timer_sends_replacements(client):
    """The server wakes when something is due, though nothing arrives."""
    async with await client.attach("d", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(replace(HERE, window=Last(seconds=0.5)))
        first = await client.publisher().publish([tea(i) for i in range(3)])
        await until(lambda: ids(subscription) == first)
        lasting = await device.subscribe(replace(HERE, k=1))
        await client.publisher().publish([tea(-1, 0.3)])
        await until(lambda: ids(lasting) == first[:1])
        await until(lambda: ids(subscription) == [])
        assert device.counters.reports == 0


async def test_a_device_that_moves_reports(virtual):
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        subscription = await device.subscribe(HERE)
        published = await virtual.publisher().publish([tea(10 * i) for i in range(10)])
        for step in range(1, 5):
            await device.move(LON + 0.0021 * step, LAT)
            await virtual.sync()
            assert device.counters.reports == step
            assert subscription.state is SubscriptionState.EXACT
            nearest = sorted(range(10), key=lambda i: (abs(10 * i - 21 * step), published[i]))
            assert ids(subscription) == [published[i] for i in nearest[:3]]


@pytest.mark.parametrize("seed", range(examples(2)))
async def test_lists_are_right_whatever_happens(virtual, seed):
    chance = random.Random(seed)
    window = (None, Last(seconds=20), Last(count=25))[seed % 3]
    async with await virtual.attach("d", lon=LON, lat=LAT) as device:
        specs = [
            replace(HERE, keywords={"tea", "cake"}, k=k, alpha=0.5, similarity=similarity, window=window)
            for k, similarity in ((1, Similarity.JACCARD), (5, Similarity.TFIDF), (20, Similarity.DICE))
        ]
        subscriptions = await asyncio.gather(*map(device.subscribe, specs))
        now_ms, objects = 1_000, []
        publisher, frame = virtual.publisher(), device.frame
        for _ in range(40):
            posts = [
                GeoObject(
                    set(chance.sample(("tea", "cake", "wine"), chance.randint(1, 3))),
                    LON + chance.uniform(-0.01, 0.01),
                    LAT,
                    chance.choice((3.0, 30.0, 3_600.0)),
                )
                for _ in range(chance.randint(1, 6))
            ]
            for one, post in zip(await publisher.publish(posts), posts, strict=True):
                place = frame.project(post.lon, post.lat)
                expiry_ms = now_ms + round(1_000 * post.ttl_s)
                objects.append(
                    oracle.OracleObject(one, *place, frozenset(post.keywords), now_ms, expiry_ms)
                )
            now_ms += chance.choice((0, 1_000, 7_000))
            await sync(virtual, now_ms)
            for subscription, spec in zip(subscriptions, specs, strict=True):
                last = spec.window or Last()
                wanted = oracle.OracleSubscription(
                    frozenset(spec.keywords),
                    spec.k,
                    spec.alpha,
                    spec.similarity.name.lower(),
                    window=oracle.OracleWindow(
                        None if last.seconds is None else 1_000 * last.seconds, last.count, len(objects)
                    ),
                )
                best = oracle.top_k(wanted, *frame.project(LON, LAT), frame.maxdist_m, objects, now_ms)
                assert ids(subscription) == [one.object_id for one in best]
        assert device.counters.reports == 0


async def test_a_position_that_is_not_exact_is_refused(virtual):
    async with await virtual.attach("d", lon=LON, lat=LAT, privacy_radius_m=50.0) as device:
        with pytest.raises(RefusedError, match="with an exact position only"):
            await device.subscribe(HERE)
