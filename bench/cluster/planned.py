"""Compare what `nearcast plan` computes for a load with what the nodes of a cluster use under it."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Sequence
from typing import Any

from bench.benchmark import Progress, Row
from bench.cluster.experiments import ClusterParameters
from bench.cluster.load import OBJECTS, channels, divided, small_requests
from bench.cluster.nodes import Nodes
from bench.errors import BenchError
from bench.server import lines as ways
from bench.server.connections import attach
from bench.server.lines import Channel, silent
from bench.server.listeners import Listeners, expired
from bench.server.measures import at_pace
from bench.server.setup import published
from bench.server.workload import Workload, sent_ns

_PUSHES = 10
"""Objects of a request of those that change the result of a device."""
_LEASE_S = 1e6
"""No pings are sent meanwhile."""


class Load:
    """A steady load of reports and publications, which counts what it causes.

    Parameters
    ----------
    workload
        The messages.
    parameters
        The rates.
    devices, publisher
        The streams.
    """

    def __init__(
        self,
        workload: Workload,
        parameters: ClusterParameters,
        devices: Sequence[Channel],
        publisher: Channel,
    ) -> None:
        self._workload = workload
        self._rates = parameters
        self._devices = devices
        self._publisher = publisher
        self._reports = workload.rounds()
        self._requests = small_requests(workload)[0]
        self._turns = [0] * len(devices)
        self._is_open = [False] * len(devices)
        self._chance = random.Random(7)
        self.reports = self.pushed = self.objects = self.requests = 0

    async def run(self, seconds: float) -> None:
        """Send, for a time."""
        for line in self._devices:
            line.on_message = self._on_message
        rates = self._rates
        await asyncio.gather(
            at_pace(self._report, rates.device_reports_per_s * self._workload.reporting, seconds),
            at_pace(self._publish, rates.objects_per_s / OBJECTS, seconds),
            at_pace(self._push, rates.pushes_per_s / _PUSHES, seconds),
        )
        for line in self._devices:
            line.on_message = silent

    def _on_message(self, number: int, message: bytes) -> Sequence[bytes]:
        if sent_ns(message) or not self._is_open[number]:
            self.pushed += 1
        else:
            self._is_open[number] = False
        return ()

    async def _report(self, count: int) -> None:
        reporting = self._workload.reporting
        for number in self._chance.sample(range(reporting), min(count, reporting)):
            if not self._is_open[number]:
                self._turns[number] += 1
                self._is_open[number] = True
                mine = self._reports[number]
                await self._devices[number].send(mine[self._turns[number] % len(mine)])
                self.reports += 1

    async def _publish(self, count: int) -> None:
        for _ in range(count):
            await self._publisher.send(self._requests[self.requests % len(self._requests)])
            self.requests += 1
            self.objects += OBJECTS

    async def _push(self, count: int) -> None:
        for _ in range(count):
            await self._publisher.send(self._workload.pushed(_PUSHES).SerializeToString())
            self.requests += 1
            self.objects += _PUSHES


async def planned(
    workload: Workload, parameters: ClusterParameters, nodes: Nodes, progress: Progress
) -> Row:
    """Measure nodes under a load, and compute the plan for it; return the row."""
    await published(workload, nodes.nodes[0], progress)
    await nodes.settled()
    seconds, rounds = parameters.seconds, parameters.rounds
    async with (
        channels(divided(workload, nodes, nodes.addresses), ways.ATTACH) as devices,
        channels([nodes.addresses[0]], ways.PUBLISH) as (publisher,),
    ):
        listeners = Listeners(workload, devices)
        await attach(devices, workload)
        await publisher.start()
        idle_cores = await _cores(nodes, asyncio.sleep(seconds), seconds)
        cores, load = [], Load(workload, parameters, devices, publisher)
        for number in range(rounds):
            cores.append(await _cores(nodes, load.run(seconds), seconds))
            progress("rounds", number + 1, rounds)
        memory_mb = statistics.mean(one.rss_bytes() for one in nodes.nodes) / 1e6
        await expired()
        audit = await listeners.audit()
    plan = await asyncio.to_thread(_plan, workload, len(nodes.nodes), load, rounds * seconds)
    return {
        "idle_cores": round(idle_cores, 3),
        "reports_per_s": round(load.reports / rounds / seconds),
        "deltas_per_s": round(load.pushed / rounds / seconds),
        "published_per_s": round(load.objects / rounds / seconds),
        **_compared("node_cores", statistics.median(cores), plan["node_cpu_cores"], 3),
        **_compared("node_mb", memory_mb, plan["node_memory_mb"], 0),
        **audit,
    }


async def _cores(nodes: Nodes, during: Awaitable[None], seconds: float) -> float:
    """Return the mean CPU time of a node per second."""
    before = [one.cpu_s() for one in nodes.nodes]
    await during
    spent = [one.cpu_s() - first for one, first in zip(nodes.nodes, before, strict=True)]
    return statistics.mean(spent) / seconds


def _compared(name: str, measured: float, computed: float, digits: int) -> Row:
    return {
        name: round(measured, digits),
        f"planned_{name}": round(computed, digits),
        f"{name}_ratio": round(measured / computed, 2),
    }


def _plan(workload: Workload, nodes: int, load: Load, seconds: float) -> dict[str, Any]:
    """Return what the command prints, as a user calls it."""
    flags = {
        "devices": workload.devices,
        "objects": len(workload.objects),
        "publishes-per-s": load.objects / seconds,
        "per-request": max(1.0, load.objects / max(1, load.requests)),
        "payload-bytes": 0,
        "reports-per-s": load.reports / seconds,
        "deltas-per-s": load.pushed / seconds,
        "lease-s": _LEASE_S,
        "nodes": nodes,
        "load": 1,
        "spare": 0,
    }
    command = [sys.executable, "-m", "cli", "plan", "--json", "--no-gateways"]
    command += [f"--{name}={value}" for name, value in flags.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise BenchError(done.stderr.strip())
    found: dict[str, Any] = json.loads(done.stdout)["plan"]
    return found
