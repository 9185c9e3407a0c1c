"""Devices of the SDK in this process, which reconnect by themselves, and an audit of their results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import numpy as np

import nearcast
from bench.audits import Audit, sample
from bench.benchmark import Progress, Row
from bench.errors import BenchError
from bench.server.fleets import STREAMS
from bench.server.listeners import AUDITED
from bench.server.workload import Workload, object_batch
from nearcast.model import Counters, SubscriptionState
from nearcast.protocol.subscription import Subscription

TICK_S = 0.05
"""Seconds between two checks of the devices: to check thousands takes a millisecond of the devices' own
core."""
_ATTACHING = 200
"""Devices that attach at once."""
_BACK_S = 120.0


@dataclass(slots=True)
class Attached:
    """A device: its subscription, its counters, and the number of deltas before its server was killed."""

    subscription: Subscription
    counters: Counters
    deltas: int = 0
    back_s: float = 0.0

    def is_back(self) -> bool:
        """Return whether a server has sent a delta since, and the result is exact."""
        has_delta = self.counters.deltas > self.deltas
        return has_delta and self.subscription.state is SubscriptionState.EXACT


class SdkDevices:
    """Devices with one subscription each.

    Parameters
    ----------
    workload
        Devices and their subscriptions.
    k
        k of every subscription.
    progress
        Function that receives the progress.
    stage
        Name of the measurement.
    """

    def __init__(self, workload: Workload, k: int, progress: Progress, stage: str) -> None:
        self._workload = workload
        self._k = k
        self._progress = progress
        self._stage = stage
        self.attached: list[Attached] = []

    async def attach(self, stack: AsyncExitStack, target: str | Sequence[str], *, is_fleet: bool) -> None:
        """Attach all, and let each subscribe.

        Parameters
        ----------
        stack
            It ends the connections.
        target
            Address of the server, or addresses.
        is_fleet
            Whether the devices share fleet streams; if not, each has a connection.
        """
        if is_fleet:
            clients = [await stack.enter_async_context(nearcast.connect(target)) for _ in range(STREAMS)]
            hosts = [await stack.enter_async_context(client.fleet()) for client in clients]
        room = asyncio.Semaphore(_ATTACHING)
        count = 0

        async def attach(number: int) -> Attached:
            nonlocal count
            workload = self._workload
            spec = nearcast.TopK(
                frozenset(workload.keywords(number)), self._k, float(workload.subscribed.alpha[number])
            )
            lon, lat = workload.frame.unproject(*workload.place(number, 0))
            async with room:
                host = (
                    hosts[number % STREAMS]
                    if is_fleet
                    else await stack.enter_async_context(nearcast.connect(target))
                )
                device = await host.attach(workload.device_id(number), lon=lon, lat=lat)
                subscription = await device.subscribe(spec)
            count += 1
            if count % _ATTACHING == 0 or count == workload.devices:
                self._progress(f"{self._stage}, attached", count, workload.devices)
            return Attached(subscription, device.counters)

        self.attached = await asyncio.gather(*map(attach, range(self._workload.devices)))

    def mark(self) -> None:
        """Record the deltas so far, before a server is killed."""
        for one in self.attached:
            one.deltas = one.counters.deltas

    async def all_back(self, devices: Sequence[Attached], killed_s: float) -> None:
        """Wait until devices are EXACT again; record the time of each since the kill.

        Raises
        ------
        BenchError
            If some do not become EXACT in time.
        """
        away = list(devices)
        while away:
            await asyncio.sleep(TICK_S)
            now_s = time.perf_counter() - killed_s
            still = []
            for one in away:
                if one.is_back():
                    one.back_s = now_s
                else:
                    still.append(one)
            if len(still) < len(away):
                self._progress(f"{self._stage}, back", len(devices) - len(still), len(devices))
            if still and now_s > _BACK_S:
                raise BenchError(f"{len(still)} of {len(devices)} devices did not reconnect")
            away = still

    def audited(self) -> Row:
        """Compare the results that a sample of devices shows with the oracle."""
        workload = self._workload
        subscribed = replace(workload.subscribed, k=np.full(workload.devices, self._k, dtype=np.int64))
        audit = Audit(subscribed, workload.frame.maxdist_m)
        audit.publish(object_batch(workload))
        for handle in sample(workload.devices, AUDITED, np.random.default_rng(3)).tolist():
            lon_lat = workload.frame.unproject(*workload.place(handle - 1, 0))
            point = workload.frame.project(*lon_lat)
            one = self.attached[handle - 1].subscription
            exact = one.state is SubscriptionState.EXACT
            shown = [match.object.id for match in one.results()] if exact else None
            audit.compare_list(handle, shown, point.x_m, point.y_m)
        return {"lists_audited": audit.lists, "mismatches": audit.mismatches}
