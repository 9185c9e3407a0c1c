"""A cluster, its devices and publishers, and what the log says: everything that a fault can strike."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import nearcast
from cluster.jetstream import JetStreamOptions, open_log
from cluster.local_servers import LocalServer, local_servers
from cluster.slots import SLOTS
from nearcast import Last, NearcastError
from safe_region.earth.frame import Area, Frame
from tests.chaos.cluster.fences import Fences
from tests.chaos.cluster.ledger import Ledger
from tests.chaos.cluster.load import Acknowledged, ClusterLoad
from tests.chaos.cluster.nodes import Node
from tests.chaos.crowd import Crowd
from tests.chaos.servers import AREA

_LOG_SERVERS = 3
_PUBLISHERS = 4
WINDOWS = (Last(seconds=1.0), Last(seconds=600.0), Last(count=5), Last(count=50))
_POLL_S = 0.1
_START_S = 120.0
"""A guard against waiting for ever."""


class ClusterWorld:
    """Three servers of a log, some nodes, and devices and publishers that know the nodes' addresses.

    Parameters
    ----------
    folder
        Where they keep their files.
    node_count, device_count
        How many.
    seed
        Decides everything but the timing.
    pause_s
        For how long a node is paused.
    """

    def __init__(
        self, folder: Path, node_count: int, device_count: int, seed: int, pause_s: float
    ) -> None:
        self.chance = random.Random(seed)
        self.pause_s = pause_s
        self.violations: list[str] = []
        self.lists = self.late = 0
        self.frame = Frame.of(Area(*map(float, AREA.split(","))))
        self._folder = folder
        self._sizes = (node_count, device_count)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with self._stack:
            await self._start()
            self._stack = self._stack.pop_all()
        return self

    async def _start(self) -> None:
        node_count, device_count = self._sizes
        servers = local_servers(self._folder / "log", _LOG_SERVERS)
        self.logs: Sequence[LocalServer] = await asyncio.to_thread(servers.__enter__)
        self._stack.push_async_callback(asyncio.to_thread, servers.__exit__, None, None, None)
        self.nodes = [Node(self._folder / f"node{i + 1}", self.logs) for i in range(node_count)]
        for node in self.nodes:
            await node.open()
            self._stack.push_async_callback(node.close)
        await asyncio.gather(*(node.start() for node in self.nodes))
        await self._read_log()
        targets = ",".join(node.address for node in self.nodes)
        clients = [
            await self._stack.enter_async_context(nearcast.connect(targets)) for _ in range(_PUBLISHERS)
        ]
        self.published = Acknowledged(self.frame, ledger=self.ledger)
        self.crowd = Crowd(self.published, self.violations, self.chance, WINDOWS)
        self.load = ClusterLoad(self.crowd, [client.publisher() for client in clients], self.published)
        self.client = clients[0]
        self._stack.push_async_callback(self.crowd.leave)
        self._stack.push_async_callback(self.load.abandon)
        await self.all_served()
        await self.crowd.gather(device_count, targets, targets)

    async def _read_log(self) -> None:
        monitors = [one.monitor_url for one in self.logs]
        log = await open_log(JetStreamOptions([one.url for one in self.logs], monitors))
        self._stack.push_async_callback(log.close)
        self.ledger, self.fences = Ledger(log, self.frame), Fences(log)
        self._readers = [asyncio.create_task(one.follow()) for one in (self.ledger, self.fences)]
        self._stack.push_async_callback(self._end_readers)

    async def _end_readers(self) -> None:
        for task in self._readers:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def all_served(self) -> None:
        """Wait until every slot is served by one node.

        Raises
        ------
        RuntimeError
            If that does not happen.
        """
        try:
            async with asyncio.timeout(_START_S):
                while sum([await self._gauge(node, "slots") for node in self.nodes]) != SLOTS:  # noqa: ASYNC110
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            found = {
                name: [await self._gauge(node, name) for node in self.nodes]
                for name in ("slots", "nodes", "lease_valid", "log_lag_ms")
            }
            raise RuntimeError(
                f"not all slots are served within {_START_S:.0f} s: {found}, "
                f"{self.fences.owner_count} have an owner"
            ) from None

    async def _gauge(self, node: Node, name: str) -> int:
        """Return a quantity of a node; 0 if it does not respond."""
        try:
            async with nearcast.connect(node.target) as client:
                return (await client.status()).gauges.get(f"cluster_{name}", 0)
        except NearcastError:
            return 0

    def last_words(self) -> str:
        """Return what the nodes said last."""
        return "; ".join(f"{node.address}: {node.last_words()}" for node in self.nodes)
