"""How several processes replay one simulation together: one publishes and tells the others.

A tick ends when all have done with it. So nothing of the next is published while somebody's lists are
audited, and within a tick everybody moves after everything is published.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from simulator.replay.options import ReplayError
from simulator.replay.published_objects import Published


@dataclass(frozen=True, slots=True)
class TickChanges:
    """What the publishing process did at a tick, in this order."""

    retracted: Sequence[int] = ()
    published: Sequence[Published] = ()
    idf_generation: int | None = None
    """Of a table of weights that came into force."""


class Failure(NamedTuple):
    """Why a process has ended before its time."""

    text: str


@dataclass(slots=True)
class Leader:
    """The process that publishes, with a line to each of the others, of which there may be none."""

    lines: Sequence[Connection] = ()

    async def send(self, changes: TickChanges) -> None:
        """Let the others know what was done at a tick."""
        for number, line in enumerate(self.lines, 1):
            try:
                line.send(changes)
            except OSError:
                await self._receive(number, line)  # perhaps it has said why it is gone

    async def done(self, tick: int) -> None:
        """Wait until a tick is done everywhere."""
        for number, line in enumerate(self.lines, 1):
            reply = await self._receive(number, line)
            if reply != tick:
                raise ReplayError(f"process {number + 1} is at tick {reply}, must be at {tick}")

    async def reports(self) -> list[Any]:
        """Wait for what each of the others has found."""
        return [await self._receive(number, line) for number, line in enumerate(self.lines, 1)]

    async def _receive(self, number: int, line: Connection) -> Any:  # noqa: ANN401
        try:
            reply = await _received(line)
        except (EOFError, OSError):
            reply = Failure("it has ended before its time")
        if isinstance(reply, Failure):
            raise ReplayError(f"process {number + 1} of {len(self.lines) + 1}: {reply.text}")
        return reply


@dataclass(slots=True)
class Follower:
    """A process that does not publish."""

    line: Connection

    async def receive(self) -> TickChanges:
        """Wait until the publishing process has done its part of a tick."""
        try:
            changes: TickChanges = await _received(self.line)
        except (EOFError, OSError):
            raise ReplayError("the process that publishes has ended before its time") from None
        return changes

    async def done(self, tick: int) -> None:
        """Say that a tick is done."""
        self.line.send(tick)


async def _received(line: Connection) -> Any:  # noqa: ANN401
    """Wait for a message without holding up the event loop."""
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    loop.add_reader(line.fileno(), is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(line.fileno())
    return line.recv()
