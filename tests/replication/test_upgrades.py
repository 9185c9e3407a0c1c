"""Nodes of two versions side by side: the later rules come into force when all nodes know them."""

from __future__ import annotations

import asyncio
import time

import pytest

import nearcast
from cluster.entries import RULES
from cluster.log import LogError
from cluster.slots import SLOTS
from nearcast import GeoObject
from server.main import Server
from server.replication.own_lease import LEASE_S
from tests.replication.conftest import log_servers
from tests.replication.test_devices import settled
from tests.replication.test_nodes import TEA, NodeProcess, client, ids_of, node, settings_of, until

pytestmark = pytest.mark.processes

LATER = ("tests.replication.later_version", str(RULES + 1))


async def publish(caller):
    async with caller.publisher() as publisher:
        return await publisher.publish([GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=3_600)] * 3)


async def rules_of(process):
    async with nearcast.connect(f"127.0.0.1:{process.port}") as caller:
        return (await caller.status()).gauges["cluster_rules"]


async def until_rules(process, rules):
    while await rules_of(process) != rules:  # noqa: ASYNC110 - what is waited for tells nobody
        await asyncio.sleep(0.2)


async def test_later_rules_wait_for_the_last_node_of_the_older_version(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        later = NodeProcess(logs, tmp_path / "later.db", LATER)
        try:
            async with node(logs, tmp_path / "older.db") as older, client(older) as to_older:
                await settled(older)
                published = await publish(to_older)
                await later.start()
                await until(lambda: older.node.slots.placement.served_count < 2 * SLOTS / 3)
                keeper = older.node.slots
                await until(
                    lambda: {one.rules for one in keeper.placement.leases()} == {RULES, RULES + 1}
                )
                async with nearcast.connect(f"127.0.0.1:{later.port}") as to_later:
                    published += await publish(to_later)
                    published += await publish(to_older)
                    await to_later.sync()
                    for caller in (to_older, to_later):
                        assert sorted(ids_of(await caller.search(TEA, lon=14.5, lat=35.5))) == published
                time.sleep(2 * LEASE_S)  # noqa: ASYNC251 - the older node stalls, and is counted out
                offset = older.command_loop.applier.offset
                await until(lambda: older.command_loop.applier.offset > offset + 10)
                assert older.command_loop.applier.rules == await rules_of(later) == RULES
            await until_rules(later, RULES + 1)
            async with nearcast.connect(f"127.0.0.1:{later.port}") as to_later:
                published += await publish(to_later)
                assert sorted(ids_of(await to_later.search(TEA, lon=14.5, lat=35.5))) == published
            again = Server(settings_of(logs, tmp_path / "older.db"))
            with pytest.raises(
                LogError,
                match=f"the log has the rules {RULES + 1}, this version knows those up to {RULES}",
            ):
                await again.start()
            await later.kill()
            await later.start()
            assert await rules_of(later) == RULES + 1
        finally:
            await later.kill()
