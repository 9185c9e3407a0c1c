"""A reconnect storm: a server is killed and starts again, and all its devices reconnect at once.

The devices are those of the SDK, in this process, and reconnect by themselves, with backoff. Each has one
subscription for the k best objects. When all have their results, the server is killed and started again
with the same store on the same port. The server itself reports the time from the first hello that it
receives to the last snapshot that it writes (`ControlService.Status`). The waiting time of devices, until
each is EXACT again, is measured here.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import nearcast
from bench.audits import Audit, sample
from bench.benchmark import Progress, Row
from bench.errors import BenchError
from bench.server.fleets import STREAMS
from bench.server.listeners import AUDITED
from bench.server.processes import Process
from bench.server.setup import published, serving
from bench.server.workload import Workload, object_batch
from nearcast.model import Counters, ServerStatus, SubscriptionState
from nearcast.protocol.subscription import Subscription

_ATTACHING = 200
"""Devices that attach at once, before the storm."""
_TICK_S = 0.05
"""Seconds between two checks of the devices: to check thousands takes a millisecond of the devices' own
core."""
_BACK_S = 120.0


@dataclass(slots=True)
class _Attached:
    """A device: its subscription, its counters, and the number of deltas before the storm."""

    subscription: Subscription
    counters: Counters
    deltas: int = 0
    back_s: float = 0.0

    def is_back(self) -> bool:
        """Return whether the new server has sent a delta, and the result is exact."""
        has_delta = self.counters.deltas > self.deltas
        return has_delta and self.subscription.state is SubscriptionState.EXACT


class Storm:
    """One storm.

    Parameters
    ----------
    workload
        Objects, devices and their subscriptions.
    k
        k of every subscription.
    folder
        Folder of the store.
    progress
        Function that receives the progress.
    is_fleet
        Whether the devices share fleet streams; if not, each has a connection.
    """

    def __init__(
        self, workload: Workload, k: int, folder: Path, progress: Progress, *, is_fleet: bool
    ) -> None:
        self._workload = workload
        self._k = k
        self._folder = folder
        self._is_fleet = is_fleet
        self._progress = progress
        self._stage = f"storm of {workload.devices}"

    async def measure(self) -> Row:
        """Measure the storm; return the row."""
        workload = self._workload
        row: Row = {"devices": workload.devices, "k": self._k}
        async with AsyncExitStack() as stack:
            with serving(workload, self._folder) as server:
                row["publishes_per_s"] = round(await published(workload, server, self._progress))
                began = time.perf_counter()
                attached = await self._attached(stack, server.address)
                row["attach_s"] = round(time.perf_counter() - began, 2)
                for one in attached:
                    one.deltas = one.counters.deltas
                server.kill()
                killed = time.perf_counter()
            async with self._restarted(server) as server:
                row["restart_s"] = round(time.perf_counter() - killed, 2)
                cpu_s = server.cpu_s()
                await self._all_back(attached, killed)
                row["storm_cpu_us"] = round(1e6 * (server.cpu_s() - cpu_s) / workload.devices)
                row |= _server_times(await _status(server))
                row |= _device_times(attached, row["restart_s"])
                row["rss_mb"] = round(server.rss_bytes() / 1e6, 1)
                return row | self._audited(attached)

    async def _attached(self, stack: AsyncExitStack, address: str) -> list[_Attached]:
        """Attach all devices, and let each subscribe."""
        if self._is_fleet:
            clients = [await stack.enter_async_context(nearcast.connect(address)) for _ in range(STREAMS)]
            hosts = [await stack.enter_async_context(client.fleet()) for client in clients]
        room = asyncio.Semaphore(_ATTACHING)
        count = 0

        async def attach(number: int) -> _Attached:
            nonlocal count
            workload = self._workload
            spec = nearcast.TopK(
                frozenset(workload.keywords(number)), self._k, float(workload.subscribed.alpha[number])
            )
            lon, lat = workload.frame.unproject(*workload.place(number, 0))
            async with room:
                host = (
                    hosts[number % STREAMS]
                    if self._is_fleet
                    else await stack.enter_async_context(nearcast.connect(address))
                )
                device = await host.attach(workload.device_id(number), lon=lon, lat=lat)
                subscription = await device.subscribe(spec)
            count += 1
            if count % _ATTACHING == 0 or count == workload.devices:
                self._progress(f"{self._stage}, attached", count, workload.devices)
            return _Attached(subscription, device.counters)

        return await asyncio.gather(*(attach(number) for number in range(self._workload.devices)))

    @asynccontextmanager
    async def _restarted(self, before: Process) -> AsyncIterator[Process]:
        """Start the server again; devices continue to retry meanwhile."""
        port = int(before.address.rpartition(":")[2])
        process = serving(self._workload, self._folder, port)
        server = await asyncio.to_thread(process.__enter__)
        try:
            yield server
        finally:
            await asyncio.to_thread(process.__exit__, None, None, None)

    async def _all_back(self, attached: list[_Attached], killed: float) -> None:
        """Wait until all devices are EXACT again; record the time of each.

        Raises
        ------
        BenchError
            If some do not become EXACT in time.
        """
        away = attached
        while away:
            await asyncio.sleep(_TICK_S)
            now_s = time.perf_counter() - killed
            still = []
            for one in away:
                if one.is_back():
                    one.back_s = now_s
                else:
                    still.append(one)
            if len(still) < len(away):
                self._progress(f"{self._stage}, back", len(attached) - len(still), len(attached))
            if still and now_s > _BACK_S:
                raise BenchError(f"{len(still)} of {len(attached)} devices did not reconnect")
            away = still

    def _audited(self, attached: list[_Attached]) -> Row:
        """Compare the results that a sample of devices shows with the oracle."""
        workload = self._workload
        subscribed = replace(workload.subscribed, k=np.full(workload.devices, self._k, dtype=np.int64))
        audit = Audit(subscribed, workload.frame.maxdist_m)
        audit.publish(object_batch(workload))
        for handle in sample(workload.devices, AUDITED, np.random.default_rng(3)).tolist():
            lon_lat = workload.frame.unproject(*workload.place(handle - 1, 0))
            point = workload.frame.project(*lon_lat)
            one = attached[handle - 1].subscription
            exact = one.state is SubscriptionState.EXACT
            shown = [match.object.id for match in one.results()] if exact else None
            audit.compare_list(handle, shown, point.x_m, point.y_m)
        return {"lists_audited": audit.lists, "mismatches": audit.mismatches}


async def storm(workload: Workload, k: int, progress: Progress, *, is_fleet: bool) -> Row:
    """Measure one storm; return its row."""
    with tempfile.TemporaryDirectory() as folder:
        return await Storm(workload, k, Path(folder), progress, is_fleet=is_fleet).measure()


async def _status(server: Process) -> ServerStatus:
    """Return the status once everything is written: a device may read a delta before it is counted."""
    async with nearcast.connect(server.address) as client:
        while (found := await client.status()).gauges["events_waiting"]:  # noqa: ASYNC110 - no event here
            await asyncio.sleep(_TICK_S)
        return found


def _server_times(status: ServerStatus) -> Row:
    """Return the storm's duration on the server, and the seconds from serving to the first hello."""
    first_ms, last_ms = (status.gauges[name] for name in ("first_hello_ms", "last_snapshot_ms"))
    return {
        "storm_s": round((last_ms - first_ms) / 1000.0, 2),
        "first_hello_s": round(first_ms / 1000.0, 2),
        "hellos": status.counters["hellos"],
        "snapshots_sent": status.counters["snapshots_sent"],
    }


def _device_times(attached: list[_Attached], restart_s: float) -> Row:
    """Return the seconds from the kill until devices were EXACT; and the last, from `serving`."""
    waited_s = np.array([one.back_s for one in attached])
    return {
        "exact_s_p50": round(float(np.quantile(waited_s, 0.5)), 2),
        "exact_s_p99": round(float(np.quantile(waited_s, 0.99)), 2),
        "exact_s_max": round(float(waited_s.max()), 2),
        "exact_s_max_serving": round(float(waited_s.max()) - restart_s, 2),
    }
