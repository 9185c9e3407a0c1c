"""The sending side of one stream: waits for its connection, takes, writes. Nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from server.pump import steady_clock_ms
from server.session import Connection, Detached, Event, RefusedCommand, Rejection
from server.switchboard import Switchboard

_TAKEN_MAX = 256
"""Events in one write: large enough to share the cost of a message, small enough to stay prompt."""


class Outlet:
    """Sends what is queued on one connection.

    Parameters
    ----------
    switchboard
        Where events are taken from.
    write
        Sends events; returns when the stream has accepted them.
    single
        Whether the stream is one device's and ends with it.
    """

    def __init__(
        self,
        switchboard: Switchboard,
        write: Callable[[Sequence[tuple[str, Event]]], Awaitable[None]],
        *,
        single: bool,
    ) -> None:
        self._switchboard = switchboard
        self._write = write
        self._single = single
        self._something: asyncio.Future[None] | None = None
        """What `run` waits for. An `asyncio.Event` takes a kilobyte and twice as long."""
        self._finishing = False
        self._flushed: list[tuple[int, asyncio.Future[None]]] = []
        self._answers_max = switchboard.limits.answers_max
        self.connection = Connection(
            self._ring, switchboard.counters, steady_clock_ms, switchboard.limits.late_ms
        )

    async def run(self) -> None:
        """Send until the connection is closed or finished, or its only device's conversation is over."""
        connection = self.connection
        while True:
            while len(connection):
                events = self._switchboard.take(connection, _TAKEN_MAX)
                if events:
                    await self._write(events)
                connection.wrote()
                self._wake()
                if self._single and any(_ends(event) for _, event in events):
                    return
            if connection.closed or self._finishing:
                return
            self._something = asyncio.get_running_loop().create_future()
            await self._something

    async def room(self) -> None:
        """Wait while too many answers to what the stream has said are not written yet."""
        while self.connection.answers_count > self._answers_max:
            await self.flush()

    async def flush(self) -> None:
        """Wait until everything queued so far has been written, or the connection is closed."""
        connection = self.connection
        if connection.written_count >= connection.queued_count:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flushed.append((connection.queued_count, future))
        await future

    def finish(self) -> None:
        """End the stream once what is queued has been written."""
        self._finishing = True
        self._ring()

    def close(self) -> None:
        """Drop what is queued and let everybody go who waits for it."""
        self.connection.close()
        self._wake()

    def _ring(self) -> None:
        if self._something is not None and not self._something.done():
            self._something.set_result(None)

    def _wake(self) -> None:
        if not self._flushed:
            return
        waiting = []
        for target, future in self._flushed:
            if self.connection.written_count < target:
                waiting.append((target, future))
            elif not future.done():
                future.set_result(None)
        self._flushed = waiting


def _ends(event: Event) -> bool:
    refused_hello = isinstance(event, Rejection) and event.command is RefusedCommand.HELLO
    return refused_hello or isinstance(event, Detached)
