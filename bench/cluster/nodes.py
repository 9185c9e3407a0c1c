"""Run the nodes of a cluster, and find the node that serves a device."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import nearcast
from bench.errors import BenchError
from bench.server.processes import Process
from bench.server.setup import serving
from bench.server.workload import Workload
from cluster.local_servers import local_servers
from cluster.slots import SLOTS, preferred, slot_of
from nearcast import NearcastError

_LOG_SERVERS = 3
_SETTLED_S = 120.0
_POLL_S = 0.05


class Together(Process):
    """Several processes that are measured as one."""

    def __init__(self, processes: Sequence[Process]) -> None:
        super().__init__(processes[0].pid, processes[0].address)
        self._processes = processes

    def cpu_s(self) -> float:
        """Return the CPU time of all."""
        return sum(one.cpu_s() for one in self._processes)


class Nodes:
    """The nodes of a cluster, on ports that stay the same.

    Parameters
    ----------
    workload
        It has the service area.
    folder
        Folder of stores and logs.
    flags
        Flags of the log.
    log
        The servers of the log.
    """

    def __init__(
        self, workload: Workload, folder: Path, flags: Sequence[str], log: Sequence[Process]
    ) -> None:
        self._workload = workload
        self._folder = folder
        self._flags = flags
        self._contexts: list[contextlib.AbstractContextManager[Process]] = []
        self.log = Together(log)
        self.nodes: list[Process] = []
        self.addresses: list[str] = []

    @property
    def both(self) -> Together:
        """The nodes and the servers of the log."""
        return Together([*self.nodes, self.log])

    def start(self, number: int) -> None:
        """Start a node, for the first time or again."""
        port = int(self.addresses[number].rpartition(":")[2]) if number < len(self.addresses) else 0
        folder = self._folder / f"node{number}"
        folder.mkdir(exist_ok=True)
        context = serving(self._workload, folder, port, self._flags)
        node = context.__enter__()
        if number == len(self.addresses):
            self.addresses.append(node.address)
            self.nodes.append(node)
            self._contexts.append(context)
        else:
            self.nodes[number], self._contexts[number] = node, context

    def kill(self, number: int) -> None:
        """Kill a node."""
        self.nodes[number].kill()

    def buried(self, number: int) -> None:
        """Wait for the end of a node that was killed."""
        self._contexts[number].__exit__(None, None, None)

    def stop(self) -> None:
        """Stop all nodes."""
        for context in self._contexts:
            context.__exit__(None, None, None)

    def of(self, device: int) -> int:
        """Return the node that serves a device while all nodes are there."""
        address = preferred(slot_of(self._workload.device_id(device)), self.addresses)
        return self.addresses.index(address)

    async def settled(self) -> None:
        """Wait until each node serves the slots that it has while all nodes are there.

        Raises
        ------
        BenchError
            If they do not in time.
        """
        expected = Counter(preferred(slot, self.addresses) for slot in range(SLOTS))
        try:
            async with asyncio.timeout(_SETTLED_S):
                while [await _served(one) for one in self.addresses] != [  # noqa: ASYNC110
                    expected[one] for one in self.addresses
                ]:
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise BenchError(f"the slots are not spread within {_SETTLED_S:.0f} s") from None


async def _served(address: str) -> int:
    try:
        async with nearcast.connect(address) as client:
            return (await client.status()).gauges.get("cluster_slots", 0)
    except NearcastError:
        return 0


@contextmanager
def cluster(workload: Workload, folder: Path, count: int) -> Iterator[Nodes]:
    """Run servers of a log, and nodes, until the block ends."""
    with ExitStack() as stack:
        logs = stack.enter_context(local_servers(folder / "log", _LOG_SERVERS))
        flags = (
            f"--log={','.join(one.url for one in logs)}",
            f"--log-monitor={','.join(one.monitor_url for one in logs)}",
        )
        found = Nodes(workload, folder, flags, [Process(one.pid, one.url) for one in logs])
        stack.callback(found.stop)
        for number in range(count):
            found.start(number)
        yield found
