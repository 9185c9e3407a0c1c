"""A device's conversation through random events, against a plain model of the servers behind its streams.

Whatever happens in whatever order: a device gets the responses to its last hello in their order and
nothing of an earlier conversation, and when its connections have ended it is attached nowhere.
"""

from __future__ import annotations

import asyncio
from collections import deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway import fleets
from gateway.conversation import Conversation, State
from gateway.counters import Counters
from gateway.device_socket import BYTES_MAX, DeviceSocket
from gateway.fleets import Fleet
from identity.principal import ANYBODY
from nearcast.errors import Reason, RefusedError
from nearcast.transport.servers import Servers
from nearcast.v1 import device_service_pb2, errors_pb2
from tests.support.amounts import examples
from tests.wire.test_bad_input import a_spec, hello, subscribe

Request = device_service_pb2.AttachRequest
Response = device_service_pb2.AttachResponse
DEVICE = "device"
SOCKETS_MAX = 4
FRAMES = {
    "hello": hello(device_id=DEVICE).SerializeToString(),
    "ping": Request(ping=device_service_pb2.Ping(number=1)).SerializeToString(),
    "too large": Request(subscribe=subscribe(3, a_spec(keywords=["a"] * 200))).SerializeToString(),
    "nothing": b"",
    "another hello": hello(device_id="").SerializeToString(),
    "garbage": b"\xff\xff",
}
EVICTIONS = ("SILENT", "LEASE_EXPIRED", "FORGOTTEN", "ANOTHER_SERVER", "RECOVERING")
REFUSALS = ("", "UNSPECIFIED", "RECOVERING", "ANOTHER_SERVER", "ANOTHER_SERVER")
"""Reasons of refused hellos; none for a welcome."""
ADDRESSES = ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "no address")
"""Servers that a server may name; the first one is in the gateway's list."""


class Stream:
    """A fleet stream: what was sent and not processed by the server, and its responses on their way."""

    def __init__(self, channel, _is_serving, on_end, *, waits):
        assert waits is (channel.target == ADDRESSES[0])
        self.channel = channel
        self.routes = {}
        self.is_open = True
        self.on_end = on_end
        self.requests = deque()
        self.responses = deque()

    def send(self, _device_id, request):
        if self.is_open:
            self.requests.append(request)

    async def room(self):
        pass


class Connection:
    """A transport, its WebSocket and its writer, of a device that may read slowly."""

    def __init__(self):
        self.size = 0
        self.frames = []
        self.is_closed = False
        self._read = asyncio.Event()
        self.conversation = 0
        """The conversation of the last welcome."""
        self.version = 0

    def get_write_buffer_size(self):
        return self.size

    def set_write_buffer_limits(self, high=None):
        pass

    def abort(self):
        self.is_closed = True
        self._read.set()

    def block(self):
        self.size = BYTES_MAX + 1
        self._read.clear()

    def read_all(self):
        self.size = 0
        self._read.set()

    async def drain(self):
        await self._read.wait()

    async def send_bytes(self, frame):
        if self.is_closed:
            raise ConnectionResetError
        self.frames.append(Response.FromString(frame))

    async def close(self, **_options):
        self.is_closed = True


def error_of(reason, address):
    error = {"reason": errors_pb2.ErrorReason.Value(f"ERROR_REASON_{reason}")}
    return {**error, "server": address if reason == "ANOTHER_SERVER" else ""}


