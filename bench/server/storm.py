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
from pathlib import Path

import numpy as np

import nearcast
from bench.benchmark import Progress, Row
from bench.server.processes import Process
from bench.server.sdk_devices import TICK_S, Attached, SdkDevices
from bench.server.setup import published, serving
from bench.server.workload import Workload
from nearcast.model import ServerStatus


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

    async def measure(self) -> Row:
        """Measure the storm; return the row."""
        workload = self._workload
        row: Row = {"devices": workload.devices, "k": self._k}
        devices = SdkDevices(workload, self._k, self._progress, f"storm of {workload.devices}")
        async with AsyncExitStack() as stack:
            with serving(workload, self._folder) as server:
                row["publishes_per_s"] = round(await published(workload, server, self._progress))
                began = time.perf_counter()
                await devices.attach(stack, server.address, is_fleet=self._is_fleet)
                row["attach_s"] = round(time.perf_counter() - began, 2)
                devices.mark()
                server.kill()
                killed = time.perf_counter()
            async with self._restarted(server) as server:
                row["restart_s"] = round(time.perf_counter() - killed, 2)
                cpu_s = server.cpu_s()
                await devices.all_back(devices.attached, killed)
                row["storm_cpu_us"] = round(1e6 * (server.cpu_s() - cpu_s) / workload.devices)
                row |= _server_times(await _status(server))
                row |= _device_times(devices.attached, row["restart_s"])
                row["rss_mb"] = round(server.rss_bytes() / 1e6, 1)
                return row | devices.audited()

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


async def storm(workload: Workload, k: int, progress: Progress, *, is_fleet: bool) -> Row:
    """Measure one storm; return its row."""
    with tempfile.TemporaryDirectory() as folder:
        return await Storm(workload, k, Path(folder), progress, is_fleet=is_fleet).measure()


async def _status(server: Process) -> ServerStatus:
    """Return the status once everything is written: a device may read a delta before it is counted."""
    async with nearcast.connect(server.address) as client:
        while (found := await client.status()).gauges["events_waiting"]:  # noqa: ASYNC110 - no event here
            await asyncio.sleep(TICK_S)
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


def _device_times(attached: list[Attached], restart_s: float) -> Row:
    """Return the seconds from the kill until devices were EXACT; and the last, from `serving`."""
    waited_s = np.array([one.back_s for one in attached])
    return {
        "exact_s_p50": round(float(np.quantile(waited_s, 0.5)), 2),
        "exact_s_p99": round(float(np.quantile(waited_s, 0.99)), 2),
        "exact_s_max": round(float(waited_s.max()), 2),
        "exact_s_max_serving": round(float(waited_s.max()) - restart_s, 2),
    }
