"""Batches of what needs no disk: reports, hellos, searches, acks and pings.

They are carried out in portions. While one is evaluated, on this thread, objects are looked up for the
next one, on another; in between, streams are read and written, and those who are answered first speak
again first. So neither core waits for the other, however many devices speak at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, cast

from server.commands import command as c
from server.commands.acceptor import Accepted, Acceptor
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.core.matching_service import Retrieved
from server.errors import RefusalError
from server.measures import timed
from server.runtime.command_queue import CommandQueue, Entry

_PORTION = 192
"""Commands in a portion, at most."""

_PORTION_MIN = 24
"""Evaluations that take two milliseconds: fewer are not worth the quarter of one that beginning costs.

They wait for others, or are looked up on this thread."""

_ANY_TIME = (c.Ack, c.Ping)
"""Commands that may come behind another one of their device that is under way."""


class _Portion(NamedTuple):
    """Commands that were accepted; what they ask for is being looked up, if that is enough."""

    accepted: Accepted
    device_ids: set[str]
    size: int
    retrieving: asyncio.Future[Retrieved] | None


class Batcher:
    """Carries out commands of the volatile lane.

    Parameters
    ----------
    coordinator
        What changes.
    queue
        Where commands are taken from.
    on_taken
        Called when some were taken: there is room again.
    """

    def __init__(
        self, coordinator: Coordinator, queue: CommandQueue, on_taken: Callable[[], None]
    ) -> None:
        self._coordinator = coordinator
        self._acceptor = Acceptor(coordinator)
        self._queue = queue
        self._on_taken = on_taken
        self._kernels = ThreadPoolExecutor(1, thread_name_prefix="kernels")

    async def run(self) -> None:
        """Carry out what waits and what arrives meanwhile, about `Limits.batch_max` commands at most.

        Of a flood, in which reports give way to later ones, two portions at most: reading comes first.
        """
        counters, count_max = self._coordinator.counters, self._coordinator.limits.batch_max
        superseded, waiting = counters.reports_superseded, self._queue.volatile_count
        # Half of them, if that is enough, so that there is a portion to follow.
        portion = self._begin(waiting if waiting < 2 * _PORTION_MIN else waiting // 2)
        begun = 0
        while portion is not None:
            begun += portion.size
            retrieved = None if portion.retrieving is None else await portion.retrieving
            if counters.reports_superseded > superseded:
                count_max = min(waiting, 2 * _PORTION)
            following = self._follow(portion, count_max - begun)
            self._acceptor.finish(portion.accepted, retrieved)
            portion = following

    def accept(self, entries: Iterable[Entry], accepted: Accepted) -> None:
        """Accept commands; tell those who are refused."""
        for entry in entries:
            try:
                self._acceptor.accept(cast("c.VolatileCommand", entry.command), entry.answer, accepted)
            except RefusalError as error:
                self.refuse(entry, error.with_traceback(None))

    def refuse(self, entry: Entry, error: RefusalError) -> None:
        """Tell whoever waits for a command, or the device that it is of, that it is refused."""
        command, answer = entry.command, entry.answer
        if answer is not None:
            if not answer.done():
                answer.set_exception(error)
        elif isinstance(command, c.DeviceCommand):
            number, kind = c.rejection_address(command)
            self._coordinator.reject(command.outbox, command.device_id, number, kind, error)

    def finish(self, accepted: Accepted) -> None:
        """Evaluate what was accepted, on this thread."""
        self._acceptor.finish(accepted)

    def _retrieve(self, evaluation: EvaluationBatch) -> Retrieved:
        """Look up what an evaluation needs: in a thread."""
        with timed(self._coordinator.counters.measures.retrieval_us):
            return self._coordinator.matching.retrieve(evaluation)

    def close(self) -> None:
        """End the thread."""
        self._kernels.shutdown()

    def _follow(self, portion: _Portion, count_max: int) -> _Portion | None:
        """Begin the portion after one, if that has left this thread time and enough waits."""
        count = min(count_max, self._queue.volatile_count)
        if portion.retrieving is None or count < _PORTION_MIN:
            return None
        return self._begin(count, portion.device_ids)

    def _begin(self, count: int, under_way: set[str] | None = None) -> _Portion | None:
        """Take a portion, and let objects be looked up for it.

        It ends before the first command of a device of which another is under way, which comes first.
        """
        device_ids: set[str] = set()
        size = 0
        for command in self._queue.volatile(min(count, _PORTION)):
            if isinstance(command, c.DeviceCommand) and not isinstance(command, _ANY_TIME):
                if under_way and command.device_id in under_way:
                    break
                device_ids.add(command.device_id)
            size += 1
        if not size:
            return None
        accepted = Accepted()
        self.accept(self._queue.take_volatile(size), accepted)
        self._coordinator.matching.resume(accepted.evaluation)
        self._on_taken()
        retrieving = None
        if len(accepted.evaluation) >= _PORTION_MIN:
            retrieving = asyncio.get_running_loop().run_in_executor(
                self._kernels, self._retrieve, accepted.evaluation
            )
        return _Portion(accepted, device_ids, size, retrieving)