class Sockets(RuleBasedStateMachine):
    """Sockets of one device, and the server's view of it."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.streams = []
        self.sockets = {}
        self.counters = Counters()
        self.attached = None
        self.conversation = 0
        self.version = 0
        self._original = fleets.FleetLink
        fleets.FleetLink = self._open
        self.fleet = self.loop.run_until_complete(self._fleet())
        self.handler = self.loop.create_task(asyncio.Event().wait())

    async def _fleet(self):
        self.servers = Servers(ADDRESSES[:1], "", None, 10.0)
        return Fleet(self.servers, None, self.counters)

    def _open(self, *arguments, waits):
        self.streams.append(Stream(*arguments, waits=waits))
        return self.streams[-1]

    def run(self, coroutine):
        async def with_tasks():
            await coroutine
            for _ in range(3):  # what it has started
                await asyncio.sleep(0)

        self.loop.run_until_complete(with_tasks())

    def chosen(self, number):
        return list(self.sockets)[number % len(self.sockets)]

    # -- the devices -----------------------------------------------------------------------------

    @precondition(lambda self: len(self.sockets) < SOCKETS_MAX)
    @rule()
    def connect(self):
        connection = Connection()

        async def make():
            counters = self.counters
            socket = DeviceSocket(connection, connection, connection, counters, self.handler)
            return Conversation(socket, ANYBODY, self.fleet, counters)

        self.sockets[self.loop.run_until_complete(make())] = connection

    @precondition(lambda self: self.sockets)
    @rule(number=st.integers(0, 5), name=st.sampled_from(["hello", "ping", *FRAMES]))
    def send(self, number, name):
        self.run(self.chosen(number).receive(FRAMES[name]))

    @precondition(lambda self: self.sockets)
    @rule(number=st.integers(0, 5))
    def block(self, number):
        self.sockets[self.chosen(number)].block()

    @precondition(lambda self: self.sockets)
    @rule(number=st.integers(0, 5))
    def read(self, number):
        async def read():
            self.sockets[self.chosen(number)].read_all()

        self.run(read())

    @precondition(lambda self: self.sockets)
    @rule(number=st.integers(0, 5))
    def close(self, number):
        device = self.chosen(number)
        self.run(device.finish())
        del self.sockets[device]

    @precondition(lambda self: self.sockets)
    @rule(number=st.integers(0, 5))
    def expire(self, number):
        error = RefusedError(Reason.TOKEN_EXPIRED, "token.exp", "in the past", "in the future")

        async def expire():
            self.chosen(number).expire(error)

        self.run(expire())

    # -- the server ------------------------------------------------------------------------------

    def _detach(self, reason, address=""):
        if self.attached is not None:
            error = error_of(reason, address)
            self.attached.responses.append(Response(detached={"error": error}))
            self.attached = None

    @precondition(lambda self: any(one.requests for one in self.streams))
    @rule(number=st.integers(0, 5), refusal=st.sampled_from(REFUSALS), address=st.sampled_from(ADDRESSES))
    def process(self, number, refusal, address=""):
        waiting = [one for one in self.streams if one.requests]
        stream = waiting[number % len(waiting)]
        request = stream.requests.popleft()
        if request is None:
            if self.attached is stream:
                self.attached = None
            return
        kind = Request.FromString(request).WhichOneof("command")
        if kind == "hello":
            assert self.attached is not stream, "a second hello of an attached device on a stream"
            self._greet(stream, refusal, address)
        elif self.attached is stream and kind == "ping":
            stream.responses.append(Response(pong={"number": self.conversation}))

    def _greet(self, stream, refusal, address):
        if refusal:
            rejection = {
                "command": device_service_pb2.Rejection.COMMAND_HELLO,
                "error": error_of(refusal, address),
            }
            stream.responses.append(Response(rejection=rejection))
            return
        self._detach("SUPERSEDED")
        self.attached = stream
        self.conversation += 1
        self.version = 0
        stream.responses.append(Response(welcome={"epoch": self.conversation}))

    @precondition(lambda self: self.attached is not None)
    @rule()
    def push(self):
        self.version += 1
        delta = {"version": self.version, "subscription_id": self.conversation}
        self.attached.responses.append(Response(delta=delta))

    @precondition(lambda self: self.attached is not None)
    @rule(reason=st.sampled_from(EVICTIONS), address=st.sampled_from(ADDRESSES))
    def evict(self, reason, address):
        self._detach(reason, address)

    # -- the streams -----------------------------------------------------------------------------

    @precondition(lambda self: any(one.responses for one in self.streams))
    @rule(number=st.integers(0, 5))
    def deliver(self, number):
        waiting = [one for one in self.streams if one.responses]
        stream = waiting[number % len(waiting)]
        response = stream.responses.popleft().SerializeToString()
        route = stream.routes.get(DEVICE)
        if route is not None:
            self.run(route.deliver(response))

    @precondition(lambda self: self.streams)
    @rule(number=st.integers(0, 5), can_return=st.booleans())
    def end_stream(self, number, can_return):
        stream = self.streams.pop(number % len(self.streams))
        stream.is_open = False

        async def end():
            stream.on_end(stream)

        self.run(end())
        if self.attached is stream:
            self.attached = None
        routes, stream.routes = list(stream.routes.values()), {}
        for route in routes:
            self.run(route.leave() if can_return else route.send_away())

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def frames_are_of_one_conversation(self):
        for connection in self.sockets.values():
            for frame in connection.frames:
                assert not frame.detached.error.server
                assert not frame.rejection.error.server
                kind = frame.WhichOneof("event")
                if kind == "welcome":
                    assert frame.welcome.epoch > connection.conversation
                    connection.conversation, connection.version = frame.welcome.epoch, 0
                elif kind == "delta":
                    connection.version += 1
                    found = (frame.delta.subscription_id, frame.delta.version)
                    assert found == (connection.conversation, connection.version)
                elif kind == "pong":
                    assert frame.pong.number == connection.conversation
            connection.frames.clear()

    @invariant()
    def devices_are_counted(self):
        count = sum(one.state is State.ATTACHED for one in self.sockets)
        assert self.counters.devices == count
        assert self.counters.streams == len(self.streams)

    def teardown(self):
        try:
            while self.sockets:
                self.close(0)
            while any(one.requests or one.responses for one in self.streams):
                if any(one.requests for one in self.streams):
                    self.process(0, refusal="")
                else:
                    self.deliver(0)
            assert self.attached is None
            assert not any(one.routes for one in self.streams)
            assert not self.counters.devices
        finally:
            fleets.FleetLink = self._original
            self.handler.cancel()
            self.run(self.servers.close())
            self.loop.close()


TestSockets = Sockets.TestCase
TestSockets.settings = settings(
    max_examples=examples(100), stateful_step_count=60, deadline=None, database=None
)
