"""The faults that strike a cluster, each in the middle of its load.

Each returns once what it did is over: processes run, and links are whole.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from cluster.local_servers import LocalServer, wait_until_healthy
from tests.chaos.cluster.links import Link
from tests.chaos.cluster.nodes import Node
from tests.chaos.cluster.recovery import Recovery
from tests.chaos.cluster.world import ClusterWorld

_LEAP_S = (600.0, 7_200.0)
_STREAMS = ("nearcast", "nearcast-devices")
_POLL_S = 0.05
_DISK_ROOM = 20_000
_ELECTED_S = 60.0
"""A guard against waiting for ever: an election takes seconds."""

Strike = Callable[[], None]
Fault = Callable[[ClusterWorld, Strike], Awaitable[None]]


async def node_killed(world: ClusterWorld, strike: Strike) -> None:
    """Kill a node with signal 9, and start it again after up to ten seconds."""
    node = await _victim(world)
    strike()
    node.kill()
    await asyncio.sleep(world.chance.uniform(0.0, 10.0))
    await node.start()


async def node_paused(world: ClusterWorld, strike: Strike) -> None:
    """Stop a node with SIGSTOP for long after its lease, and let it continue."""
    node = await _victim(world)
    strike()
    node.pause()
    await asyncio.sleep(world.pause_s)
    node.go_on()


async def cut_off_from_log(world: ClusterWorld, strike: Strike) -> None:
    """Cut a node off from all servers of the log, half of the times silently."""
    node = await _victim(world)
    await _cut(world, strike, node.to_log)


async def cut_off_from_devices(world: ClusterWorld, strike: Strike) -> None:
    """Cut a node off from all devices and publishers, half of the times silently."""
    node = await _victim(world)
    await _cut(world, strike, [node.to_devices])


async def log_leader_killed(world: ClusterWorld, strike: Strike) -> None:
    """Kill the server of the log that leads the objects or the devices, and start it again."""
    await _load_goes_on(world)
    leader = await _leader(world, world.chance.choice(_STREAMS))
    strike()
    leader.kill()
    await asyncio.sleep(world.chance.uniform(2.0, 12.0))
    await _started(leader)


async def log_without_quorum(world: ClusterWorld, strike: Strike) -> None:
    """Leave one server of the log of three for ten seconds: the others are killed, or stopped."""
    await _load_goes_on(world)
    two = world.chance.sample(list(world.logs), 2)
    is_killed = world.chance.random() < 0.5
    strike()
    for server in two:
        server.kill() if is_killed else _signal(server, signal.SIGSTOP)
    await asyncio.sleep(10.0)
    if is_killed:
        await _started(*two)
    else:
        for server in two:
            _signal(server, signal.SIGCONT)


async def all_killed(world: ClusterWorld, strike: Strike) -> None:
    """Kill all nodes and all servers of the log at once, and start them again."""
    await _load_goes_on(world)
    strike()
    for server in world.logs:
        server.kill()
    for node in world.nodes:
        node.kill()
    await _started(*world.logs)
    await asyncio.gather(*(node.start() for node in world.nodes))


async def disk_full(world: ClusterWorld, strike: Strike) -> None:
    """Let no file of a node grow for some seconds, as on a full disk; half of the times kill it then."""
    node = await _victim(world)
    strike()
    node.limit_files(node.log_of_store.stat().st_size + world.chance.randrange(_DISK_ROOM))
    await asyncio.sleep(world.chance.uniform(5.0, 10.0))
    if world.chance.random() < 0.5:
        node.kill()
        await node.start()
    else:
        node.limit_none()


async def slow_node(world: ClusterWorld, strike: Strike) -> None:
    """Let a node run for a fifth of the time, in slices, for ten seconds."""
    node = await _victim(world)
    strike()
    end_s = asyncio.get_running_loop().time() + 10.0
    while asyncio.get_running_loop().time() < end_s:
        slice_s = world.chance.uniform(0.02, 0.1)
        node.pause()
        await asyncio.sleep(4.0 * slice_s)
        node.go_on()
        await asyncio.sleep(slice_s)


async def clock_jump(world: ClusterWorld, strike: Strike) -> None:
    """Let the wall clock of a node jump by up to two hours; half of the times while it is killed."""
    node = await _victim(world)
    strike()
    is_restarted = world.chance.random() < 0.5
    if is_restarted:
        node.kill()
    leap_s = world.chance.uniform(*_LEAP_S) * world.chance.choice((-1.0, 1.0))
    log_ms, began_s = world.ledger.log_ms, asyncio.get_running_loop().time()
    node.bend(clock_offset_s=leap_s)
    if is_restarted:
        await node.start()
    await asyncio.sleep(world.chance.uniform(1.0, 3.0))
    await world.ledger.caught_up()
    passed_s = asyncio.get_running_loop().time() - began_s
    log_s = (world.ledger.log_ms - log_ms) / 1000.0
    if abs(log_s - passed_s) > _LEAP_S[0] / 2.0:
        world.violations.append(f"the log's time went on by {log_s:.0f} s in {passed_s:.0f} s")


FAULTS: dict[str, Fault] = {
    "cluster: node killed": node_killed,
    "cluster: node paused": node_paused,
    "cluster: no way to the log": cut_off_from_log,
    "cluster: no way to devices": cut_off_from_devices,
    "cluster: log leader killed": log_leader_killed,
    "cluster: log without quorum": log_without_quorum,
    "cluster: all killed": all_killed,
    "cluster: disk full": disk_full,
    "cluster: slow node": slow_node,
    "cluster: clock jump": clock_jump,
}


async def inflict(world: ClusterWorld, name: str, recovery: Recovery) -> None:
    """Let a fault strike."""
    await FAULTS[name](world, recovery.strike)


async def _victim(world: ClusterWorld) -> Node:
    """Return a node, at a random moment of the load."""
    await _load_goes_on(world)
    return world.chance.choice(world.nodes)


async def _load_goes_on(world: ClusterWorld) -> None:
    await asyncio.sleep(world.chance.uniform(0.2, 1.5))


async def _cut(world: ClusterWorld, strike: Strike, links: Iterable[Link]) -> None:
    is_silent = world.chance.random() < 0.5
    strike()
    for link in links:
        link.cut_off(is_silent=is_silent)
    await asyncio.sleep(world.chance.uniform(3.0, 15.0))
    for link in links:
        link.heal()


async def _leader(world: ClusterWorld, stream: str) -> LocalServer:
    async with asyncio.timeout(_ELECTED_S):
        while True:
            for server in world.logs:
                if await asyncio.to_thread(server.leads, stream):
                    return server
            await asyncio.sleep(_POLL_S)


async def _started(*servers: LocalServer) -> None:
    for server in servers:
        server.start()
    await asyncio.gather(*(asyncio.to_thread(partial(wait_until_healthy, one)) for one in servers))


def _signal(server: LocalServer, number: signal.Signals) -> None:
    assert server._process is not None
    server._process.send_signal(number)
