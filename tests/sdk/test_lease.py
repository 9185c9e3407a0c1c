"""Devices that are silent, and known to be alive without saying where they are."""

from __future__ import annotations

import random

import pytest

import nearcast
from nearcast import SubscriptionState, TopK
from nearcast.client import _KEEPALIVE_S
from server.counters import ParkReason
from server.limits import KEEPALIVE_MS
from server.settings import load_settings
from tests.sdk.conftest import Place, until
from tests.sdk.test_privacy import expected, ids, published
from tests.support.tap import Tap

SPEC = TopK({"sushi"}, k=3, alpha=0.9)
LEASE_MS = 3_000


@pytest.fixture
async def leased(tmp_path):
    place = Place(tmp_path / "store.db", virtual_time=True, lease_ms=LEASE_MS)
    await place.start()
    yield place
    await place.stop()


def session_of(place, device_id="d"):
    return place.server.coordinator.sessions[device_id]


async def test_a_silent_device_sends_only_pings(leased):
    tap = Tap(leased.target)
    async with nearcast.connect(await tap.start()) as client:
        device = await client.attach("d", lon=14.5, lat=35.5)
        subscription = await device.subscribe(SPEC)
        outbox = session_of(leased).outbox
        for step in range(1, 21):
            await client.advance_clock(1_000 * step)
            await device.move(14.5 + 0.0001 * step, 35.5)
            await client.sync()
        assert session_of(leased).outbox is outbox
        assert subscription.state is SubscriptionState.EXACT
        assert leased.server.coordinator.counters.parked[ParkReason.LEASE_EXPIRED] == 0
    kinds = [request.WhichOneof("command") for request in tap.requests()]
    assert kinds[:2] == ["hello", "subscribe"]
    assert set(kinds[2:]) == {"ping"}
    await tap.stop()


async def test_in_real_time_a_timer_pings(tmp_path):
    place = Place(tmp_path / "store.db", lease_ms=LEASE_MS)
    await place.start()
    try:
        async with nearcast.connect(place.target) as client, client.fleet() as fleet:
            await client.attach("d", lon=14.5, lat=35.5)
            await fleet.attach("f", lon=14.5, lat=35.5)
            sessions = [session_of(place), session_of(place, "f")]
            began = [session.last_seen_ms for session in sessions]
            for session, began_ms in zip(sessions, began, strict=True):
                await until(lambda: session.last_seen_ms >= began_ms + LEASE_MS // 3)  # noqa: B023 - awaited here
                assert session.is_attached
    finally:
        await place.stop()


@pytest.mark.parametrize("is_fleet", [False, True])
async def test_an_app_that_was_suspended_comes_back_by_itself(leased, is_fleet):
    async with nearcast.connect(leased.target) as client:
        objects = await published(client, random.Random(1), 200)
        async with client.fleet() as fleet:
            attach = fleet.attach if is_fleet else client.attach
            device = await attach("d", lon=14.5, lat=35.5)
            subscription = await device.subscribe(SPEC)
            for time_ms, lon in ((10_000, 14.51), (20_000, 14.49), (30_000, 14.53)):
                await device.move(lon, 35.5)
                await client.advance_clock(time_ms)  # longer than the lease, and nobody has pinged
                assert (
                    leased.server.coordinator.counters.parked[ParkReason.LEASE_EXPIRED]
                    == time_ms // 10_000
                )
                objects |= await published(client, random.Random(time_ms), 20)
                await until(lambda: subscription.state is SubscriptionState.EXACT)
                await client.sync()
                assert ids(subscription) == expected(SPEC, objects, lon, 35.5)
                assert session_of(leased).is_attached
            leased.server.coordinator.check()


async def test_a_request_at_the_moment_of_expiry_is_not_lost(leased):
    async with nearcast.connect(leased.target) as client, client.fleet() as fleet:
        device = await fleet.attach("d", lon=14.5, lat=35.5)
        dropped = await device.subscribe(TopK({"tea"}))
        coordinator = leased.server.coordinator
        coordinator.clock.lease_ms += LEASE_MS
        coordinator.end_leases()  # the device does not know yet
        subscription = await device.subscribe(SPEC)
        coordinator.clock.lease_ms += LEASE_MS
        coordinator.end_leases()
        await dropped.unsubscribe()
        await until(lambda: subscription.state is SubscriptionState.EXACT)
        await client.sync()
        assert session_of(leased).handles.keys() == {subscription.id}
        assert device.subscriptions == [subscription]


def test_a_silent_phone_is_woken_by_nothing_but_its_lease():
    """Data counts as a sign of life of the connection, so one that renews its lease is never asked."""
    settings = load_settings({"area": "14,35,15,36"})
    beat_s = settings.lease_ms / 3_000.0
    assert settings.keepalive_ms == KEEPALIVE_MS == 1_000.0 * _KEEPALIVE_S
    assert beat_s < _KEEPALIVE_S
    assert 24 * 3_600 / beat_s == pytest.approx(432), "as docs/sdk.md says"
