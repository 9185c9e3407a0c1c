"""One fleet stream to the server, and the sockets of the devices on it.

Responses are routed by device. A device that leaves the stream and says hello on it again may still get
responses to its earlier conversation: its socket ignores them until the response to the hello.

Operations: O(1) a message. A link never waits for a socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import grpc

from gateway.fleet_messages import FleetRequest, FleetResponse
from nearcast.errors import NearcastError
from nearcast.transport.calls import refusal
from nearcast.transport.channel import Channel
from nearcast.v1 import streams_pb2

_log = logging.getLogger(__name__)

_METHOD = "/nearcast.v1.DeviceService/AttachFleet"

_ENTRIES_MAX = 128
_BYTES_MAX = 512 * 1024
"""Requests in one message, and their bytes. The server's bounds: 8,192 entries, 65,536 fields, 1 MiB."""

_LARGE_BYTES = 512
"""A larger request has a message of its own: its fields alone may come near the bound of a message."""

_QUEUE_MAX = 10_000
_QUEUE_BYTES_MAX = 8 * 1024 * 1024
"""Requests that wait to be written, and their bytes; beyond, sockets are not read."""

_PATIENCE_S = 15.0
"""How long to wait for a server that restarts, before devices are sent away."""

_LOOK_S = 0.25
"""Interval between two checks of a server that is expected back."""

_ACCEPTED_S = 5.0
"""How long to wait until the server accepts a stream, before devices send anyway."""


class Route(Protocol):
    """The socket of a device, as a link sees it."""

    device_id: str
    hello_count: int
    """Hellos on the stream without a response, of this socket and of those whose place it has taken."""
    early_bytes: int
    """Bytes of theirs since the first of these hellos."""

    def yields_to(self, nonce: bytes) -> bool:
        """Return whether a hello with this nonce may take the place of this socket."""

    async def supersede(self) -> None:
        """End the conversation: another socket has taken the place."""

    async def deliver(self, response: bytes) -> None:
        """Process a response of the server."""

    async def leave(self) -> None:
        """Request another hello of the device: the stream has ended."""

    async def send_away(self) -> None:
        """Close the connection of the device: the server cannot be reached."""


