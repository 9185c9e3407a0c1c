"""Nodes as processes. Everything that reaches a node, and everything that it reaches, passes relays."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from cluster.local_servers import LocalServer
from tests.chaos.cluster.links import Link
from tests.chaos.servers import AREA, ServerProcess


class Node(ServerProcess):
    """`nearcast serve` with a log.

    Parameters
    ----------
    folder
        Where its store, its log file and its control file lie.
    logs
        The servers of the log.
    """

    def __init__(self, folder: Path, logs: Sequence[LocalServer]) -> None:
        super().__init__(folder, virtual_time=False)
        self.to_devices = Link(self.target)
        """What devices and publishers reach."""
        self.to_log = [Link(one.url.removeprefix("nats://")) for one in logs]
        self._monitors = ",".join(one.monitor_url for one in logs)

    async def open(self) -> None:
        """Open the relays."""
        self.address = await self.to_devices.start()
        self._log = ",".join([f"nats://{await one.start()}" for one in self.to_log])

    def _flags(self) -> list[str]:
        return [
            f"--area={AREA}",
            f"--port={self.port}",
            f"--store={self.store}",
            "--create",
            f"--advertise={self.address}",
            f"--log={self._log}",
            f"--log-monitor={self._monitors}",
            f"--log-replicas={len(self.to_log)}",
        ]

    async def close(self) -> None:
        """End the process and the relays."""
        self.limit_none()
        await self.stop()
        await asyncio.gather(*(one.stop() for one in (self.to_devices, *self.to_log)))

    def limit_none(self) -> None:
        """Let its files grow again, if it runs."""
        if self.is_running:
            self.go_on()
            self.limit_files(None)
