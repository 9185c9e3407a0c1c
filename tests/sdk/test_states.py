"""States as they change: exact, stale, offline; a server that stops to respond is noticed."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

import pytest

import nearcast
from nearcast import ClosedError, GeoObject, Last, RegionMode, SubscriptionState, TopK
from nearcast.transport import server_watch
from tests.chaos.servers import ServerProcess
from tests.sdk.conftest import until
from tests.sdk.test_reconnect import SPEC, is_exact, row

State = SubscriptionState
PATIENCE_S = 60.0


async def following(states):
    """Return the next state; fail if it does not come."""
    async with asyncio.timeout(PATIENCE_S):
        return await anext(states)


async def reached(states, *expected):
    """Wait until one of these states comes; return it."""
    while (state := await following(states)) not in expected:
        pass
    return state


async def test_states_come_as_they_change_and_end(place, client):
    await client.publisher().publish(row(100))
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    async with aclosing(subscription.states()) as states:
        assert await following(states) is State.EXACT
        await device.move(14.9, 35.5)
        assert await following(states) is State.STALE
        assert await following(states) is State.EXACT
        await place.stop()
        assert await following(states) is State.OFFLINE
        await device.move(14.1, 35.5)
        assert await following(states) is State.OFFLINE_STALE
        await place.start()
        assert await reached(states, State.EXACT)
        await subscription.unsubscribe()
        assert await following(states) is State.ENDED
        with pytest.raises(StopAsyncIteration):
            await following(states)


@pytest.mark.parametrize("is_fleet", [False, True])
async def test_a_client_that_closes_ends_its_subscriptions_without_another_state(place, is_fleet):
    async with nearcast.connect(place.target) as client, client.fleet() as fleet:
        attach = fleet.attach if is_fleet else client.attach
        device = await attach("d", lon=14.5, lat=35.5)
        subscription = await device.subscribe(SPEC)
        async with aclosing(subscription.states()) as states:
            assert await following(states) is State.EXACT
            closing = asyncio.create_task(client.close())
            assert await following(states) is State.ENDED
            await closing
        assert isinstance(subscription.error, ClosedError)


async def test_an_exact_result_waits_for_the_response_to_a_report(client):
    await client.publisher().publish(row(100))
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    async with asyncio.timeout(PATIENCE_S):
        for step in range(1, 40):
            await device.move(14.5 + 0.01 * step, 35.5)
            found = await subscription.exact_results()
            assert subscription.state is State.EXACT
            expected = await client.search(subscription.spec, lon=14.5 + 0.01 * step, lat=35.5)
            assert [one.object.id for one in found] == [one.object.id for one in expected]
        assert device.counters.reports > 0
        await subscription.unsubscribe()
        with pytest.raises(nearcast.ClosedError):
            await subscription.exact_results()


async def test_an_exact_result_does_not_wait_for_ever(place, client, monkeypatch):
    monkeypatch.setattr("nearcast.protocol.subscription._PATIENCE_S", 0.2)
    await client.publisher().publish(row(100))
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    await place.stop()
    with pytest.raises(nearcast.UnavailableError, match=r"has not responded for 0 s"):
        async with asyncio.timeout(PATIENCE_S):
            await subscription.exact_results()


async def test_a_slow_reader_gets_the_latest(client):
    await client.publisher().publish(row(100))
    device = await client.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(SPEC)
    async with aclosing(subscription.states()) as states:
        assert await following(states) is State.EXACT
        for step in range(5):
            await device.move(14.1 + 0.17 * step, 35.5)
            await client.sync()
        assert subscription.state is State.EXACT
        waiting = asyncio.create_task(following(states))
        await client.sync()
        assert not waiting.done(), "it has seen EXACT, which is the current state"
        await device.detach()
        assert await waiting is State.ENDED


async def test_a_state_that_changes_by_time_alone(client, proxy, far):
    """What it holds expires, and nobody refills it: a timer of the device notices."""
    await client.publisher().publish([GeoObject({"sushi"}, 14.5, 35.5, 2.0) for _ in range(40)])
    await client.publisher().publish(row(40, start=14.6))
    subscription = await (await far.attach("d", lon=14.5, lat=35.5)).subscribe(SPEC)
    async with aclosing(subscription.states()) as states:
        assert await following(states) is State.EXACT
        proxy.stall()
        # Its report is due, and then nobody has responded for seconds.
        assert await following(states) is State.STALE
        assert await following(states) is State.OFFLINE_STALE
        proxy.resume()
        assert await reached(states, State.EXACT)
        assert await is_exact(far, subscription, 14.5)


@pytest.fixture
async def server(tmp_path, request):
    """A process of its own, which can be stopped."""
    server = ServerProcess(tmp_path, virtual_time=False)
    server.lease_ms = getattr(request, "param", server.lease_ms)
    await server.start()
    yield server
    await server.stop()


@pytest.mark.processes
@pytest.mark.parametrize("is_fleet", [False, True])
async def test_a_frozen_server_is_noticed_while_a_response_is_due(server, is_fleet):
    async with nearcast.connect(server.target) as client, client.fleet() as fleet:
        await client.publisher().publish(row(100))
        attach = fleet.attach if is_fleet else client.attach
        device = await attach("d", lon=14.5, lat=35.5)
        other = await attach("other", lon=14.5, lat=35.5)
        subscription, others = await device.subscribe(SPEC), await other.subscribe(SPEC)
        async with aclosing(subscription.states()) as states:
            assert await following(states) is State.EXACT
            server.pause()
            await device.move(14.9, 35.5)
            assert await following(states) is State.STALE
            assert await following(states) is State.OFFLINE_STALE
            assert device.is_online, "the stream is the same"
            # What shares the stream knows it, too; what has nothing due on its own stream does not.
            assert others.state is (State.OFFLINE if is_fleet else State.EXACT)
            server.go_on()
            assert await reached(states, State.EXACT)
            assert await is_exact(client, subscription, 14.9)
            assert others.state is State.EXACT
            assert device.counters.reports == 1, "it was not requested again"
            # The same when an app asks for something else: an end, a search.
            server.pause()
            ending = asyncio.create_task(others.unsubscribe())
            if is_fleet:
                assert await following(states) is State.OFFLINE
                server.go_on()
                assert await following(states) is State.EXACT
            server.go_on()
            await ending


@pytest.mark.processes
@pytest.mark.parametrize("server", [1_500], indirect=True)
async def test_a_server_that_vanishes_is_noticed_at_the_next_sign_of_life(server):
    """Nothing is due: the ping that renews the lease is what the server leaves without a response."""
    async with nearcast.connect(server.target) as client:
        await client.publisher().publish(row(100))
        device = await client.attach("d", lon=14.5, lat=35.5)
        subscription = await device.subscribe(SPEC)
        server.pause()
        async with aclosing(subscription.states()) as states:
            assert await reached(states, State.OFFLINE)
            assert device.counters.reports == 0
            server.go_on()
            assert await reached(states, State.EXACT)


async def test_an_app_that_was_blocked_itself_does_not_suspect_the_server(monkeypatch):
    """Its timer fires late, and what has arrived meanwhile is not read yet."""
    monkeypatch.setattr(server_watch, "SILENCE_S", 0.05)
    due, changes = {"d"}, []
    watch = server_watch.ServerWatch(due.__contains__, changes.append)
    watch.requested("d")
    time.sleep(1.2)  # noqa: ASYNC251 - so that no timer can fire
    for _ in range(2):
        await asyncio.sleep(0)
    assert changes == []
    watch.arrived()
    due.clear()
    watch.responded("d")
    due.add("d")
    watch.requested("d")
    await until(lambda: changes == [True])
    watch.arrived()
    assert changes == [True, False]


async def test_a_stationary_result_that_is_short_is_stale_until_it_is_refilled(client, proxy, far):
    spec = TopK({"tea"}, k=3, alpha=0.9, region=RegionMode.STATIONARY)
    await client.publisher().publish([GeoObject({"tea"}, 14.5, 35.5, 2.0)])
    await client.publisher().publish(
        [GeoObject({"tea"}, 14.5 + 0.001 * i, 35.5, 3600.0) for i in range(1, 7)]
    )
    subscription = await (await far.attach("d", lon=14.5, lat=35.5)).subscribe(spec)
    async with aclosing(subscription.states()) as states:
        assert await following(states) is State.EXACT
        assert len(subscription.results()) == 3
        proxy.stall()
        assert await following(states) is State.STALE
        assert len(subscription.results()) == 2
        proxy.resume()
        assert await following(states) is State.EXACT
        assert len(subscription.results()) == 3


@pytest.mark.parametrize("window", [None, Last(seconds=2.0)])
async def test_a_removal_without_a_replacement_is_reported_too(virtual, window):
    """The device cannot know that there is no more; of fewer than k it does, and hears nothing."""
    spec = TopK({"tea"}, k=2, region=RegionMode.STATIONARY, window=window)
    ttls = (3600.0, 3600.0) if window else (2.0, 4.0)
    device = await virtual.attach("d", lon=14.5, lat=35.5)
    subscription = await device.subscribe(spec)
    publisher = virtual.publisher()
    await publisher.publish([GeoObject({"tea"}, 14.5, 35.5, ttls[0])])
    await virtual.advance_clock(2_000)
    await publisher.publish([GeoObject({"tea"}, 14.51, 35.5, ttls[1])])
    await virtual.sync()
    assert subscription.state is State.EXACT
    assert len(subscription.results()) == 2
    before = device.counters.deltas
    virtual.clock.observe(3_000)  # as a device whose clock is ahead of what it has heard
    device.pass_time()
    assert (subscription.state, len(subscription.results())) == (State.STALE, 1)
    await virtual.advance_clock(3_000)
    await virtual.sync()
    assert (subscription.state, len(subscription.results())) == (State.EXACT, 1)
    assert device.counters.deltas == before + 1, "one without objects: this is all"
    await virtual.advance_clock(9_000)
    await virtual.sync()
    device.pass_time()
    assert (subscription.state, len(subscription.results())) == (State.EXACT, 0)
    assert device.counters.deltas == before + 1
    assert device.counters.reports == 0
