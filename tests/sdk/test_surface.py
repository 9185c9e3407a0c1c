"""What the SDK promises, through a real server."""

from __future__ import annotations

import asyncio
import math

import pytest

import nearcast
from nearcast import (
    ChangeKind,
    ChangeReason,
    ClosedError,
    GeoObject,
    Reason,
    RefusedError,
    Similarity,
    SubscriptionState,
    TopK,
    UnavailableError,
)
from safe_region.earth.ground import ground_distance_m
from tests.sdk.conftest import until


def sushi(lon, key="", ttl_s=3600.0, keywords=("sushi",), payload=b""):
    return GeoObject(keywords, lon, 35.5, ttl_s, payload, key)


def ids_of(subscription):
    return [match.object.id for match in subscription.results()]


async def test_a_device_gets_its_list_and_keeps_it(client):
    publisher = client.publisher()
    near, far, other = await publisher.publish(
        [sushi(14.51, payload=b"20 %"), sushi(14.60), sushi(14.50, keywords={"books"})]
    )
    device = await client.attach("device-7", lon=14.50, lat=35.5)
    subscription = await device.subscribe(TopK({" SUSHI", "tea"}, k=5, alpha=0.4))
    assert subscription.state is SubscriptionState.EXACT
    assert ids_of(subscription) == [near, far]
    best = subscription.results()[0]
    assert best.object.payload == b"20 %"
    assert best.object.keywords == {"sushi"}
    assert best.distance_m == ground_distance_m(14.50, 35.5, 14.51, 35.5)
    away_m = device.frame.x_m_per_deg * 0.01
    expected = 0.4 * away_m / device.frame.maxdist_m + 0.6 * 0.5
    assert best.score == pytest.approx(expected)
    await device.move(lon=14.60, lat=35.5)
    assert ids_of(subscription) == [far, near], "a result changes without a word on the wire"
    assert device.counters.reports == 0
    assert other not in ids_of(subscription)


async def test_silence_inside_the_region_and_a_report_outside(client):
    publisher = client.publisher()
    await publisher.publish([sushi(14.0 + 0.01 * i) for i in range(100)])
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(TopK({"sushi"}, k=1, alpha=0.9))
    sent = device.counters.bytes_sent
    for i in range(10):
        await device.move(lon=14.5 + 0.0001 * i, lat=35.5)
    await client.sync()
    assert device.counters.reports == 0
    assert device.counters.moves == 10
    await device.move(lon=14.7, lat=35.5)
    assert subscription.state is SubscriptionState.STALE
    assert device.counters.reports == 1
    await client.sync()
    assert subscription.state is SubscriptionState.EXACT
    assert device.counters.bytes_sent > sent
    found = await client.search(subscription.spec, lon=14.7, lat=35.5)
    assert [match.object.id for match in found] == ids_of(subscription)
    assert [match.score for match in found] == [match.score for match in subscription.results()]


class Listener:
    """Collects changes in the background."""

    def __init__(self, subscription):
        self.seen = []
        self.ended = False
        self._task = asyncio.create_task(self._listen(subscription))

    async def _listen(self, subscription):
        async for change in subscription.changes():
            self.seen.append((change.kind, change.object.id, change.rank, change.reason))
        self.ended = True

    async def next(self, count=1):
        await until(lambda: len(self.seen) >= count)
        found, self.seen = self.seen[:count], self.seen[count:]
        return found


async def test_changes_have_objects_and_reasons(client):
    publisher = client.publisher()
    (first,) = await publisher.publish([sushi(14.50)])
    device = await client.attach("d", lon=14.50, lat=35.5)
    subscription = await device.subscribe(TopK({"sushi"}, k=2))
    listener = Listener(subscription)
    assert await listener.next() == [(ChangeKind.ENTERED, first, 0, ChangeReason.SUBSCRIBED)]
    (second,) = await publisher.publish([sushi(14.52, key="k")])
    assert await listener.next() == [(ChangeKind.ENTERED, second, 1, ChangeReason.PUBLISHED)]
    await device.move(lon=14.52, lat=35.5)
    assert await listener.next(2) == [
        (ChangeKind.REORDERED, second, 0, ChangeReason.MOVED),
        (ChangeKind.REORDERED, first, 1, ChangeReason.MOVED),
    ]
    (third,) = await publisher.publish([sushi(14.53, key="k")])
    assert await listener.next(2) == [
        (ChangeKind.LEFT, second, 0, ChangeReason.REPLACED),
        (ChangeKind.ENTERED, third, 0, ChangeReason.REPLACED),
    ]
    await publisher.retract(third)
    assert await listener.next() == [(ChangeKind.LEFT, third, 0, ChangeReason.RETRACTED)]
    await subscription.unsubscribe()
    await until(lambda: listener.ended)
    assert device.subscriptions == []


