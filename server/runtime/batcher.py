"""Batches of commands that need no disk: reports, hellos, searches, acks and pings.

They are processed in chunks. While this thread evaluates a chunk, another thread looks up the objects for
the next one. Between chunks, streams are read and written, and devices whose responses come first send
again first. So neither core waits for the other, however many devices send at once. The evaluations of a
command that costs much more than others, such as the hello of a device that holds tens of thousands of
objects, are divided: in between, commands of other devices are executed.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, cast

from engine.engine import Part
from nearcast.errors import RefusedError
from server import command as c
from server.commands.acceptor import Accepted, Acceptor
from server.commands.costs import Costs
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.measures import SliceTimer, timed
from server.runtime.charges import Charges
from server.runtime.command_queue import QUERIES, CommandQueue, Entry

_CHUNK = 192
_CHUNK_US = 5_000.0
"""Maximum number of commands in a chunk, and their maximum cost, which the last one may exceed; a chunk
blocks the event loop."""

_DIVIDED_US = 2.0 * _CHUNK_US
"""Cost above which a chunk is divided: its last command exceeds the maximum by itself."""

RUN_US = 50_000.0
"""Cost of volatile commands after which commands that need the disk get their turn."""

_CHUNK_MIN = 24
"""Minimum number of evaluations to look up in the other thread; they take two milliseconds.