class FleetLink:
    """One fleet stream to one server. It opens when it is made, since a hello waits for it.

    Parameters
    ----------
    channel
        The connection to the server, with the token of this gateway.
    is_serving
        Returns whether the server serves.
    on_end
        Called once, when the stream has ended or could not be opened.
    waits
        Whether to wait for a server that cannot be reached, since there is no other one.
    """

    def __init__(
        self,
        channel: Channel,
        is_serving: Callable[[], Awaitable[bool]],
        on_end: Callable[[FleetLink], None],
        *,
        waits: bool = True,
    ) -> None:
        self._is_serving = is_serving
        self.routes: dict[str, Route] = {}
        """Sockets by device: attached ones, and those whose hello has no response yet."""
        self.is_open = True
        """Whether the stream takes hellos; not once it is to end."""
        self.channel = channel
        self._waits = waits
        self._on_end = on_end
        self._queue: deque[tuple[str, bytes | None]] = deque()
        self._queue_bytes = 0
        self._queued = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._has_served = False
        self._task = asyncio.create_task(self._run(), name="fleet link")

    def send(self, device_id: str, request: bytes | None) -> None:
        """Queue a request; None detaches the device. Nothing happens if the stream has ended."""
        if not self.is_open:
            return
        self._queue.append((device_id, request))
        self._queue_bytes += len(request or b"")
        self._queued.set()
        if self._is_full:
            self._room.clear()

    @property
    def _is_full(self) -> bool:
        return len(self._queue) >= _QUEUE_MAX or self._queue_bytes >= _QUEUE_BYTES_MAX

    async def room(self) -> None:
        """Wait while too many requests wait to be written."""
        await self._room.wait()

    def finish(self) -> None:
        """Write what is queued, and half-close: the server then detaches what is left and ends."""
        self.is_open = False
        self._queued.set()

    async def ended(self, timeout_s: float) -> None:
        """Wait until the stream has ended; end it after a while."""
        await asyncio.wait({self._task}, timeout=timeout_s)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    # -- the stream ------------------------------------------------------------------------------

    async def _run(self) -> None:
        call = None
        try:
            if self._waits:
                await self._await_server()
            metadata = await self.channel.metadata()
            open_stream = self.channel.stream(_METHOD, FleetRequest, FleetResponse)
            call = open_stream(metadata=metadata, wait_for_ready=self._waits)
            await self._await_acceptance(call)
            await self._talk(call)
        except grpc.aio.AioRpcError as error:
            failure = refusal(error, is_encrypted=self.channel.is_encrypted)
            _log.warning("a fleet stream has ended: %s", failure)
        except (NearcastError, TimeoutError, asyncio.InvalidStateError) as error:
            reason = str(error) or "the server cannot be reached"
            _log.warning("a fleet stream has ended: %s", reason)
        except Exception:  # noqa: BLE001 - devices must not wait for a stream that has ended
            _log.exception("a fault of the gateway ends a fleet stream")
        finally:
            if call is not None:
                call.cancel()
            await self._end()

    async def _await_acceptance(self, call: Any) -> None:  # noqa: ANN401 - gRPC's
        async with asyncio.timeout(_PATIENCE_S):
            await call.wait_for_connection()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(call.initial_metadata(), _ACCEPTED_S)

    async def _talk(self, call: Any) -> None:  # noqa: ANN401
        """Read until the server ends the stream, and write meanwhile."""
        writing = asyncio.create_task(self._write(call))
        try:
            while (message := await call.read()) is not grpc.aio.EOF:
                self._has_served = self._has_served or bool(message.entries)
                for entry in message.entries:
                    route = self.routes.get(entry.device_id)
                    if route is not None:
                        await route.deliver(entry.response)
                if message.HasField("go_away"):
                    away = streams_pb2.GoAway.FromString(message.go_away)
                    _log.info("the server ends a fleet stream: %s", away.error.message)
                    self.finish()
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    async def _write(self, call: Any) -> None:  # noqa: ANN401
        """Write what is queued, until the stream is to end; then half-close."""
        with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError, grpc.aio.InternalError):
            while self.is_open or self._queue:
                await self._queued.wait()
                self._queued.clear()
                while self._queue:
                    await call.write(self._packed())
                    if not self._is_full:
                        self._room.set()
            await call.done_writing()

    def _packed(self) -> Any:  # noqa: ANN401 - made at run time
        """Return a message with the oldest requests of the queue."""
        message = FleetRequest()
        queue, size = self._queue, 0
        while queue and len(message.entries) < _ENTRIES_MAX:
            device_id, request = queue[0]
            more = len(request or b"")
            if message.entries and (more > _LARGE_BYTES or size + more > _BYTES_MAX):
                break
            queue.popleft()
            if request is None:
                message.entries.add(device_id=device_id)
            else:
                message.entries.add(device_id=device_id, request=request)
            size += more
            if more > _LARGE_BYTES:
                break
        self._queue_bytes -= size
        return message

    async def _end(self) -> None:
        """Let the devices of this stream say hello on another one, or send them away.

        The other one waits for the server if there is no other. So devices know at once that their
        results may be outdated, and their connections stay open while a server restarts.
        """
        self.is_open = False
        self._on_end(self)
        self._queue.clear()
        self._queue_bytes = 0
        self._room.set()
        routes, self.routes = list(self.routes.values()), {}
        for route in routes:
            await (route.leave() if self._has_served else route.send_away())

    async def _await_server(self) -> None:
        """Wait until the server serves, or raise TimeoutError. One that has just drained is not back."""
        async with asyncio.timeout(_PATIENCE_S):
            while not await self._is_serving():  # noqa: ASYNC110 - the server sends no event
                await asyncio.sleep(_LOOK_S)
