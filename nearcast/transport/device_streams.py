"""The streams of a device, or of a fleet: one for each server that serves any of its devices.

A device starts at the current server of the client. A server refuses its hello, or detaches it, because
another server serves the device, or because it is starting or stopping. Then the device leaves the stream
and sends its hello to the server that the error names, or later to another one of the list. Events for it
on the former stream are ignored from then on. The first move within five seconds is immediate, and later
ones wait. So a device does not spin between servers that name each other.

If the server of a stream cannot be reached, all devices of the stream go to one of the client's list,
which names the server of each.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable

from nearcast.errors import ClosedError, NearcastError, Reason, RefusedError
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.request_sender import Request
from nearcast.transport.backoff import BACKOFF_MAX_S, backoff_s
from nearcast.transport.calls import PATIENCE_S
from nearcast.transport.channel import Channel
from nearcast.transport.codec import SINGLE, Codec
from nearcast.transport.device_stream import DeviceStream
from nearcast.transport.lease_renewal import LeaseRenewal
from nearcast.transport.servers import Servers

_MS_PER_S = 1000.0


class DeviceStreams:
    """Maintains the sessions of a device or a fleet, and the streams that carry them.

    Parameters
    ----------
    servers
        The servers that the client knows.
    codec
        `SINGLE` or `FLEET`.
    """

    def __init__(self, servers: Servers, codec: Codec) -> None:
        self.sessions: dict[str, DeviceSession] = {}
        self._servers = servers
        self._codec = codec
        self._streams: dict[Channel, DeviceStream] = {}
        self._stream_of: dict[str, DeviceStream] = {}
        self._moves: dict[str, tuple[int, float]] = {}  # number of recent moves, time of the last hello
        self._moving: dict[str, asyncio.TimerHandle] = {}
        self._closed = False
        self._jitter = random.Random()
        self._change = asyncio.Event()
        self._renewal = LeaseRenewal()
        self.on_close: Callable[[DeviceStreams], None] = lambda _streams: None

    # -- for devices -----------------------------------------------------------------------------

    def send(self, device_id: str, request: Request) -> None:
        """Queue a request. Drop it if there is no stream: the next one starts with a hello."""
        stream = self._stream_of.get(device_id)
        if stream is not None:
            stream.send(device_id, request)

    async def room(self, device_id: str) -> None:
        """Wait while the queue of requests of a device's stream is full."""
        stream = self._stream_of.get(device_id)
        if stream is not None:
            await stream.room()

    async def add(self, session: DeviceSession) -> None:
        """Add a session; return when it is online. If the call fails or is cancelled, the session ends.

        Raises
        ------
        RefusedError
            If the server refuses the hello.
        UnavailableError
            If no server can be reached at the first attempt.
        """
        if self._closed:
            raise ClosedError("the client is closed")
        if self.carries(session.device_id):
            raise RefusedError(
                Reason.DEVICE_IN_USE,
                "device_id",
                repr(session.device_id),
                "a device that this client has not attached",
            )
        self.sessions[session.device_id] = session
        session.on_welcome = self._renewal.watch
        session.on_moved = lambda error: self._move(session, error)
        try:
            self._join(session, self._start())
            while not session.is_online:
                await self._changed()
                session.require_open()
        except BaseException:
            await self.detach(session)
            raise

    def notify(self) -> None:
        """Wake the callers that wait for a change."""
        self._change.set()

    async def _changed(self) -> None:
        self._change.clear()
        await self._change.wait()

    def carries(self, device_id: str) -> bool:
        """Return whether a device has a session that has not ended."""
        session = self.sessions.get(device_id)
        return session is not None and session.error is None

    async def release(self, device_id: str, error: NearcastError) -> None:
        """Remove a device and end it with an error, unless it has ended already."""
        session = self.sessions.get(device_id)
        if session is not None and session.error is None:
            stream = self._stream_of.get(device_id)
            if stream is not None:
                stream.drop_requests(device_id)
            await self.detach(session, error)
            self.notify()
        if self._codec is SINGLE:
            await self.close()

    async def detach(self, session: DeviceSession, error: NearcastError | None = None) -> None:
        """Remove a session; its subscriptions stay on the server.

        A session that was removed before only ends: a later one may have the same device.
        """
        is_current = self.sessions.get(session.device_id) is session
        stream = self._stream_of.get(session.device_id) if is_current else None
        self.forget(session)
        session.fail(error or ClosedError(f"device {session.device_id} has detached"))
        if stream is not None:
            stream.detach(session)

    def forget(self, session: DeviceSession) -> None:
        """Remove a session that has ended, unless it was removed before."""
        device_id = session.device_id
        if self.sessions.get(device_id) is not session:
            return
        self.sessions.pop(device_id, None)
        self._stream_of.pop(device_id, None)
        self._moves.pop(device_id, None)
        timer = self._moving.pop(device_id, None)
        if timer is not None:
            timer.cancel()

    async def ping(self) -> None:
        """Return when all earlier requests have their responses, or their streams have broken."""
        await asyncio.gather(*(stream.ping() for stream in list(self._streams.values())))

    def is_waiting(self) -> bool:
        """Return whether any device waits for a response."""
        return any(session.is_waiting for session in self.sessions.values())

    def channels(self) -> set[Channel]:
        """Return the connections of the servers that serve devices."""
        return {channel for channel, stream in self._streams.items() if stream.is_serving}

    def rebuild(self) -> None:
        """Drop all streams and open others at once, after the client has reconnected."""
        for stream in self._streams.values():
            stream.rebuild()

    async def close(self) -> None:
        """End the streams. Devices are detached; their subscriptions stay on the server.

        On return other clients can attach the devices, unless the server did not respond in time.
        """
        self._closed = True
        self.on_close(self)
        self._renewal.close()
        for timer in self._moving.values():
            timer.cancel()
        error = ClosedError("the client is closed")
        for session in list(self.sessions.values()):
            session.fail(error)
            self.forget(session)
        await asyncio.gather(*(stream.close() for stream in list(self._streams.values())))

    # -- for streams -----------------------------------------------------------------------------

    async def reach(self, stream: DeviceStream) -> bool:
        """Choose the server at which a stream is to open.

        It returns False if there is another stream to that server: it then has the devices of this one.
        """
        first = self._servers.after(stream.channel) if stream.is_sent_away else stream.channel
        channel = await self._servers.connected(first)
        if channel is stream.channel:
            return True
        if channel not in self._streams:
            self.ended(stream)
            stream.channel = channel
            self._opened(stream)
            return True
        for session in list(stream.sessions.values()):
            del stream.sessions[session.device_id]
            self._join(session, channel)
        return False

    def ended(self, stream: DeviceStream) -> None:
        """Remove a stream: it has no devices, or another server."""
        if self._streams.get(stream.channel) is stream:
            del self._streams[stream.channel]
            self._servers.release(stream.channel)

    def _opened(self, stream: DeviceStream) -> None:
        self._streams[stream.channel] = stream
        self._servers.use(stream.channel)

    def _start(self) -> Channel:
        """Return the connection for the first hello of a device: that of a stream, if there is one."""
        current = self._servers.current
        return current if current in self._streams else next(iter(self._streams), current)

    def _join(self, session: DeviceSession, channel: Channel) -> None:
        """Send the hello of a session on the stream to a server."""
        stream = self._streams.get(channel)
        if stream is None:
            stream = DeviceStream(self, self._servers, channel, self._codec)
            self._opened(stream)
        self._stream_of[session.device_id] = stream
        stream.join(session)

    def _move(self, session: DeviceSession, error: RefusedError) -> None:
        """Send the hello of a session again, to the server that the error names or to the next one."""
        device_id = session.device_id
        stream = self._stream_of.pop(device_id, None)
        if stream is None:  # it moves already
            return
        stream.sessions.pop(device_id, None)
        if not _may_move(session):
            self._fail(session, error)
            return
        loop = asyncio.get_running_loop()
        wait_s = max(error.retry_after_ms / _MS_PER_S, self._pause_s(device_id, error))
        self._moving[device_id] = loop.call_later(
            wait_s, self._arrive, session, error.server, stream.channel
        )

    def _arrive(self, session: DeviceSession, address: str, refused_by: Channel) -> None:
        self._moving.pop(session.device_id, None)
        if self._closed:
            return
        try:
            channel = self._servers.at(address) if address else self._servers.after(refused_by)
        except RefusedError as refused:
            self._fail(session, refused)
        else:
            self._join(session, channel)

    def _fail(self, session: DeviceSession, error: RefusedError) -> None:
        session.fail(error)
        self.forget(session)
        self.notify()

    def _pause_s(self, device_id: str, error: RefusedError) -> float:
        """Return the seconds to wait before a hello: none for the first move within a while."""
        now_s = asyncio.get_running_loop().time()
        count, last_s = self._moves.get(device_id, (0, -math.inf))
        count = count + 1 if now_s - last_s <= BACKOFF_MAX_S else 1
        is_at_once = count == 1 and bool(error.server)
        wait_s = 0.0 if is_at_once else backoff_s(count, self._jitter)
        self._moves[device_id] = (count, now_s + wait_s)
        return wait_s


def _may_move(session: DeviceSession) -> bool:
    """Return whether to try again: a device that was never online gives up after `PATIENCE_S`."""
    now_s = asyncio.get_running_loop().time()
    session.retry_deadline_s = session.retry_deadline_s or now_s + PATIENCE_S
    return session.was_online or now_s < session.retry_deadline_s
