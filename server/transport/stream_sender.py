"""The sending side of one stream: it takes the events of its outbox and writes them.

Code that queues events does not wait for it. The stream's own reader waits while too many responses are
not written, and so does `Sync`. A stream without events has one task, the call's own, which reads; a task
for writing exists only while there are events, as most devices are silent most of the time.

When the server drains, queued events are written and messages of the client are discarded. The client
gets `GoAway` as the last event and half-closes, and the server reads until it has: a client that is
writing when its stream ends may lose responses that it has not read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence

from identity.principal import ANYBODY, Principal
from nearcast.errors import RefusedError
from safe_region.steady_clock import steady_clock_ms
from server.core.coordinator import Coordinator
from server.measures import cpu_us
from server.object_traces import ObjectTraces
from server.session import Detached, Event, GoAway, Outbox, RefusedCommand, Rejection
from server.transport.report_timer import note_written

_TAKEN_MAX = 256
"""Events in one write: enough to share the cost of a message, few enough to stay prompt."""

_BEHIND_S = 1.0
"""Maximum time that a stream is not read while snapshots of one of its devices are made."""

_TAKING_US = 500.0
"""Time to take events that is not charged: the costs of their causes include it."""


class StreamSender:
    """Sends the events queued on one connection.

    Parameters
    ----------
    coordinator
        The source of events.
    write
        Sends events; returns when the stream has accepted them.
    single
        Whether the stream belongs to one device and ends with it.
    traces
        Receives the written events.
    principal
        The principal of the stream.
    on_taken
        Called with the microseconds that taking the events took, if that was long: snapshots are only
        made then.
    """

    __slots__ = (
        "__weakref__",
        "_answers_max",
        "_coordinator",
        "_failure",
        "_final_event",
        "_flushed",
        "_is_over",
        "_on_taken",
        "_reader",
        "_single",
        "_traces",
        "_writing",
        "outbox",
        "write",
    )

    def __init__(
        self,
        coordinator: Coordinator,
        write: Callable[[Sequence[tuple[str, Event]]], Awaitable[None]],
        *,
        single: bool,
        traces: ObjectTraces | None = None,
        principal: Principal = ANYBODY,
        on_taken: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._coordinator = coordinator
        self._traces = traces
        self.write = write
        self._on_taken = on_taken
        self._single = single
        self._reader: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._final_event: GoAway | None = None
        self._is_over = False
        self._flushed: tuple[tuple[int, asyncio.Future[None]], ...] = ()
        self._answers_max = coordinator.limits.answers_max
        self.outbox = Outbox(
            self._ring, coordinator.counters, steady_clock_ms, coordinator.limits.late_ms, principal
        )

    @property
    def is_finishing(self) -> bool:
        """Whether messages of the client are to be discarded."""
        return self._final_event is not None

    async def carry(self, reading: Coroutine[None, None, None]) -> None:
        """Read, and write queued events, until either ends; then close. Raises the error of either."""
        self._reader = asyncio.current_task()
        try:
            await reading
        except asyncio.CancelledError:
            if self._reader is not None or _uncancel():
                raise
            if self._failure is not None:
                raise self._failure from None
        finally:
            # Also reached by cancellation, when the client has disconnected: nothing here may wait.
            self._reader = self._failure = None  # no cycle is left behind
            self.close()

    async def write_now(self, device_id: str, event: Event) -> None:
        """Write an event at once, on a stream for which nothing has been queued."""
        await self.write(((device_id, event),))

    def send_away(self, error: RefusedError) -> None:
        """Write the queued events, then GoAway; the client ends the stream and may reconnect."""
        if self.is_finishing:
            return
        self._final_event = GoAway(error)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_all())

    async def room(self) -> None:
        """Wait while too many responses are not written yet, and while snapshots are made in slices.

        Reports of the device would change what it has got, and it would get all of that again. A client
        that reads slowly is waited for no longer than a second: a device that is not read loses its
        lease. Other devices of a fleet do not wait for one.
        """
        outbox = self.outbox
        while outbox.answers_count > self._answers_max:
            await self.flush()
        if self._single and outbox.is_behind:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_BEHIND_S):
                    await self.flush()

    async def flush(self) -> None:
        """Wait until everything queued so far has been written, or the connection is closed."""
        outbox = self.outbox
        if outbox.written_count >= outbox.queued_count:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flushed += ((outbox.queued_count, future),)
        await future

    def end(self) -> None:
        """Write nothing more and stop reading."""
        self._is_over = True
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()

    def close(self) -> None:
        """Drop the queued events and wake all tasks that wait for them."""
        self._is_over = True
        self.outbox.close()
        if self._writing is not None:
            self._writing.cancel()
        self._wake()

    def _ring(self) -> None:
        if self._writing is None and not self._is_over:
            self._writing = asyncio.get_running_loop().create_task(self._write_all())

    async def _write_all(self) -> None:
        """Write until nothing is queued; end the stream after a final event."""
        outbox = self.outbox
        is_final = False
        try:
            while len(outbox) and not self._is_over:
                events = self._taken()
                if events:
                    await self.write(events)
                    note_written(outbox, events, self._coordinator.counters.measures.report_latency_us)
                    if self._traces is not None:
                        self._traces.written(events)
                outbox.wrote()
                if self._flushed:
                    self._wake()
                if self._single:
                    self._is_over = any(_ends(event) for _, event in events)
            if self._final_event is not None and not self._is_over:
                await self.write((("", self._final_event),))
                is_final = True
        except Exception as failure:  # noqa: BLE001 - the reader raises it
            self._failure = failure
            self._is_over = True
        finally:
            self._writing = None
        if is_final:
            self.close()
        elif self._is_over:
            self.end()

    def _taken(self) -> list[tuple[str, Event]]:
        """Take the next events from the outbox."""
        measures = self._coordinator.counters.measures
        began_us = cpu_us()
        events = self._coordinator.router.take(self.outbox, _TAKEN_MAX)
        took_us = cpu_us() - began_us
        if took_us > _TAKING_US:
            measures.slice_us.note(int(took_us))
            self._on_taken(took_us)
        return events

    def _wake(self) -> None:
        waiting = []
        for target, future in self._flushed:
            if self.outbox.written_count < target:
                waiting.append((target, future))
            elif not future.done():
                future.set_result(None)
        self._flushed = tuple(waiting)


def _uncancel() -> bool:
    """Undo one cancellation of this task; return whether there are more."""
    task = asyncio.current_task()  # kept by no frame of a traceback that the task may keep
    return task is None or task.uncancel() > 0


def _ends(event: Event) -> bool:
    refused_hello = isinstance(event, Rejection) and event.command is RefusedCommand.HELLO
    return refused_hello or isinstance(event, Detached)
