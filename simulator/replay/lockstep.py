"""Several processes that replay one simulation together: one publishes and notifies the others.

A tick ends when all processes have finished it. No object of the next tick is therefore published while a
process audits, and within a tick all devices move after all objects are published.
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
    """The changes that the publishing process made at a tick, in this order."""

    retracted: Sequence[int] = ()
    published: Sequence[Published] = ()
    idf_generation: int | None = None
    """The generation of a table of weights that came into force."""


class Failure(NamedTuple):
    """The reason for which a process has ended early."""

    text: str


@dataclass(slots=True)
class Leader:
    """The process that publishes, with a connection to each of the others, if any."""

    lines: Sequence[Connection] = ()

    async def send(self, changes: TickChanges) -> None:
        """Send the changes of a tick to the others."""
        for number, line in enumerate(self.lines, 1):
            try:
                line.send(changes)
            except OSError:
                await self._receive(number, line)  # the process may have sent the reason of its end

    async def done(self, tick: int) -> None:
        """Wait until all processes have finished a tick."""
        for number, line in enumerate(self.lines, 1):
            reply = await self._receive(number, line)
            if reply != tick:
                raise ReplayError(f"process {number + 1} is at tick {reply}, must be at {tick}")

    async def reports(self) -> list[Any]:
        """Wait for the reports of the others."""
        return [await self._receive(number, line) for number, line in enumerate(self.lines, 1)]

    async def _receive(self, number: int, line: Connection) -> Any:  # noqa: ANN401
        try:
            reply = await _received(line)
        except (EOFError, OSError):
            reply = Failure("it ended early")
        if isinstance(reply, Failure):
            raise ReplayError(f"process {number + 1} of {len(self.lines) + 1}: {reply.text}")
        return reply


@dataclass(slots=True)
class Follower:
    """A process that does not publish."""

    line: Connection

    async def receive(self) -> TickChanges:
        """Wait for the changes that the publishing process makes at a tick."""
        try:
            changes: TickChanges = await _received(self.line)
        except (EOFError, OSError):
            raise ReplayError("the publishing process ended early") from None
        return changes

    async def done(self, tick: int) -> None:
        """Report that a tick is finished."""
        self.line.send(tick)


async def _received(line: Connection) -> Any:  # noqa: ANN401
    """Wait for a message without blocking the event loop."""
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    loop.add_reader(line.fileno(), is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(line.fileno())
    return line.recv()
