"""Another instance of an app: it waits, or takes over, and the one before ends with a reason."""

from __future__ import annotations

import asyncio
import logging
import re
import time

import pytest

import nearcast
from nearcast import GeoObject, Reason, RefusedError, SubscriptionState, TopK
from server.limits import Limits
from server.settings import load_settings
from tests.sdk.conftest import Place, refusal_of, until
from tests.support.identity import keys_in, token
from tests.support.proxy import Proxy
from tests.support.servers import serving

SPEC = TopK({"sushi"}, k=3)
HERE = {"lon": 14.5, "lat": 35.5}
State = SubscriptionState


@pytest.fixture
async def signed(tmp_path):
    """A server that takes signed tokens alone."""
    place = Place(tmp_path / "store.db", jwks=str(keys_in(tmp_path)))
    await place.start()
    try:
        yield place
    finally:
        await place.stop()


async def ended(iterator):
    """Return what an iterator yields until its end."""
    return [one async for one in iterator]


async def is_superseded(device, subscription, states):
    """Check that an instance has ended for good, and says why."""
    seen = await states
    assert seen[-1] is State.ENDED
    assert subscription.state is State.ENDED
    assert subscription.error.reason is Reason.SUPERSEDED
    assert "another instance of the device took over" in str(subscription.error)
    with pytest.raises(RefusedError) as refused:
        await device.move(**HERE)
    assert refused.value.reason is Reason.SUPERSEDED
    return True


@pytest.mark.parametrize("is_fleet", [False, True])
async def test_an_instance_with_take_over_takes_over(place, client, is_fleet):
    await client.publisher().publish([GeoObject({"sushi"}, 14.5, 35.5, 3600.0) for _ in range(5)])
    async with client.fleet() as fleet, nearcast.connect(place.target) as elsewhere:
        attach = fleet.attach if is_fleet else client.attach
        old = await attach("d", **HERE)
        other = await attach("other", **HERE)
        others = await other.subscribe(SPEC)
        subscription = await old.subscribe(SPEC)
        states = asyncio.create_task(ended(subscription.states()))
        changes = asyncio.create_task(ended(subscription.changes()))
        async with elsewhere.fleet() as new_fleet:
            attach = new_fleet.attach if is_fleet else elsewhere.attach
            new = await attach("d", **HERE, take_over=True)
            assert await is_superseded(old, subscription, states)
            await changes
            (taken,) = new.subscriptions
            await until(lambda: taken.state is State.EXACT)
            assert len(taken.results()) == 3
            # Its neighbour on the fleet has noticed nothing.
            assert others.state is State.EXACT
            await other.move(14.6, 35.5)
            await client.sync()
            assert others.state is State.EXACT
            place.server.coordinator.check()


async def test_the_devices_own_token_takes_over_and_a_gateways_does_not(signed):
    own, gateway = token("d", "device"), token("g", "gateway")
    async with (
        nearcast.connect(signed.target, token=own) as first,
        nearcast.connect(signed.target, token=gateway) as second,
        nearcast.connect(signed.target, token=own) as third,
    ):
        old = await first.attach("d", **HERE)
        subscription = await old.subscribe(SPEC)
        states = asyncio.create_task(ended(subscription.states()))
        with pytest.raises(RefusedError) as refused:
            await second.attach("d", **HERE, wait_s=0)
        assert refused.value.reason is Reason.DEVICE_IN_USE
        assert refused.value.retry_after_ms == signed.server.coordinator.limits.dead_connection_ms
        assert not re.search("[0-9a-f]{16}", str(refused.value)), "it does not tell the other's nonce"
        await third.attach("d", **HERE)
        assert await is_superseded(old, subscription, states)


