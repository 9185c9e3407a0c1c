"""What needs no disk and concerns only its own device: reports, acks, pings.

They are carried out in portions. While one is settled, on this thread, objects are looked up for the next
one, on another; in between, streams are read and written, and those who are answered first speak again
first. So neither core waits for the other, however many devices speak at once.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from engine import Choice
from server.commands import command as c
from server.commands.plan import Plan, Step, answer, carry_out, steps
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.errors import RefusalError
from server.model import Place
from server.runtime.command_queue import CommandQueue, Entry

_PORTION = 192
"""Commands in a portion, at most."""

_PORTION_MIN = 24
"""Reports that take two milliseconds: fewer are not worth the quarter of one that beginning costs.

They wait for others, or are looked up on this thread."""

_NOTHING = Step([], [], [])


class _Portion(NamedTuple):
    """Commands that were decided on; what reports ask for is being looked up, if there are enough."""

    batch: list[Entry]
    planned: list[Plan | RefusalError]
    step: Step
    places: dict[int, Place]
    look: asyncio.Future[list[Choice] | None] | None


class ReportBatcher:
    """Carries out commands of the lane aside.

    Parameters
    ----------
    switchboard
        What changes.
    planner
        Decides.
    waiting
        Where commands are taken from.
    on_taken
        Called when some were taken: there is room again.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        planner: Planner,
        waiting: CommandQueue,
        on_taken: Callable[[], None],
    ) -> None:
        self._coordinator = coordinator
        self._planner = planner
        self._waiting = waiting
        self._on_taken = on_taken
        self._kernels = ThreadPoolExecutor(1, thread_name_prefix="kernels")

    async def carry_out(self) -> None:
        """Carry out what waits and what arrives meanwhile, about `Limits.batch_max` commands at most.

        Of a flood, in which reports give way to later ones, two portions at most: reading comes first.
        """
        counters, count_max = self._coordinator.counters, self._coordinator.limits.batch_max
        superseded, waiting = counters.reports_superseded, self._waiting.aside_count
        # Half of them, if that is enough, so that there is a portion to follow.
        portion = self._begin(waiting if waiting < 2 * _PORTION_MIN else waiting // 2)
        begun = 0
        while portion is not None:
            begun += len(portion.batch)
            seen = None if portion.look is None else await portion.look
            if counters.reports_superseded > superseded:
                count_max = min(waiting, 2 * _PORTION)
            following = self._follow(portion, count_max - begun)
            self._finish(portion, seen)
            portion = following

    def close(self) -> None:
        """End the thread."""
        self._kernels.shutdown()

    def _follow(self, portion: _Portion, count_max: int) -> _Portion | None:
        """Begin the portion after one, if that has left this thread time and enough waits."""
        count = min(count_max, self._waiting.aside_count)
        if portion.look is None or count < _PORTION_MIN:
            return None
        return self._begin(count, {report.device_id for report in portion.step.reports})

    def _begin(self, count: int, under_way: Collection[str] = ()) -> _Portion | None:
        """Take a portion, and let objects be looked up for its reports.

        It ends before the first report of a device of which another is under way: that is answered first.
        """
        commands = list(
            itertools.takewhile(
                lambda one: not isinstance(one, c.Report) or one.device_id not in under_way,
                self._waiting.asides(min(count, _PORTION)),
            )
        )
        if not commands:
            return None
        planned = self._planner.plan_batch(commands)
        batch = self._waiting.take_asides(len(planned))
        self._on_taken()
        (step,) = list(steps([plan for plan in planned if isinstance(plan, Plan)])) or [_NOTHING]
        places = self._coordinator.hear(step.reports)
        look = None
        if len(places) >= _PORTION_MIN:
            loop = asyncio.get_running_loop()
            look = loop.run_in_executor(self._kernels, self._coordinator.matching.look, places)
        return _Portion(batch, planned, step, places, look)

    def _finish(self, portion: _Portion, seen: list[Choice] | None) -> None:
        self._coordinator.anchor(portion.places, seen)
        replies: list[object] = [None] * sum(isinstance(plan, Plan) for plan in portion.planned)
        carry_out(self._coordinator, portion.step, replies)
        answer(self._coordinator, portion.batch, portion.planned, replies)
