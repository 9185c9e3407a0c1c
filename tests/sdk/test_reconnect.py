"""Streams that break, servers that go away and come back, apps that are installed again."""

from __future__ import annotations

import asyncio
import random

import nearcast
from nearcast import GeoObject, SubscriptionState, TopK
from nearcast.transport.backoff import BACKOFF_FIRST_S, BACKOFF_MAX_S, backoff_s
from server.errors import StoreError
from tests.sdk.conftest import until

SPEC = TopK({"sushi"}, k=3, alpha=0.9)


def row(count, start=14.0):
    return [GeoObject({"sushi"}, start + 0.01 * i, 35.5, 3600.0) for i in range(count)]


async def is_exact(client, subscription, lon):
    await client.sync()
    found = await client.search(SPEC, lon=lon, lat=35.5)
    assert [match.object.id for match in found] == [match.object.id for match in subscription.results()]
    return True


async def test_a_device_outlives_its_server(place, client):
    await client.publisher().publish(row(100))
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    before = subscription.results()
    await place.stop()
    await until(lambda: subscription.state is SubscriptionState.OFFLINE)
    assert subscription.results() == before, "the known result stays visible"
    await device.move(lon=14.8, lat=35.5)
    await place.start()
    await until(lambda: subscription.state is SubscriptionState.EXACT)
    assert await is_exact(client, subscription, 14.8)
    # And news arrive again.
    (news,) = await client.publisher().publish(row(1, start=14.8))
    await until(lambda: subscription.results()[0].object.id == news or news in ids(subscription))


def ids(subscription):
    return [match.object.id for match in subscription.results()]


async def test_requests_made_offline_are_sent_after_the_reconnect(place, client):
    await client.publisher().publish(row(10, start=14.5))
    async with client.fleet() as fleet:
        device = await fleet.attach("d", lon=14.5, lat=35.5)
        dropped = await device.subscribe(TopK({"tea"}))
        await place.stop()
        await until(lambda: dropped.state is SubscriptionState.OFFLINE)
        await dropped.unsubscribe()
        asking = asyncio.create_task(device.subscribe(SPEC))
        await asyncio.sleep(0)
        await place.start()
        subscription = await asking
        assert await is_exact(client, subscription, 14.5)
        assert place.server.coordinator.sessions["d"].handles.keys() == {subscription.id}


async def test_a_resume_sends_only_the_difference(place, client):
    """The stream breaks while the server lives: the link is cut below the SDK's feet."""
    await client.publisher().publish(row(100))
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    received = device.counters.objects
    (sender,) = place.server.listener.devices.senders
    sender.write = None  # the server's side of the stream fails at its next word
    await client.publisher().publish(row(1, start=14.5))
    await until(lambda: device.counters.objects > received)
    assert await is_exact(client, subscription, 14.5)
    assert device.counters.objects == received + 1
    assert sender not in place.server.listener.devices.senders, "it came over another stream"
    assert device.counters.reports == 0


async def test_a_new_instance_of_the_app_finds_its_subscriptions(place):
    async with nearcast.connect(place.target) as client:
        await client.publisher().publish(row(10, start=14.5))
        device = await client.attach("d", lon=14.5, lat=35.5)
        await device.subscribe(SPEC)
    await place.stop()
    await place.start()
    async with nearcast.connect(place.target) as client:
        device = await client.attach("d", lon=14.55, lat=35.5)
        (subscription,) = device.subscriptions
        assert subscription.spec == TopK(frozenset({"sushi"}), 3, 0.9)
        assert await is_exact(client, subscription, 14.55)
        other = await device.subscribe(TopK({"tea"}))
        assert other.id != subscription.id


async def test_a_publisher_with_keys_does_not_notice(place, client):
    publisher = client.publisher()
    first = await publisher.publish([GeoObject({"sushi"}, 14.5, 35.5, 3600.0, key="k")])
    await place.stop()
    again = asyncio.create_task(publisher.publish([GeoObject({"sushi"}, 14.5, 35.5, 3600.0, key="k")]))
    await place.start()
    assert await again == first


async def test_an_unsubscribe_that_the_disk_refuses_is_sent_again(place, client, monkeypatch):
    await client.publisher().publish(row(10, start=14.5))
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    handles = place.server.coordinator.sessions["d"].handles

    def full(*_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(place.server.store, "commit", full)
        await subscription.unsubscribe()
        assert handles
    await client.sync()
    await client.sync()
    assert not handles
    assert device.subscriptions == []


def test_backoff_doubles_under_full_jitter():
    jitter = random.Random(1)
    for attempt in range(40):
        bound = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0**attempt)
        draws = [backoff_s(attempt, jitter) for _ in range(200)]
        assert all(0.0 <= draw <= bound for draw in draws)
        assert max(draws) > 0.9 * bound
        assert min(draws) < 0.1 * bound
