"""Kill one node after the other, and measure when its devices have exact results again."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TypeVar

import numpy as np

from bench.benchmark import Progress, Row
from bench.cluster.nodes import Nodes
from bench.errors import BenchError
from bench.server import loop
from bench.server.sdk_devices import TICK_S, Attached, SdkDevices
from bench.server.setup import published
from bench.server.workload import Workload
from nearcast.model import SubscriptionState

_REST_S = 120.0

T = TypeVar("T")


async def takeover(
    workload: Workload, k: int, kills: int, nodes: Nodes, progress: Progress, *, is_fleet: bool
) -> Row:
    """Measure kills; return the row."""
    devices = SdkDevices(workload, k, progress, "takeover")
    of_node = [nodes.of(number) for number in range(workload.devices)]
    waited_s: list[float] = []
    all_s: list[float] = []
    async with AsyncExitStack() as stack:
        await attach(devices, stack, workload, nodes, progress, is_fleet=is_fleet)
        for kill in range(kills):
            await all_exact(devices.attached)
            victim = kill % len(nodes.nodes)
            struck = struck_by(devices.attached, of_node, victim)
            devices.mark()
            nodes.kill(victim)
            await devices.all_back(struck, time.perf_counter())
            waited_s += [one.back_s for one in struck]
            all_s.append(max((one.back_s for one in struck), default=0.0))
            await asyncio.to_thread(nodes.buried, victim)
            await asyncio.to_thread(nodes.start, victim)
            await nodes.settled()
            progress("kills", kill + 1, kills)
        await all_exact(devices.attached)
        audited = devices.audited()
    return {
        "kills": kills,
        "struck": round(len(waited_s) / kills, 1),
        "all_exact_s_p50": round(statistics.median(all_s), 2),
        "all_exact_s_max": round(max(all_s), 2),
        "exact_s_p50": round(float(np.quantile(waited_s, 0.5)), 2),
        "exact_s_p99": round(float(np.quantile(waited_s, 0.99)), 2),
        "runs_exact_s": [round(one, 2) for one in all_s],
        **audited,
    }


async def attach(
    devices: SdkDevices,
    stack: AsyncExitStack,
    workload: Workload,
    nodes: Nodes,
    progress: Progress,
    *,
    is_fleet: bool,
) -> None:
    """Publish the objects, and attach devices; from then on nothing is collected in this process."""
    await published(workload, nodes.nodes[0], progress)
    await nodes.settled()
    await devices.attach(stack, nodes.addresses, is_fleet=is_fleet)
    stack.enter_context(loop.without_collector())


def struck_by(devices: Sequence[T], of_node: Sequence[int], victim: int) -> list[T]:
    """Return the devices that a node serves while all nodes are there."""
    return [one for one, node in zip(devices, of_node, strict=True) if node == victim]


async def all_exact(attached: list[Attached]) -> None:
    """Wait until all devices are exact.

    Raises
    ------
    BenchError
        If they are not in time.
    """
    try:
        async with asyncio.timeout(_REST_S):
            while any(one.subscription.state is not SubscriptionState.EXACT for one in attached):  # noqa: ASYNC110
                await asyncio.sleep(TICK_S)
    except TimeoutError:
        raise BenchError(f"some devices are not exact within {_REST_S:.0f} s") from None