Starting a look-up costs a quarter of a millisecond. Fewer evaluations wait for others, or are looked up
on this thread.
"""

_ANY_TIME = (c.Ack, c.Ping)
"""Commands that may run while another command of their device is in progress."""


class _Chunk(NamedTuple):
    """Accepted commands; a thread looks up the objects of the first part, if it evaluates enough."""

    parts: list[Accepted]
    entries: list[Entry]
    device_ids: set[str]
    retrieving: asyncio.Future[list[Part]] | None


class Batcher:
    """Executes commands of the volatile lane.

    Parameters
    ----------
    coordinator
        The state that commands change.
    queue
        The source of commands.
    on_taken
        Called when commands were taken, so that the queue has capacity again.
    costs, charges
        Track the costs of commands, and charge the callers.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        queue: CommandQueue,
        on_taken: Callable[[], None],
        costs: Costs | None = None,
        charges: Charges | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._costs = costs or Costs(coordinator)
        self._charges = charges or Charges()
        self._acceptor = Acceptor(coordinator)
        self._queue = queue
        self._on_taken = on_taken
        self._kernels = ThreadPoolExecutor(1, thread_name_prefix="kernels")
        self._holds_queries = False

    @contextlib.contextmanager
    def held_queries(self) -> Iterator[None]:
        """Let searches and inspections wait, which would find the half of a change."""
        self._holds_queries = True
        try:
            yield
        finally:
            self._holds_queries = False

    async def run(self) -> None:
        """Execute waiting and arriving commands, until commands of the durable lane get their turn.

        During a flood, in which reports give way to later ones, it executes two chunks at most, since
        reading has priority.
        """
        counters, count_max = self._coordinator.counters, self._coordinator.limits.batch_max
        superseded, waiting = counters.reports_superseded, self._queue.volatile_count
        if not waiting:
            return
        # Take half of them, if that is enough, so that another chunk follows.
        chunk = self._begin(waiting if waiting < 2 * _CHUNK_MIN else waiting // 2)
        started, cost_us = 0, 0.0
        while chunk is not None:
            started += len(chunk.entries)
            cost_us += sum(entry.cost_us for entry in chunk.entries)
            retrieved = None if chunk.retrieving is None else await chunk.retrieving
            if counters.reports_superseded > superseded:
                count_max = min(waiting, 2 * _CHUNK)
            following = self.follow(chunk, count_max - started) if cost_us < RUN_US else None
            begun = chunk.device_ids if following is None else chunk.device_ids | following.device_ids
            await self._finish(chunk, retrieved, begun)
            chunk = following

    async def _finish(self, chunk: _Chunk, retrieved: list[Part] | None, begun: set[str]) -> None:
        """Evaluate a chunk; between two parts, execute commands of devices that are not in `begun`."""
        slice_timer = SliceTimer(self._coordinator.counters.measures.slice_us)
        self._acceptor.finish(chunk.parts[0], retrieved)
        slice_timer.pause()
        for part in chunk.parts[1:]:
            await self._let_others_go_on(begun)
            slice_timer.resume()
            self._acceptor.finish(part)
            slice_timer.pause()
        self._charges.carried_out(chunk.entries, slice_timer.total_us, self._costs.evaluation)

    async def _let_others_go_on(self, begun: set[str]) -> None:
        """Read and write streams, then execute a chunk of cheap commands of other devices."""
        await asyncio.sleep(0)
        chunk = self._begin(self._queue.volatile_count, begun, _CHUNK_US)
        if chunk is not None:
            retrieved = None if chunk.retrieving is None else await chunk.retrieving
            await self._finish(chunk, retrieved, chunk.device_ids)

    def accept(self, entries: Iterable[Entry], accepted: Accepted) -> None:
        """Accept commands; notify the callers of those that are refused."""
        for entry in entries:
            try:
                self._acceptor.accept(cast("c.VolatileCommand", entry.command), entry.answer, accepted)
            except RefusedError as error:
                self.refuse(entry, error.with_traceback(None))

    def refuse(self, entry: Entry, error: RefusedError) -> None:
        """Report the refusal of a command to the caller that waits for it, or to its device."""
        command, answer = entry.command, entry.answer
        if answer is not None:
            if not answer.done():
                answer.set_exception(error)
        elif isinstance(command, c.DeviceCommand):
            number, kind = c.rejection_address(command)
            self._coordinator.reject(command.outbox, command.device_id, number, kind, error)

    def finish(self, accepted: Accepted) -> None:
        """Evaluate accepted commands on this thread, at once: commands that need the disk wait for it."""
        self._acceptor.finish(accepted)

    def _retrieve(self, evaluation: EvaluationBatch) -> list[Part]:
        """Look up the data that an evaluation needs. Runs in a thread."""
        with timed(self._coordinator.counters.measures.retrieval_us):
            return self._coordinator.matching.retrieve(evaluation)

    def close(self) -> None:
        """End the thread."""
        self._kernels.shutdown()

    def follow(self, chunk: _Chunk, count_max: int) -> _Chunk | None:
        """Start the next chunk if this thread is free during the look-up and enough commands wait."""
        count = min(count_max, self._queue.volatile_count)
        if chunk.retrieving is None or count < _CHUNK_MIN:
            return None
        return self._begin(count, chunk.device_ids)

    def _begin(
        self, count: int, under_way: set[str] | None = None, cost_max_us: float = math.inf
    ) -> _Chunk | None:
        """Take a chunk, and start the look-up of its objects.

        Commands of a device with another command in progress wait, and so do those that cost more than
        the maximum.
        """
        is_ready = None
        if under_way or self._holds_queries:
            busy: Collection[str] = under_way or ()

            def is_ready(entry: Entry) -> bool:
                if self._holds_queries and isinstance(entry.command, QUERIES):
                    return False
                return entry.cost_us <= cost_max_us and _ordered_id(entry) not in busy

        slice_timer = SliceTimer(self._coordinator.counters.measures.slice_us)
        entries = self._queue.take_volatile(min(count, _CHUNK), _CHUNK_US, is_ready)
        if not entries:
            return None
        device_ids = {_ordered_id(entry) for entry in entries} - {""}
        accepted = Accepted()
        self.accept(entries, accepted)
        if accepted.evaluation.arrivals:
            self._coordinator.matching.resume(accepted.evaluation)
        self._on_taken()
        parts = [accepted]
        if sum(entry.cost_us for entry in entries) > _DIVIDED_US:
            parts = accepted.divided(self._costs.evaluation_us, _CHUNK_US)
        slice_timer.pause()
        retrieving = None
        if len(parts[0].evaluation) >= _CHUNK_MIN:
            retrieving = asyncio.get_running_loop().run_in_executor(
                self._kernels, self._retrieve, parts[0].evaluation
            )
        return _Chunk(parts, entries, device_ids, retrieving)


def _ordered_id(entry: Entry) -> str:
    """Return the device whose commands have to be executed in order; empty for none."""
    command = entry.command
    if isinstance(command, c.DeviceCommand) and not isinstance(command, _ANY_TIME):
        return command.device_id
    return ""