async def test_expiry_reaches_the_device_without_a_word(client):
    publisher = client.publisher()
    (short,) = await publisher.publish([sushi(14.5, ttl_s=2.0)])  # longer than it takes to subscribe
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(TopK({"sushi"}, k=2))
    listener = Listener(subscription)
    assert (await listener.next())[0][:2] == (ChangeKind.ENTERED, short)
    received = device.counters.bytes_received
    assert await listener.next() == [(ChangeKind.LEFT, short, 0, ChangeReason.EXPIRED)]
    assert device.counters.bytes_received == received
    assert subscription.results() == []


async def test_virtual_time(virtual):
    publisher = virtual.publisher()
    (short,) = await publisher.publish([sushi(14.5, ttl_s=5.0)])
    device = await virtual.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(TopK({"sushi"}))
    await virtual.advance_clock(5_999)
    assert ids_of(subscription) == [short]
    await virtual.advance_clock(6_000)
    assert ids_of(subscription) == []
    with pytest.raises(RefusedError, match="at least 6000") as refused:
        await virtual.advance_clock(5_000)
    assert refused.value.reason is Reason.TIME_BACKWARDS


async def test_publishing_again_under_a_key(client):
    publisher = client.publisher()
    (first,) = await publisher.publish([sushi(14.5, key="k")])
    assert await publisher.publish([sushi(14.5, key="k")]) == [first]
    (second,) = await publisher.publish([sushi(14.5, key="k", payload=b"new")])
    assert second > first
    found = await client.search(TopK({"sushi"}), lon=14.5, lat=35.5)
    assert [match.object.id for match in found] == [second]


async def test_more_than_a_request_holds(client):
    ids = await client.publisher().publish([sushi(14.5 + 1e-6 * i) for i in range(2_500)])
    assert len(set(ids)) == 2_500
    assert len(await client.search(TopK({"sushi"}, k=100), lon=14.5, lat=35.5)) == 100
    assert await client.publisher().publish([sushi(14.5)]) == [ids[-1] + 1]


async def test_a_fleet_carries_devices_like_any_other(client):
    await client.publisher().publish([sushi(14.0 + 0.01 * i) for i in range(100)])
    async with client.fleet() as fleet:
        devices = [await fleet.attach(f"d{i}", lon=14.0 + 0.01 * i, lat=35.5) for i in range(60)]
        spec = TopK({"sushi"}, k=3, alpha=0.9)
        subscriptions = await asyncio.gather(*(device.subscribe(spec) for device in devices))
        for i, device in enumerate(devices):
            await device.move(lon=14.9 - 0.01 * i, lat=35.5)
        await client.sync()
        for i, subscription in enumerate(subscriptions):
            found = await client.search(spec, lon=14.9 - 0.01 * i, lat=35.5)
            assert [match.object.id for match in found] == ids_of(subscription)
        with pytest.raises(RefusedError, match="d0") as refused:
            await fleet.attach("d0", lon=14.5, lat=35.5)
        assert refused.value.reason is Reason.DEVICE_IN_USE
        await devices[0].detach()
        again = await fleet.attach("d0", lon=14.0, lat=35.5)
        assert [one.spec.keywords for one in again.subscriptions] == [{"sushi"}]
        await client.sync()
        assert len(ids_of(again.subscriptions[0])) == 3


async def test_two_clients_cannot_be_one_device(client, place):
    device = await client.attach("d", lon=14.5, lat=35.5)
    async with nearcast.connect(place.target) as other:
        with pytest.raises(
            RefusedError, match="no other instance is attached: another one is, last seen"
        ):
            await other.attach("d", lon=14.5, lat=35.5, wait_s=0)
        await device.detach()
        await (await other.attach("d", lon=14.5, lat=35.5)).detach()
    with pytest.raises(ClosedError):
        await device.subscribe(TopK({"a"}))


