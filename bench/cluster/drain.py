"""Stop one node after the other, and measure for how long its devices have no exact results."""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import AsyncExitStack

import numpy as np

from bench.benchmark import Progress, Row
from bench.cluster.nodes import Nodes
from bench.cluster.takeover import all_exact, attach, struck_by
from bench.server.sdk_devices import Attached, SdkDevices
from bench.server.workload import Workload
from nearcast.model import SubscriptionState


class Absence:
    """The longest time that a device was not EXACT.

    Parameters
    ----------
    device
        The device.
    """

    def __init__(self, device: Attached) -> None:
        self.device = device
        self.longest_s = 0.0

    async def watch(self) -> None:
        """Follow the states of the device, until cancelled."""
        since_s: float | None = None
        async for state in self.device.subscription.states():
            now_s = time.perf_counter()
            if state is not SubscriptionState.EXACT:
                since_s = now_s if since_s is None else since_s
            elif since_s is not None:
                self.longest_s = max(self.longest_s, now_s - since_s)
                since_s = None


async def drain(
    workload: Workload, k: int, stops: int, nodes: Nodes, progress: Progress, *, is_fleet: bool
) -> Row:
    """Measure stops with SIGTERM; return the row."""
    devices = SdkDevices(workload, k, progress, "drain")
    of_node = [nodes.of(number) for number in range(workload.devices)]
    away_s: list[float] = []
    longest_s: list[float] = []
    ended_s: list[float] = []
    async with AsyncExitStack() as stack:
        await attach(devices, stack, workload, nodes, progress, is_fleet=is_fleet)
        absences = [Absence(one) for one in devices.attached]
        watches = [asyncio.create_task(one.watch()) for one in absences]
        for stop in range(stops):
            await all_exact(devices.attached)
            victim = stop % len(nodes.nodes)
            struck = struck_by(absences, of_node, victim)
            devices.mark()
            for one in absences:
                one.longest_s = 0.0
            stopped_s = time.perf_counter()
            ending = asyncio.create_task(asyncio.to_thread(nodes.buried, victim))
            await devices.all_back([one.device for one in struck], stopped_s)
            await ending
            ended_s.append(time.perf_counter() - stopped_s)
            await all_exact(devices.attached)
            away_s += [one.longest_s for one in struck]
            longest_s.append(max((one.longest_s for one in absences), default=0.0))
            await asyncio.to_thread(nodes.start, victim)
            await nodes.settled()
            progress("stops", stop + 1, stops)
        await all_exact(devices.attached)
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        audited = devices.audited()
    return {
        "stops": stops,
        "struck": round(len(away_s) / stops, 1),
        "away_s_p50": round(float(np.quantile(away_s, 0.5)), 3),
        "away_s_p99": round(float(np.quantile(away_s, 0.99)), 3),
        "all_away_s_p50": round(statistics.median(longest_s), 3),
        "all_away_s_max": round(max(longest_s), 3),
        "ended_s_p50": round(statistics.median(ended_s), 2),
        "runs_away_s": [round(one, 3) for one in longest_s],
        **audited,
    }
