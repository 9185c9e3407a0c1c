"""The conversation of one device with the server, on a WebSocket.

If too much waits to be written, the device is detached at the server, which keeps or coalesces what
follows, and when all has been written the device is requested to say hello again.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum

from aiohttp import WSCloseCode

from gateway import frames
from gateway.counters import Counters
from gateway.device_socket import DeviceSocket
from gateway.fleet_link import FleetLink
from gateway.fleets import Fleet
from gateway.frames import Request, Response
from identity.principal import Principal
from identity.rules import is_own_device, require_device
from nearcast.errors import Reason, RefusedError
from nearcast.v1 import device_service_pb2, errors_pb2

_log = logging.getLogger(__name__)

EARLY_BYTES_MAX = 64 * 1024
"""Bytes of a device that wait with its hello for the server; beyond, its socket is not read."""

_HELLO_S = 60.0
"""How long a device that was detached may stay without a hello."""

_WELCOME, _REJECTION, _DETACHED = (
    Response.DESCRIPTOR.fields_by_name[name].number << 3 | 2
    for name in ("welcome", "rejection", "detached")
)
"""The first byte of a response, which is the tag of its event."""

_HELLO_AGAIN = (errors_pb2.ERROR_REASON_SILENT, errors_pb2.ERROR_REASON_LEASE_EXPIRED)
_ELSEWHERE = errors_pb2.ERROR_REASON_ANOTHER_SERVER
_LATER = (_ELSEWHERE, errors_pb2.ERROR_REASON_RECOVERING, errors_pb2.ERROR_REASON_DRAINING)
"""Reasons of refused hellos after which a device connects again."""

_HOPS_MAX = 3
"""Servers to which one hello is sent."""

_COMMAND_HELLO = device_service_pb2.Rejection.COMMAND_HELLO


class State(Enum):
    """The state of a conversation."""

    NEW = "new"
    """No hello yet."""
    WAITING = "waiting"
    """The hello has no response yet."""
    ATTACHED = "attached"
    SLOW = "slow"
    """Detached, since it reads too slowly; it is not requested to say hello yet."""
    DETACHED = "detached"
    """It is to say hello again."""
    ENDED = "ended"


class Conversation:
    """One device's conversation.

    Parameters
    ----------
    socket
        Its WebSocket.
    principal
        The caller.
    fleet
        The streams to the server of the caller's tenant.
    counters
        The counters of the gateway.
    """

    __slots__ = (
        "_announcing",
        "_counters",
        "_draining",
        "_fleet",
        "_hello",
        "_hello_due",
        "_hops",
        "_link",
        "_nonce",
        "_principal",
        "_responded",
        "_server",
        "_state",
        "device_id",
        "early_bytes",
        "hello_count",
        "socket",
    )

    def __init__(
        self,
        socket: DeviceSocket,
        principal: Principal,
        fleet: Fleet,
        counters: Counters,
    ) -> None:
        self.socket = socket
        self._principal = principal
        self._fleet = fleet
        self._counters = counters
        self.device_id = ""
        self._responded: asyncio.Event | None = None
        self.state = State.NEW
        self._link: FleetLink | None = None
        self._server = ""  # address that a server has named; empty for any server of the list
        self._hello = b""  # the hello, until it has a response
        self._nonce = b""
        self.hello_count = 0
        self.early_bytes = 0
        self._hops = 0
        self._hello_due: asyncio.TimerHandle | None = None
        self._announcing: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None

    @property
    def state(self) -> State:
        """The state of the conversation."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state
        if self._responded is not None and state is not State.WAITING:
            self._responded.set()

    # -- from the device -------------------------------------------------------------------------

    async def receive(self, data: bytes) -> None:
        """Process a frame."""
        if self.state is State.ENDED:
            return
        counters = self._counters
        counters.frames_received += 1
        counters.bytes_received += len(data)
        try:
            request = frames.request_from(data)
        except RefusedError as error:
            await self.send_away(error)
            return
        kind = request.WhichOneof("command")
        try:
            self._require_order(kind)
            frames.require_bounds(request, kind)
            if kind == "hello":
                await self._say_hello(request)
                return
        except RefusedError as error:
            if error.reason is Reason.ANOTHER_SERVER:
                await self._end_unfollowed(error)
            else:
                await self._reject(request, kind, error)
            return
        link = self._link
        if link is not None:
            link.send(self.device_id, request.SerializeToString())
            await link.room()
            await self._response_to_hello(len(data))

    async def _response_to_hello(self, size: int) -> None:
        """Wait for the response to the hello, if with this frame much has come before it."""
        self.early_bytes += size
        while self.state is State.WAITING and self.early_bytes > EARLY_BYTES_MAX:
            self._responded = asyncio.Event()
            await self._responded.wait()

    def _require_order(self, kind: str | None) -> None:
        """Raise RefusedError unless a hello is the first command, and no later one is."""
        if (kind == "hello") == (self.state in (State.NEW, State.DETACHED)):
            return
        if kind == "hello":
            limit = "the first message of a device on a connection"
            raise RefusedError(Reason.OUT_OF_ORDER, "hello", "second", limit)
        if self.state is State.NEW:
            limit = "a hello, the first message of a connection"
            raise RefusedError(Reason.OUT_OF_ORDER, "command", kind or "absent", limit)

    async def _say_hello(self, request: Request) -> None:
        hello, principal = request.hello, self._principal
        device_id = hello.device_id
        if not 1 <= len(device_id) <= frames.NAME_LENGTH_MAX:
            limit = f"1 to {frames.NAME_LENGTH_MAX} characters"
            raise RefusedError(Reason.INVALID_FIELD, "hello.device_id", repr(device_id), limit)
        name = principal.qualified(device_id)
        require_device(principal, name)
        if hello.epoch == 0 and is_own_device(principal, name):
            hello.take_over = True  # as the server decides about a device's own token
        self._hello, self._hops, self._nonce = request.SerializeToString(), 0, hello.instance_nonce
        await self._send_hello(device_id)

    async def _send_hello(self, device_id: str) -> None:
        """Send the hello to the server that serves the device, as far as is known."""
        link = self._fleet.link_for(device_id, self._nonce, self._server)
        self._cancel_timer()
        self.device_id, self._link, self.state = device_id, link, State.WAITING
        await self._take_place(link)
        link.send(device_id, self._hello)

    async def _take_place(self, link: FleetLink) -> None:
        """Get the responses of a stream to the device, perhaps instead of a socket that waits."""
        former = link.routes.get(self.device_id)
        link.routes[self.device_id] = self
        self.hello_count, self.early_bytes = 1, len(self._hello)
        if former is not None:
            self.hello_count += former.hello_count
            self.early_bytes += former.early_bytes
            await former.supersede()

    async def _reject(self, request: Request, kind: str | None, error: RefusedError) -> None:
        """Refuse a command; a refused hello, and a first message that is none, end the connection."""
        self._counters.refused[error.reason.name] += 1
        is_over = kind == "hello" or self.state is State.NEW
        await self._send(frames.rejection_of(request, kind, error))
        if is_over:
            self.end(WSCloseCode.POLICY_VIOLATION)

    # -- from the server -------------------------------------------------------------------------

    async def deliver(self, response: bytes) -> None:
        """Process a response of the server."""
        tag = response[0] if response else 0
        if self.state is State.ATTACHED:
            if tag == _DETACHED:
                await self._end_conversation(response)
            else:
                await self._send(response)
        elif tag == _WELCOME or _is_refused_hello(tag, response):
            self.hello_count -= 1
            if not self.hello_count:
                await self._deliver_first(tag, response)

    async def _deliver_first(self, tag: int, response: bytes) -> None:
        """Process the response to the hello of this socket; its connection may have ended meanwhile."""
        if self.state is State.WAITING and tag == _WELCOME:
            self.state = State.ATTACHED
            self._hello = b""
            self._counters.devices += 1
            await self._send(response)
            return
        link = self._link
        self._leave_link()
        if self.state is State.WAITING:
            await self._receive_refusal(response, link)

    async def _receive_refusal(self, response: bytes, link: FleetLink | None) -> None:
        """Follow to the server that serves the device; pass on any other refusal of its hello.

        The client learns no address of a server. It connects again if this gateway cannot follow, and its
        next hello goes to another server of the list.
        """
        error = Response.FromString(response).rejection.error
        if error.reason == _ELSEWHERE and error.server and self._hops < _HOPS_MAX:
            self._hops += 1
            self._server = error.server
            try:
                await self._send_hello(self.device_id)
            except RefusedError as refused:
                await self._end_unfollowed(refused)
        elif error.reason in _LATER:
            self._server = ""
            if link is not None:
                self._fleet.pass_over(link)
            await self.send_away()
        else:
            await self._send(response)
            self.end(WSCloseCode.POLICY_VIOLATION)

    async def _end_unfollowed(self, error: RefusedError) -> None:
        """Close the connection of a device whose server this gateway cannot follow to."""
        _log.warning("device %s: %s", self.device_id, error)
        await self.send_away()

    async def _end_conversation(self, response: bytes) -> None:
        """Process the end of a conversation by the server."""
        self._leave_link()
        self.state = State.DETACHED
        error = Response.FromString(response).detached.error
        if error.reason in _LATER:
            self._server = error.server
            await self._request_hello("the server of the device", "another one")
            return
        await self._send(response)
        if error.reason in _HELLO_AGAIN:
            self._await_hello()
        else:
            self.end(WSCloseCode.POLICY_VIOLATION)

    async def leave(self) -> None:
        """Request another hello: the stream to the server has ended."""
        self._leave_link()
        self._server = ""
        if self.state in (State.WAITING, State.ATTACHED):
            self.state = State.DETACHED
            await self._request_hello("the stream to the server", "ended")

    def yields_to(self, nonce: bytes) -> bool:
        """Return whether a hello with this nonce may take the place of this socket on the stream.

        It may if the connection has ended, or waits and is of the same instance: an instance has one
        connection, and this one may be lost. In any other case the server decides. What has come before
        the response is bounded for all of them together.
        """
        if self.early_bytes > EARLY_BYTES_MAX:
            return False
        is_same = self.state is State.WAITING and nonce == self._nonce
        return is_same or self.state is State.ENDED

    async def supersede(self) -> None:
        """End the conversation, as the server does it: another socket has taken the place."""
        error = RefusedError(Reason.SUPERSEDED, "stream", "older", "the latest of its instance")
        await self._send(frames.detached_frame(error))
        self.end(WSCloseCode.POLICY_VIOLATION)

    async def send_away(self, error: RefusedError | None = None) -> None:
        """Announce the end of the connection, and close it; by default the server is unreachable."""
        code = WSCloseCode.POLICY_VIOLATION
        if error is None:
            error = RefusedError(Reason.RECOVERING, "server", "not reachable", "there; connect again")
            code = WSCloseCode.SERVICE_RESTART
        await self.announce(error)
        self.end(code)

    async def announce(self, error: RefusedError) -> None:
        """Detach the device and announce the end of the connection; what follows is discarded."""
        if self.state is not State.ENDED:
            self._counters.refused[error.reason.name] += 1
            self._detach()
            await self._send(frames.go_away_frame(error))
            self.state = State.ENDED

    def expire(self, error: RefusedError) -> None:
        """Announce the end of the connection: the token has expired."""
        self._announcing = asyncio.create_task(self.announce(error))

    def end_expired(self) -> None:
        """Close the WebSocket of a client that has not closed it since its token expired."""
        self.end(WSCloseCode.POLICY_VIOLATION)

    def end(self, code: int = WSCloseCode.OK) -> None:
        """End the conversation, and let the handler of the connection close the WebSocket."""
        self._detach()
        self.state = State.ENDED
        self._cancel_timer()
        if self._draining is not None:
            self._draining.cancel()
        self.socket.end(code)

    async def finish(self) -> None:
        """Leave the server and close the WebSocket, if its client has not."""
        self.end()
        await self.socket.close()

    # -- the link --------------------------------------------------------------------------------

    def _detach(self) -> None:
        """Detach the device at the server. A hello without a response keeps its place on the stream."""
        link = self._link
        if link is None or self.state not in (State.WAITING, State.ATTACHED):
            return
        link.send(self.device_id, None)
        if self.state is State.ATTACHED:
            self._leave_link()

    def _leave_link(self) -> None:
        """Give up the device's place on the stream."""
        self._counters.devices -= self.state is State.ATTACHED
        link, self._link = self._link, None
        if link is not None and link.routes.get(self.device_id) is self:
            del link.routes[self.device_id]

    # -- what waits ------------------------------------------------------------------------------

    async def _send(self, frame: bytes) -> None:
        """Write a frame. It does not wait."""
        if self.state in (State.SLOW, State.ENDED):
            return
        if await self.socket.send(frame):
            self._set_aside()

    def _set_aside(self) -> None:
        """Detach a device that reads too slowly, until it has read what waits."""
        if self.state is State.ATTACHED:
            self._counters.slow += 1
            self._detach()
            self.state = State.SLOW
            self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        """Wait until the device has read what waits; then request another hello."""
        if not await self.socket.drain():
            return
        self._draining = None
        if self.state is State.SLOW:
            self.state = State.DETACHED
            await self._request_hello("the connection", "read too slowly")

    async def _request_hello(self, subject: str, value: str) -> None:
        error = RefusedError(Reason.SILENT, subject, value, "open; say hello again")
        await self._send(frames.detached_frame(error))
        self._await_hello()

    def _await_hello(self) -> None:
        if self.state is not State.ENDED:
            self.state = State.DETACHED
            loop = asyncio.get_running_loop()
            self._cancel_timer()
            self._hello_due = loop.call_later(_HELLO_S, self.end, WSCloseCode.POLICY_VIOLATION)

    def _cancel_timer(self) -> None:
        if self._hello_due is not None:
            self._hello_due.cancel()
            self._hello_due = None


def _is_refused_hello(tag: int, response: bytes) -> bool:
    return tag == _REJECTION and Response.FromString(response).rejection.command == _COMMAND_HELLO