BAD = [
    (lambda c, _: c.publisher().publish([sushi(14.5, keywords="sushi")]), "objects[0].keywords"),
    (lambda c, _: c.publisher().publish([sushi(14.5), sushi(14.5, keywords=[1])]), "objects[1].keywords"),
    (lambda c, _: c.publisher().publish([sushi(14.5, keywords=["\ud800"])]), "objects[0].keywords"),
    (lambda c, _: c.publisher().publish([sushi(math.nan)]), "objects[0].position.lon"),
    (lambda c, _: c.publisher().publish([sushi("14.5")]), "objects[0].position.lon"),
    (lambda c, _: c.publisher().publish([sushi(14.5, ttl_s=math.inf)]), "objects[0].ttl_s"),
    (lambda c, _: c.publisher().publish([sushi(14.5, ttl_s=0)]), "objects[0].ttl_s"),
    (lambda c, _: c.publisher().publish([sushi(14.5, payload="text")]), "objects[0].payload"),
    (lambda c, _: c.publisher().publish([sushi(14.5, key=7)]), "objects[0].key"),
    (lambda c, _: c.publisher().publish([]), "objects"),
    (lambda c, _: c.publisher().retract(7), "ids[0]"),
    (lambda c, _: c.attach("", lon=14.5, lat=35.5), "device_id"),
    (lambda c, _: c.attach("x", lon=14.5, lat=math.nan), "position.lat"),
    (lambda _, d: d.move(lon=math.nan, lat=35.5), "position.lon"),
    (lambda _, d: d.subscribe(TopK("sushi")), "spec.top_k.keywords"),
    (lambda _, d: d.subscribe(TopK({"sushi"}, k=0)), "spec.top_k.k"),
    (lambda _, d: d.subscribe(TopK({"sushi"}, k=2.5)), "spec.top_k.k"),
    (lambda _, d: d.subscribe(TopK({"sushi"}, alpha=1.0)), "spec.top_k.alpha"),
    (lambda _, d: d.subscribe(TopK({"sushi"}, alpha=math.nan)), "spec.top_k.alpha"),
    (lambda _, d: d.subscribe(TopK({"sushi"}, similarity=7)), "spec.top_k.similarity"),
    (lambda c, _: c.search(TopK(set()), lon=14.5, lat=35.5), "spec.top_k.keywords"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
async def test_wrong_arguments_are_named(client, number):
    act, field = BAD[number]
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(TopK({"sushi"}, similarity=Similarity.DICE))
    with pytest.raises(RefusedError) as refused:
        await act(client, device)
    assert refused.value.field == field
    assert refused.value.limit
    assert field in str(refused.value)
    await client.sync()
    assert device.subscriptions == [subscription]
    assert subscription.state is SubscriptionState.EXACT
    assert await client.search(TopK({"sushi"}), lon=14.5, lat=35.5) == []


async def test_a_server_that_is_not_there():
    async with nearcast.connect("127.0.0.1:1") as client:
        found = await asyncio.gather(
            client.attach("d", lon=14.5, lat=35.5),
            client.publisher().publish([sushi(14.5)]),
            client.search(TopK({"sushi"}), lon=14.5, lat=35.5),
            return_exceptions=True,
        )
    assert all(isinstance(one, UnavailableError) for one in found), found


async def test_tokens(tmp_path):
    from tests.sdk.conftest import Place  # noqa: PLC0415

    place = Place(tmp_path / "store.db", tokens=["secret"])
    await place.start()
    try:
        for token in (None, "wrong"):
            async with nearcast.connect(place.target, token=token) as stranger:
                for act in (
                    stranger.attach("d", lon=14.5, lat=35.5),
                    stranger.publisher().publish([sushi(14.5)]),
                    stranger.publisher().retract(1),
                    stranger.search(TopK({"sushi"}), lon=14.5, lat=35.5),
                    stranger.sync(),
                    stranger.advance_clock(1),
                ):
                    with pytest.raises(RefusedError) as refused:
                        await act
                    assert refused.value.reason is Reason.UNAUTHENTICATED
                    assert "wrong" not in str(refused.value)
        async with nearcast.connect(place.target, token="secret") as friend:  # noqa: S106
            device = await friend.attach("d", lon=14.5, lat=35.5)
            await friend.publisher().publish([sushi(14.5)])
            assert len((await device.subscribe(TopK({"sushi"}))).results()) == 1
            await friend.sync()
    finally:
        await place.stop()
