"""A stream to one server that carries device sessions. It is opened again when it breaks.

The stream of a single device and the stream of a fleet differ only in the packing of messages, so one
class serves both. When the stream breaks, every session continues with the objects that it holds and
resumes on the next stream. When the server sends `GoAway`, the client half-closes the stream and waits
until the server ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import deque
from typing import Any, Protocol

import grpc

from nearcast.errors import NearcastError, Reason, RefusedError, UnavailableError
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.pending_hellos import PendingHellos
from nearcast.protocol.request_sender import Request
from nearcast.transport.backoff import BACKOFF_MAX_S, backoff_s
from nearcast.transport.calls import (
    PATIENCE_S,
    as_apps_see_it,
    is_coming_back,
    refusal,
    wait_before_retry_s,
)
from nearcast.transport.channel import Channel, TokenError
from nearcast.transport.codec import FLEET, Codec, Waiting
from nearcast.transport.server_watch import ServerWatch
from nearcast.transport.servers import Servers
from nearcast.wire.errors import refusal_from

_log = logging.getLogger(__name__)

_ENTRIES_MAX = 256
"""Requests in one message of a fleet: enough to share the cost of a message."""

_GOODBYE_S = 1.0
"""Time to wait until the server ends a stream, before the client cancels it."""

_TAKEN_ON_S = 5.0
"""Time to wait until the server accepts a stream, before devices send anyway."""

_UNWELCOME = (Reason.UNAUTHENTICATED, Reason.TOKEN_EXPIRED, Reason.PERMISSION_DENIED)

_QUEUE_MAX = 10_000
"""Queued requests. If there are more, `room` makes the caller wait."""


class Owner(Protocol):
    """The streams of a device or a fleet, as one of them uses it."""

    def notify(self) -> None:
        """Wake the callers that wait for a change of a device."""

    def forget(self, session: DeviceSession) -> None:
        """Remove a session that has ended."""

    async def reach(self, stream: DeviceStream) -> bool:
        """Choose the server of a stream; return False if its devices have another stream."""

    def ended(self, stream: DeviceStream) -> None:
        """Remove a stream that has no devices."""


class DeviceStream:
    """Maintains one stream to a server and the sessions on it.

    Parameters
    ----------
    owner
        The streams of which this is one.
    servers
        The servers that the client knows.
    channel
        The connection to the server.
    codec
        `SINGLE` or `FLEET`.
    """

    def __init__(self, owner: Owner, servers: Servers, channel: Channel, codec: Codec) -> None:
        self.sessions: dict[str, DeviceSession] = {}
        self.channel = channel
        self.is_sent_away = False
        """Whether the server is stopping or starting, so that another one is to be tried first."""
        self._owner = owner
        self._servers = servers
        self._codec = codec
        self._queue: deque[Waiting] = deque()
        self._hellos = PendingHellos()
        self._queued = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._jitter = random.Random()
        self._streaming = False
        self._is_going_away = False  # the server has sent `GoAway`: half-close
        self._retry_after_s = 0.0  # time that the server gave
        self._has_served = False  # a device was online on this stream
        self._has_settled = False  # the next wait is short again: see `_settles`
        self._began_s = 0.0
        self._is_patient = False  # wait for a server that cannot be reached
        self._rebuild = asyncio.Event()
        self._watch = ServerWatch(self._is_response_due, self._note_silence)

    # -- for devices -----------------------------------------------------------------------------

    def send(self, device_id: str, request: Request) -> None:
        """Queue a request for the stream. Drop it if there is none: the next one starts with a hello."""
        if not self._streaming:
            return
        if request.HasField("hello"):
            self._hellos.sent(device_id)
        if not request.HasField("ack"):
            self._watch.requested(device_id)
        self._queue.append((device_id, request))
        self._queued.set()
        if len(self._queue) >= _QUEUE_MAX:
            self._room.clear()

    async def room(self) -> None:
        """Wait while the queue of requests is full."""
        await self._room.wait()

    def join(self, session: DeviceSession) -> None:
        """Add a session, which says hello as soon as there is a stream."""
        self.sessions[session.device_id] = session
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="nearcast link")
        elif self._streaming:
            session.connect()
        elif self._is_patient:
            self.rebuild()

    def detach(self, session: DeviceSession) -> None:
        """Remove a session, and detach its device at the server, unless another session has it."""
        if self.sessions.get(session.device_id) is not session:
            return
        del self.sessions[session.device_id]
        if self._codec is FLEET and self._streaming:
            self._queue.append((session.device_id, None))
            self._queued.set()

    def drop_requests(self, device_id: str) -> None:
        """Drop the queued requests of a device except hellos, for which responses are counted."""
        kept = [one for one in self._queue if one[0] != device_id or _is_hello(one)]
        self._queue.clear()
        self._queue.extend(kept)

    @property
    def is_serving(self) -> bool:
        """Whether a device is online on this stream."""
        return any(one.is_online for one in self.sessions.values())

    async def ping(self) -> None:
        """Return when all earlier requests have their responses, or the stream has broken."""
        session = next((one for one in self.sessions.values() if one.is_online), None)
        if session is None:
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        session.ping(lambda: None if future.done() else future.set_result(None))
        await future

    def rebuild(self) -> None:
        """Drop the stream and open another at once, after the client has reconnected."""
        self._rebuild.set()

    async def close(self) -> None:
        """End the stream, so that the server detaches its devices."""
        self._closed = True
        task = self._task
        if task is not None:
            if self._streaming:
                self._is_going_away = True  # the stream half-closes, and the server ends it
                self._queued.set()
                await asyncio.wait({task}, timeout=_GOODBYE_S)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._owner.ended(self)

    # -- the stream ------------------------------------------------------------------------------

    async def _run(self) -> None:
        attempt = 0
        while not self._closed and self.sessions:
            self._retry_after_s = 0.0
            try:
                await self._stream()
            except grpc.aio.AioRpcError as error:
                self._handle_failure(refusal(error, is_encrypted=self.channel.is_encrypted))
            except asyncio.InvalidStateError as error:
                _log.info("stream broken: %s", error)
                self._record_failure(UnavailableError(f"the server cannot be reached: {error}"))
            except TokenError as error:
                _log.warning("%s", error)
                self._record_failure(error)
            except TimeoutError:
                self._record_failure(self._not_back())
            except NearcastError as error:
                _log.warning("%s; resuming", error)
            except Exception as error:  # noqa: BLE001 - a device must not wait forever for a dead stream
                _log.exception("an internal error of the SDK closes the stream")
                self._fail_all(NearcastError(f"an internal error of the SDK: {error!r}"))
            finally:
                self._interrupt()
            attempt = 1 if self._has_settled else attempt + 1
            self._drop_failed()
            if self.sessions and not self._closed:
                wait_s = max(self._retry_after_s, backoff_s(attempt, self._jitter))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._rebuild.wait(), wait_s)
            if self._rebuild.is_set():
                self._rebuild.clear()
                attempt = 0
        self._task = None
        self._owner.ended(self)

    def _handle_failure(self, failure: NearcastError) -> None:
        """Process the failure of the stream: set the next attempt, or fail devices."""
        _log.info("stream broken: %s", failure)
        if isinstance(failure, RefusedError) and failure.server:
            for session in list(self.sessions.values()):
                session.relocate(failure)
            return
        can_renew = self.channel.can_renew_token
        wait_s = wait_before_retry_s(failure, can_renew_token=can_renew)
        if wait_s is None and _is_unwelcome(failure):
            if not (can_renew and _is_unknown_token(failure)):
                self._fail_all(failure)
                return
            for newcomer in self._newcomers():
                newcomer.fail(failure)
        if _is_unwelcome(failure) and not self._has_served:
            _log.warning("the token function has returned a token that is refused: %s", failure)
        if wait_s is not None:
            self._retry_after_s = wait_s
        self.is_sent_away = is_coming_back(failure)
        if wait_s is not None or self.is_sent_away:
            self._extend_retries()
        self._record_failure(failure)

    async def _stream(self) -> None:
        """Run one stream until either side breaks or ends it, or `rebuild` drops it.

        Devices that were online before wait for the server: the connection retries. Devices that were
        never online fail at once if the server cannot be reached, unless it has reported that it will be
        back.
        """
        if not await self._owner.reach(self):
            return
        self.is_sent_away = False
        self._is_going_away = self._has_served = self._has_settled = False
        talking = asyncio.create_task(self._talk())
        rebuilding = asyncio.create_task(self._rebuild.wait())
        try:
            await asyncio.wait({talking, rebuilding}, return_when=asyncio.FIRST_COMPLETED)
            if not self._rebuild.is_set():
                talking.result()
        finally:
            talking.cancel()
            rebuilding.cancel()
            await asyncio.gather(talking, rebuilding, return_exceptions=True)

    async def _talk(self) -> None:
        """Open the stream with a token, send a hello for every session, then read and write."""
        self._is_patient = False  # devices that join meanwhile need no other token
        try:
            metadata = await self.channel.metadata()
        finally:
            newcomers = self._newcomers()
            self._is_patient = all(_may_retry(one) for one in newcomers)
        waits = self._is_patient and self._servers.is_only(self.channel)
        deadline_s = min((one.retry_deadline_s for one in newcomers), default=None)
        call = self._codec.open(self.channel.devices, metadata, waits)
        tasks: list[asyncio.Task[None]] = []
        try:
            async with asyncio.timeout_at(deadline_s if self._is_patient else None):
                await call.wait_for_connection()
                # A client that writes before this may not receive the reason of a refusal.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(call.initial_metadata(), _TAKEN_ON_S)
            self._streaming = True
            self._began_s = asyncio.get_running_loop().time()
            for session in list(self.sessions.values()):
                session.connect()
            reading = asyncio.create_task(self._read(call))
            tasks = [reading, asyncio.create_task(self._write(call))]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            await reading  # after a half-close: until the server ends the stream
        finally:
            for task in tasks:
                task.cancel()
            call.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, call: Any) -> None:  # noqa: ANN401
        only = next(iter(self.sessions), "")
        while (message := await call.read()) is not grpc.aio.EOF:
            had_sessions = bool(self.sessions)
            self._watch.arrived()
            for device_id, response in self._codec.unpack(message, only):
                session = self.sessions.get(device_id)
                if self._hellos.is_current(device_id, response) and session is not None:
                    session.receive(response)
                    self._watch.responded(device_id)
            self._drop_failed()
            if had_sessions and not self.sessions:
                return
            if message.HasField("go_away"):
                self._go_away(refusal_from(message.go_away.error))

    async def _write(self, call: Any) -> None:  # noqa: ANN401
        """Write what is queued until the server sends `GoAway`, then half-close."""
        while not self._is_going_away:
            await self._queued.wait()
            self._queued.clear()
            while self._queue:
                count = min(len(self._queue), _ENTRIES_MAX)
                requests = [self._queue.popleft() for _ in range(count)]
                self._room.set()
                for message in self._codec.pack(requests):
                    try:
                        await call.write(message)
                    except asyncio.InvalidStateError:
                        return  # the stream has ended: the reader or the next stream has the reason
        with contextlib.suppress(grpc.aio.InternalError):  # the stream has ended
            await call.done_writing()

    def _is_response_due(self, device_id: str) -> bool:
        session = self.sessions.get(device_id)
        return session is not None and session.is_response_due

    def _note_silence(self, is_silent: bool) -> None:  # noqa: FBT001 - its only argument
        """Notify devices that the server has stopped responding, or responds again."""
        if is_silent:
            _log.info("the server does not respond")
        for session in self.sessions.values():
            session.set_responsive(is_responsive=not is_silent)

    def _go_away(self, error: RefusedError) -> None:
        """Send nothing more on this stream; its devices reconnect on the next."""
        for session in self.sessions.values():
            session.offline_error = error
        self._is_going_away = self.is_sent_away = True
        self._extend_retries()
        self._interrupt()
        self._queued.set()

    def _extend_retries(self) -> None:
        """Let newcomers retry for `PATIENCE_S`: the server has reported that it will be back."""
        for session in self._newcomers():
            session.retry_deadline_s = (
                session.retry_deadline_s or asyncio.get_running_loop().time() + PATIENCE_S
            )

    def _newcomers(self) -> list[DeviceSession]:
        """Return the devices that were never online."""
        return [session for session in self.sessions.values() if not session.was_online]

    def _record_failure(self, error: NearcastError) -> None:
        """Let apps read the error. Newcomers that may not retry fail; other devices resume later."""
        unavailable = as_apps_see_it(error)
        for session in self.sessions.values():
            session.offline_error = unavailable
        for session in self._newcomers():
            if not _may_retry(session):
                session.fail(unavailable)

    def _not_back(self) -> UnavailableError:
        """Return the error of newcomers whose time is over, with what the server reported before."""
        message = f"the server cannot be reached: no connection within {PATIENCE_S:g} s"
        for session in self._newcomers():
            reported = session.offline_error
            if reported is not None and is_coming_back(reported):
                error = UnavailableError(f"{message}; it last reported: {reported}", reported.hint)
                error.__cause__ = reported
                return error
        return UnavailableError(message)

    def _fail_all(self, error: NearcastError) -> None:
        for session in self.sessions.values():
            session.fail(error)

    def _interrupt(self) -> None:
        """Drop queued requests and disconnect the devices."""
        self._has_served = self._has_served or any(one.is_online for one in self.sessions.values())
        self._has_settled = self._has_settled or self._settles()
        was_streaming, self._streaming = self._streaming, False
        self._queue.clear()
        self._hellos.clear()
        self._watch.clear()
        self._room.set()
        if was_streaming:  # if not, they are disconnected already
            for session in self.sessions.values():
                session.disconnect()
        self._owner.notify()

    def _settles(self) -> bool:
        """Return whether the stream has lasted, or all of its devices have caught up.

        After other streams the waits continue to grow: what has ended one may end the next as early, and
        the server sends the same snapshots each time.
        """
        if not self._streaming:
            return False
        if asyncio.get_running_loop().time() - self._began_s > BACKOFF_MAX_S:
            return True
        return bool(self.sessions) and all(one.is_caught_up for one in self.sessions.values())

    def _drop_failed(self) -> None:
        """Remove sessions that have failed."""
        for session in [one for one in self.sessions.values() if one.error is not None]:
            del self.sessions[session.device_id]
            self._owner.forget(session)


def _is_unwelcome(error: NearcastError) -> bool:
    """Return whether the server refuses the token, which all devices of a client share."""
    return isinstance(error, RefusedError) and error.reason in _UNWELCOME


def _is_unknown_token(error: NearcastError) -> bool:
    """Return whether the server does not know the token, which may be signed with a key that is new."""
    return isinstance(error, RefusedError) and error.reason is Reason.UNAUTHENTICATED


def _is_hello(waiting: Waiting) -> bool:
    return waiting[1] is not None and waiting[1].HasField("hello")


def _may_retry(newcomer: DeviceSession) -> bool:
    return asyncio.get_running_loop().time() < newcomer.retry_deadline_s