@pytest.mark.parametrize("has_asked", [False, True])
async def test_an_instance_replaced_while_disconnected_does_not_take_over_again(signed, has_asked):
    """It reconnects by itself, which asks for nothing, whatever it asked for when it began."""
    own = token("g", "gateway") if has_asked else token("d", "device")
    proxy = Proxy(signed.target)
    async with (
        nearcast.connect(await proxy.start(), token=own) as first,
        nearcast.connect(signed.target, token=own) as second,
    ):
        old = await first.attach("d", **HERE, take_over=has_asked)
        subscription = await old.subscribe(SPEC)
        await signed.stop()
        await until(lambda: subscription.state in {State.OFFLINE, State.OFFLINE_STALE})
        proxy.is_open = False
        await signed.start()
        new = await second.attach("d", **HERE)
        proxy.is_open = True
        await first.network_changed()
        await until(lambda: subscription.state is State.ENDED)
        assert subscription.error.reason is Reason.DEVICE_IN_USE
        await new.subscribe(SPEC)
    await proxy.stop()


async def test_an_instance_without_take_over_waits_and_logs_it(place, client, caplog):
    caplog.set_level(logging.INFO, "nearcast")
    old = await client.attach("d", **HERE)
    async with nearcast.connect(place.target) as other:
        waiting = asyncio.create_task(other.attach("d", **HERE))
        await until(lambda: "another instance is attached; waiting for up to 251 s" in caplog.text)
        assert not waiting.done()
        (logged,) = [one for one in caplog.records if "another instance" in one.message]
        assert logged.levelno == logging.WARNING, "Python shows it without any configuration"
        await old.detach()
        await waiting


async def test_it_does_not_wait_for_ever():
    """Behind the time that the server says, the other instance is alive, and not one that vanished."""
    settings = load_settings({"area": "14,35,15,36", "store": ":memory:", "port": 0})
    async with serving(settings, Limits(dead_connection_ms=200)) as server:
        target = f"127.0.0.1:{server.port}"
        async with nearcast.connect(target) as client, nearcast.connect(target) as other:
            await client.attach("d", **HERE)
            for wait_s, least_s in ((None, 1), (0.3, 0)):
                began_s = time.monotonic()
                with pytest.raises(RefusedError) as refused:
                    await other.attach("d", **HERE, wait_s=wait_s)
                most_s = round(time.monotonic() - began_s)  # least_s, if the machine is not busy
                waited = tuple(f"; waited {seconds} s" for seconds in range(least_s, most_s + 1))
                assert refused.value.reason is Reason.DEVICE_IN_USE
                assert str(refused.value).endswith(waited)
            async with other.fleet() as fleet:
                with pytest.raises(RefusedError, match="waited"):
                    await fleet.attach("d", **HERE, wait_s=0.3)
                await fleet.attach("e", **HERE)


async def test_two_that_insist_take_turns():
    settings = load_settings({"area": "14,35,15,36", "store": ":memory:", "port": 0})
    async with serving(settings, Limits(take_over_ms=400)) as server:
        target = f"127.0.0.1:{server.port}"
        async with nearcast.connect(target) as client:
            await client.attach("d", **HERE)
            second = await client.attach("d", **HERE, take_over=True)
            with pytest.raises(RefusedError, match="can be replaced in") as refused:
                await client.attach("d", **HERE, take_over=True, wait_s=0)
            assert 0 < refused.value.retry_after_ms <= 400
            third = await client.attach("d", **HERE, take_over=True)  # it waits until it may
            assert (await refusal_of(second)).reason is Reason.SUPERSEDED
            await third.subscribe(SPEC)


async def test_a_wait_that_is_no_time(client):
    for wait_s in [-1.0, float("nan"), float("inf"), "5", True]:
        with pytest.raises(RefusedError) as refused:
            await client.attach("d", **HERE, wait_s=wait_s)
        assert refused.value.field == "wait_s"


async def test_resuming_is_not_taking_over(place, client):
    """The same instance comes back on another stream, whatever it once asked for."""
    await client.attach("d", **HERE)
    device = await client.attach("d", **HERE, take_over=True)
    subscription = await device.subscribe(SPEC)
    session = place.server.coordinator.sessions["d"]
    for _ in range(2):
        before = session.outbox
        await client.network_changed()
        await until(lambda before=before: session.outbox not in {None, before})
        await until(lambda: subscription.state is State.EXACT)
