"""Devices of a cluster: the owner of its slot serves each, and subscriptions stay when that changes."""

from __future__ import annotations

import random

import pytest

from cluster.slots import SLOTS
from nearcast import GeoObject, Reason, RefusedError, TopK
from tests.replication.conftest import log_servers
from tests.replication.test_nodes import best, client, digest_of, ids_of, node, until
from tests.support.amounts import SEED

pytestmark = pytest.mark.processes

COUNT = 24


def served(*nodes):
    """Return how many slots nodes serve."""
    return sum(one.node.slots.served_count for one in nodes)


def owner_of(nodes, device_id):
    """Return the node that serves a device."""
    for one in nodes:
        try:
            one.coordinator.require_here(device_id)
        except RefusedError:
            continue
        return one
    raise AssertionError("no node serves the device")


def spec_of(number):
    return TopK({"tea", "ice"}, k=1 + number % 7)


async def settled(*nodes):
    """Wait until every slot has one owner, which all nodes know."""
    await until(lambda: served(*nodes) == SLOTS)


async def publish(caller, count):
    rng = random.Random(SEED)
    items = [
        GeoObject({"tea", "ice"}, lon=rng.uniform(14.2, 14.8), lat=rng.uniform(35.2, 35.8), ttl_s=3_600)
        for _ in range(count)
    ]
    async with caller.publisher() as publisher:
        return await publisher.publish(items)


async def subscribed(nodes, numbers):
    """Let devices subscribe, each at its node."""
    for number in numbers:
        async with client(owner_of(nodes, f"d{number}")) as caller:
            device = await caller.attach(f"d{number}", lon=14.5, lat=35.5)
            await device.subscribe(spec_of(number), name=f"n{number}")


async def require_exact(nodes, numbers):
    """Attach devices, each at its node: they have their subscriptions, and results by the definition."""
    for number in numbers:
        owner = owner_of(nodes, f"d{number}")
        async with client(owner) as caller:
            device = await caller.attach(f"d{number}", lon=14.5, lat=35.5)
            [offers] = device.subscriptions
            assert (offers.spec, offers.name) == (spec_of(number), f"n{number}")
            expected = best(owner, 14.5, 35.5, spec_of(number).k)
            await until(lambda offers=offers, expected=expected: ids_of(offers.results()) == expected)


async def test_devices_keep_their_subscriptions_when_nodes_come_and_go(tmp_path):
    numbers = range(COUNT)
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as a:
            await settled(a)
            async with client(a) as caller:
                await publish(caller, 200)
            await subscribed([a], numbers)
            await require_exact([a], numbers)
            async with node(logs, tmp_path / "b.db") as b:
                await digest_of(a, b)
                await until(lambda: b.node.slots.served_count > SLOTS / 3)
                await settled(a, b)
                assert len({owner_of([a, b], f"d{number}").port for number in numbers}) == 2
                await require_exact([a, b], numbers)
                for one, other in ((a, b), (b, a)):
                    number = next(n for n in numbers if owner_of([a, b], f"d{n}") is other)
                    async with client(one) as caller:
                        with pytest.raises(RefusedError) as refused:
                            await caller.attach(f"d{number}", lon=14.5, lat=35.5)
                    assert refused.value.reason is Reason.ANOTHER_SERVER
                    assert refused.value.server == f"127.0.0.1:{other.port}"
            await settled(a)
            await require_exact([a], numbers)
        async with node(logs, tmp_path / "c.db") as c:
            await settled(c)
            await require_exact([c], numbers)
            c.coordinator.check()
