"""Watchers: streams of frames, each with the changes within a view.

A frame is selected and sent when its interval has passed and the previous one has been written, so a
client that reads slowly gets fewer frames. Nothing waits for a watcher, and nothing runs without one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import closing
from typing import NamedTuple

from identity.expiry import ending
from identity.principal import DEFAULT_TENANT, Principal
from nearcast.errors import Reason, RefusedError
from nearcast.v1 import control_service_pb2 as pb
from server.core.watching.devices import DeviceColumns
from server.core.watching.view import View
from server.core.watching.watcher import WatchedFrame, Watcher
from server.measures import cpu_us
from server.runtime.command_loop import CommandLoop
from server.transport.admission import Admission
from server.transport.first_message import WAIT_S, absent, unread
from server.transport.watch_messages import Events, Rates, view_from, watch_message

_LEAST_S = 0.1
"""Least time between two frames, also when the view is replaced."""

_PART = 20
"""A frame comes no sooner than after this many times its own CPU time, times the number of watchers: so
all of them together take at most a twentieth of the time."""

_RETRY_MS = 5_000


class _Requested(NamedTuple):
    """The latest request of a stream."""

    number: int
    view: View


class _Requests:
    """The requests of a stream, read beside its frames: the latest one counts."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.latest: _Requested | None = None
        self.reason: RefusedError | None = None
        """Why the stream ends, if it does."""
        self.has_changed = asyncio.Event()
        """Set when there is another request, or the stream is to end."""

    def end(self, reason: RefusedError) -> None:
        """End the stream."""
        self.reason = self.reason or reason
        self.has_changed.set()

    async def changed(self, timeout_s: float) -> None:
        """Wait until there is another request or the stream is to end, at most for a time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.has_changed.wait()
        except TimeoutError:
            return


class Watching:
    """Serves all watchers.

    Parameters
    ----------
    command_loop
        Has the state of the server.
    admission
        Charges callers.
    """

    def __init__(self, command_loop: CommandLoop, admission: Admission) -> None:
        self._coordinator = command_loop.coordinator
        self._gc_control = command_loop.gc_control
        self._admission = admission
        self._devices = DeviceColumns(command_loop.coordinator)
        self._streams: set[_Requests] = set()

    def drain(self) -> None:
        """End all streams."""
        for stream in self._streams:
            stream.end(RefusedError(Reason.DRAINING, "server", "stopping", "running; try again"))

    async def frames(
        self, messages: AsyncIterator[pb.WatchRequest], caller: Principal
    ) -> AsyncGenerator[pb.WatchFrame]:
        """Yield the frames of one stream until it is cancelled.

        Raises
        ------
        RefusedError
            If there are too many streams, a request is refused, or the stream has to end.
        """
        caller.account.begin_stream()
        requests = _Requests(caller.tenant)
        reading: asyncio.Task[None] | None = None
        try:
            self._begin(requests)
            reading = asyncio.create_task(self._read(messages, requests, caller))
            with ending(caller, requests.end, _nobody):
                async for frame in self._selected(requests, caller):
                    yield frame
        finally:
            if reading is not None:
                reading.cancel()
            if requests in self._streams:
                self._streams.discard(requests)
                self._devices.finish()
            caller.account.end_stream()
            self._gc_control.suspect()

    def _begin(self, requests: _Requests) -> None:
        limits, tenant = self._coordinator.limits, requests.tenant
        of_tenant = sum(one.tenant == tenant for one in self._streams)
        if tenant != DEFAULT_TENANT:
            _require_room(of_tenant, limits.tenant_watchers_max, "the tenant")
        _require_room(len(self._streams), limits.watchers_max, "all callers")
        self._streams.add(requests)
        self._devices.begin()

    async def _read(
        self, messages: AsyncIterator[pb.WatchRequest], requests: _Requests, caller: Principal
    ) -> None:
        """Read requests at the rate of the caller."""
        number = 0
        try:
            async for message in messages:
                await caller.account.acquire(1)
                number += 1
                view = view_from(message, caller, self._coordinator.limits)
                requests.latest = _Requested(number, view)
                requests.has_changed.set()
        except RefusedError as error:
            requests.end(error)
        if not number:
            requests.end(absent())

    async def _selected(self, requests: _Requests, caller: Principal) -> AsyncIterator[pb.WatchFrame]:
        watcher = Watcher(self._coordinator, self._devices, caller.tenant)
        rates = Rates(self._events()) if caller.tenant == DEFAULT_TENANT else None
        sequence = 0
        await requests.changed(WAIT_S)
        while requests.reason is None and requests.latest is not None:
            requests.has_changed.clear()
            (number, view), began_s = requests.latest, time.monotonic()
            frame, spent_us = await self._frame(watcher, view, caller)
            sequence, began_us = sequence + 1, cpu_us()
            with self._admission.charging(caller.account):
                message = watch_message(frame, sequence, number, self._coordinator.frame)
                if rates is not None:
                    rates.add_to(message, self._events(), frame.devices.attached_count, view.polling_ms)
            spent_us += cpu_us() - began_us
            yield message
            await asyncio.sleep(began_s + _LEAST_S - time.monotonic())
            interval_s = 0.0 if frame.has_more else view.interval_ms / 1_000.0
            rest_s = max(interval_s, _PART * len(self._streams) * spent_us / 1e6)
            await requests.changed(began_s + rest_s - time.monotonic())
        raise requests.reason or unread()

    async def _frame(self, watcher: Watcher, view: View, caller: Principal) -> tuple[WatchedFrame, float]:
        """Return the next frame, and the CPU time of its selection; others run between its slices."""
        spent_us = 0.0
        with closing(watcher.frame(view)) as steps:
            while True:
                began_us = cpu_us()
                with self._admission.charging(caller.account):
                    found = next(steps)
                spent_us += cpu_us() - began_us
                if found is not None:
                    return found, spent_us
                await asyncio.sleep(0)

    def _events(self) -> Events:
        return Events.of(self._coordinator.counters, time.monotonic())


def _require_room(count: int, count_max: int, whose: str) -> None:
    """Raise RefusedError (RATE_LIMITED) if there are as many streams as there may be."""
    if count >= count_max:
        raise RefusedError(
            Reason.RATE_LIMITED,
            "streams",
            f"{count + 1} of Watch",
            f"at most {count_max} of {whose}",
            retry_after_ms=_RETRY_MS,
        )


def _nobody() -> None:
    """Do nothing: a stream whose token has expired ends with its next frame, if its client reads."""
