"""Compare nodes and the servers of their log with a single server, in alternating windows.

A third side is as many single servers as there are nodes, each with the devices of one node. It shows
what several processes cost without a log.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from bench.benchmark import Progress, Row
from bench.cluster.nodes import Nodes, Together
from bench.server import lines as ways
from bench.server.connections import attach
from bench.server.lines import Channel, connection
from bench.server.listeners import Listeners, expired
from bench.server.measures import Latencies, Rate, closed_loop, pushes
from bench.server.processes import Process
from bench.server.setup import published
from bench.server.workload import PUSHED_TTL_MS, Workload
from nearcast.v1.publisher_service_pb2 import PublishRequest

OBJECTS = 100
"""Objects of a request."""
_PUBLISHERS = 4
_REQUESTS = 50
"""Different requests of a publisher."""
_DELTAS_PER_S = 1_000.0
_SEVERAL = "several_"
_CLUSTER = "cluster_"


class Side(NamedTuple):
    """A single server, several of them, or a cluster."""

    devices: list[Channel]
    publishers: list[Channel]
    """Empty for several servers: objects are published to one only."""
    process: Process
    """What a report costs: all processes."""
    appliers: Process
    """What applies objects: the server, or the nodes."""


async def load(
    workload: Workload,
    seconds: float,
    rounds: int,
    singles: Sequence[Process],
    nodes: Nodes,
    progress: Progress,
) -> Row:
    """Measure all sides; return the row.

    Parameters
    ----------
    workload
        The messages.
    seconds, rounds
        Length of a window; number of windows of each side.
    singles
        The single server, and one for each node.
    nodes
        The cluster.
    progress
        Receives the progress.
    """
    single, *several = singles
    for server in (*singles, nodes.nodes[0]):
        await published(workload, server, progress)
    await nodes.settled()
    spread = [nodes.addresses[i % len(nodes.addresses)] for i in range(_PUBLISHERS)]
    async with (
        channels([single.address] * workload.devices, ways.ATTACH) as of_single,
        channels(divided(workload, nodes, [one.address for one in several]), ways.ATTACH) as of_several,
        channels(divided(workload, nodes, nodes.addresses), ways.ATTACH) as of_cluster,
        channels([single.address] * _PUBLISHERS, ways.PUBLISH) as to_single,
        channels(spread, ways.PUBLISH) as to_cluster,
    ):
        sides = {
            "": Side(of_single, to_single, single, single),
            _SEVERAL: Side(of_several, [], Together(several), Together(several)),
            _CLUSTER: Side(of_cluster, to_cluster, nodes.both, Together(nodes.nodes)),
        }
        listeners = [Listeners(workload, one.devices) for one in sides.values()]
        for side in sides.values():
            await attach(side.devices, workload)
            for line in side.publishers:
                await line.start()
        row = await _measured(workload, seconds, rounds, sides, nodes, progress)
        await expired()
        audits = [await one.audit() for one in listeners]
    return row | {name: sum(one[name] for one in audits) for name in audits[0]}


async def _measured(
    workload: Workload,
    seconds: float,
    rounds: int,
    sides: dict[str, Side],
    nodes: Nodes,
    progress: Progress,
) -> Row:
    reports, requests = workload.rounds(), small_requests(workload)
    publishing = {name: side for name, side in sides.items() if side.publishers}
    pushed: dict[str, Latencies] = {}
    for name, side in publishing.items():
        pushed[name] = await _pushed(workload, side, seconds)
        progress("latencies", len(pushed), len(publishing))
    await expired()
    reported: dict[str, list[Rate]] = {name: [] for name in sides}
    for number, (name, side) in enumerate(_in_turn(sides, rounds)):
        speakers = side.devices[: workload.reporting]
        reported[name].append(await closed_loop(speakers, reports, side.process, seconds))
        progress("reports", number + 1, rounds * len(sides))
    applied: dict[str, list[Rate]] = {name: [] for name in publishing}
    logged: list[Rate] = []
    for number, (name, side) in enumerate(_in_turn(publishing, rounds)):
        applied[name].append(await closed_loop(side.publishers, requests, side.appliers, seconds))
        if name == _CLUSTER:
            logged.append(await closed_loop(side.publishers, requests, nodes.log, seconds))
        progress("objects", number + 1, rounds * len(publishing))
    return _row(reported, applied, logged, pushed, len(nodes.nodes))


def _in_turn(sides: Mapping[str, Side], rounds: int) -> Iterator[tuple[str, Side]]:
    """Yield each side once a round; every second round in the opposite order."""
    for number in range(rounds):
        yield from list(sides.items())[:: -1 if number % 2 else 1]


def _row(
    reported: dict[str, list[Rate]],
    applied: dict[str, list[Rate]],
    logged: list[Rate],
    pushed: dict[str, Latencies],
    node_count: int,
) -> Row:
    cpu = {name: statistics.median(one.cpu_us for one in found) for name, found in reported.items()}
    objects = {
        name: statistics.median(one.cpu_us for one in found) / OBJECTS for name, found in applied.items()
    }
    each = objects[_CLUSTER] / node_count
    row: Row = {
        "reports_cpu_us": round(cpu[""], 1),
        "cluster_reports_cpu_us": round(cpu[_CLUSTER], 1),
        "several_reports_cpu_us": round(cpu[_SEVERAL], 1),
        "reports_cpu_ratio": round(cpu[_CLUSTER] / cpu[""], 3),
        "several_reports_cpu_ratio": round(cpu[_SEVERAL] / cpu[""], 3),
        "objects_cpu_us": round(objects[""], 2),
        "applied_cpu_us": round(each, 2),
        "applied_cpu_ratio": round(each / objects[""], 3),
        "log_cpu_us": round(statistics.median(one.cpu_us for one in logged) / OBJECTS, 2),
    }
    for name, found in reported.items():
        row[f"{name}reports_per_s"] = round(statistics.median(one.per_s for one in found))
        row[f"{name}runs_cpu_us"] = [round(one.cpu_us, 1) for one in found]
    for name, found in applied.items():
        row[f"{name}objects_per_s"] = round(statistics.median(one.per_s for one in found) * OBJECTS)
    for name, latencies in pushed.items():
        row |= {f"{name}{key}": value for key, value in latencies.row("publish").items()}
        row[f"{name}deltas_per_s"] = round(len(latencies.ns) / latencies.seconds)
    return row


async def _pushed(workload: Workload, side: Side, seconds: float) -> Latencies:
    """Publish objects at the rate that causes the required rate of deltas; return their latencies."""

    async def publish(count: int) -> None:
        await side.publishers[0].send(workload.pushed(count).SerializeToString())

    per_s = _DELTAS_PER_S / 2.0
    for _ in range(2):
        found = await pushes(side.devices, publish, per_s, max(1.0, seconds / 2.0))
        per_s *= _DELTAS_PER_S * max(1.0, seconds / 2.0) / max(1.0, len(found.ns))
    return await pushes(side.devices, publish, per_s, seconds)


def small_requests(workload: Workload) -> list[list[bytes]]:
    """Return requests of `OBJECTS` objects that live for seconds, for each publisher."""
    found = list(_small(workload))
    return [
        [found[(i * _REQUESTS + j) % len(found)] for j in range(_REQUESTS)] for i in range(_PUBLISHERS)
    ]


def _small(workload: Workload) -> Iterator[bytes]:
    for request in workload.requests():
        for start in range(0, len(request.objects), OBJECTS):
            objects = request.objects[start : start + OBJECTS]
            for one in objects:
                one.ttl_ms = PUSHED_TTL_MS
            yield PublishRequest(objects=objects).SerializeToString()


def divided(workload: Workload, nodes: Nodes, addresses: Sequence[str]) -> list[str]:
    """Return an address for each device: that at the place of the node that serves it."""
    return [addresses[nodes.of(number)] for number in range(workload.devices)]


@asynccontextmanager
async def channels(addresses: Sequence[str], method: str) -> AsyncIterator[list[Channel]]:
    """Open a stream to each address, on a connection of its own; close them when the block ends."""
    lines = [Channel(number, connection(one), method) for number, one in enumerate(addresses)]
    try:
        yield lines
    finally:
        for line in lines:
            line.end()
            await line.channel.close()
        gc.collect()  # closed channels keep their sockets until they are collected
