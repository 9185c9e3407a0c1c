"""Fleets, and devices behind a gateway, of a cluster whose nodes come and go."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest

import nearcast
from cluster.slots import SLOTS
from gateway.settings import GatewaySettings
from nearcast import GeoObject, SubscriptionState, TopK
from tests.gateway.town import running
from tests.gateway.web_device import WebDevice
from tests.replication.conftest import log_servers
from tests.replication.test_devices import publish, settled, spec_of
from tests.replication.test_nodes import POLL_S, NodeProcess, best, ids_of, node, until
from tests.support.stuck import STUCK_S

pytestmark = pytest.mark.processes

COUNT = 12


async def test_a_fleet_and_a_gateway_follow_when_a_node_is_killed_and_comes_back(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        victim = NodeProcess(logs, tmp_path / "victim.db")
        async with node(logs, tmp_path / "other.db") as other, AsyncExitStack() as stack:
            await settled(other)
            stack.push_async_callback(victim.kill)
            await victim.start()
            await until(lambda: other.node.slots.placement.served_count < 2 * SLOTS / 3)
            targets = [f"127.0.0.1:{one.port}" for one in (victim, other)]
            caller = await stack.enter_async_context(nearcast.connect(targets))
            fleet = await stack.enter_async_context(caller.fleet())
            offers = {}
            for number in range(COUNT):
                device = await fleet.attach(f"fleet-{number}", lon=14.5, lat=35.5)
                offers[number] = await device.subscribe(spec_of(number))
            settings = GatewaySettings(port=0, server=",".join(targets))
            gateway = await stack.enter_async_context(running(settings))
            http = await stack.enter_async_context(aiohttp.ClientSession())
            address = f"http://127.0.0.1:{gateway.port}/v1/attach"
            for number in range(COUNT):
                device = WebDevice(http, [address], f"web-{number}", 14.5, 35.5)
                stack.push_async_callback(device.close)
                offers[COUNT + number] = device.session.subscribe(spec_of(number))
                await device.until(lambda device=device: device.session.is_online)

            def are_exact():
                return all(
                    one.state is SubscriptionState.EXACT
                    and ids_of(one.results()) == best(other, 14.5, 35.5, one.spec)
                    for one in offers.values()
                )

            await publish(caller, 200)
            await until(are_exact)
            await until(lambda: 0 < attached(other, "fleet") + attached(other, "web") < 2 * COUNT)
            await all_inspected(http, f"http://127.0.0.1:{gateway.port}/v1/inspect")
            await victim.kill()
            await until(lambda: attached(other, "fleet") == attached(other, "web") == COUNT)
            await publish(caller, 20)
            await until(are_exact)
            await victim.start()
            await until(lambda: attached(other, "fleet") + attached(other, "web") < 2 * COUNT)
            await publish(caller, 20)
            await until(are_exact)
            await until(lambda: gateway.counters.devices == COUNT)


async def all_inspected(http, address):
    """Wait until the gateway can inspect all devices, at whichever node; some may be moving."""
    async with asyncio.timeout(STUCK_S):
        for name in [f"{kind}-{number}" for kind in ("fleet", "web") for number in range(COUNT)]:
            status = 503
            while status == 503:
                async with http.post(address, json={"device_id": name}) as response:
                    status, found = response.status, await response.json(content_type=None)
                await asyncio.sleep(POLL_S)
            assert (status, found["device"]["state"]) == (200, "DEVICE_STATE_IN_SYNC"), found


@asynccontextmanager
async def two_nodes(tmp_path):
    """A node in this process, another one with some of its slots, and servers of a log."""
    with log_servers(tmp_path / "log", 1) as logs:
        victim = NodeProcess(logs, tmp_path / "victim.db")
        async with node(logs, tmp_path / "other.db") as other:
            await settled(other)
            await victim.start()
            try:
                await until(lambda: other.node.slots.placement.served_count < 2 * SLOTS / 3)
                yield victim, other
            finally:
                await victim.kill()


def ranked(number):
    """Return a spec whose result has the best object, however many are published after it."""
    return TopK({"tea", "ice"}, k=1 + number % 7)


async def subscribed(stack, caller, targets):
    """Return subscriptions of a fleet and of devices behind a gateway, with their sessions."""
    found = []
    fleet = await stack.enter_async_context(caller.fleet())
    for number in range(COUNT):
        device = await fleet.attach(f"fleet-{number}", lon=14.5, lat=35.5)
        found.append((await device.subscribe(ranked(number)), device._session))  # noqa: SLF001
    gateway = await stack.enter_async_context(running(GatewaySettings(port=0, server=",".join(targets))))
    http = await stack.enter_async_context(aiohttp.ClientSession())
    for number in range(COUNT):
        address = f"http://127.0.0.1:{gateway.port}/v1/attach"
        device = WebDevice(http, [address], f"web-{number}", 14.5, 35.5)
        stack.push_async_callback(device.close)
        found.append((device.session.subscribe(ranked(number)), device.session))
        await device.until(lambda device=device: device.session.is_online)
    return found


def watched(found, object_id):
    """Return a list to which each exact result without an object is added from now on."""
    wrong = []

    def watch(one, on_event):
        def check():
            if one.state is SubscriptionState.EXACT and object_id not in ids_of(one.results()):
                wrong.append(one)
            on_event()

        return check

    for one, session in found:
        session.on_event = watch(one, session.on_event)
    return wrong


@pytest.mark.slow
async def test_what_a_paused_node_sends_later_reaches_no_device(tmp_path):
    """The best object of all is published meanwhile: no exact result is without it afterwards."""
    async with two_nodes(tmp_path) as (victim, other), AsyncExitStack() as stack:
        targets = [f"127.0.0.1:{one.port}" for one in (victim, other)]
        caller = await stack.enter_async_context(nearcast.connect(targets, keepalive_s=2.0))
        found = await subscribed(stack, caller, targets)

        def are_exact():
            return all(
                one.state is SubscriptionState.EXACT
                and ids_of(one.results()) == best(other, 14.5, 35.5, one.spec)
                for one, _ in found
            )

        await publish(caller, 100)
        await until(are_exact)
        assert attached(other, "fleet") + attached(other, "web") < 2 * COUNT
        victim.signal(signal.SIGSTOP)
        try:
            await until(lambda: attached(other, "fleet") == attached(other, "web") == COUNT)
            async with nearcast.connect(targets[1]) as another, another.publisher() as publisher:
                here = GeoObject(ranked(0).keywords, lon=14.5, lat=35.5, ttl_s=3_600)
                (object_id,) = await publisher.publish(here)
            await until(are_exact)
            wrong = watched(found, object_id)
        finally:
            victim.signal(signal.SIGCONT)
        await until(lambda: other.node.slots.placement.served_count < 2 * SLOTS / 3)
        await publish(caller, 20)
        await until(are_exact)
        assert not wrong


def attached(server, kind):
    """Return how many devices of a kind are attached to a node."""
    sessions = server.coordinator.sessions
    return sum(one.is_attached for name, one in sessions.items() if name.startswith(kind))
