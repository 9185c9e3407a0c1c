"""One caller: its token and connection, its calls, and the counts of their outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import grpc

from bench.neighbours import messages
from bench.neighbours.tokens import metadata
from nearcast.v1 import device_service_pb2, publisher_service_pb2

_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
)
ATTACH = "/nearcast.v1.DeviceService/Attach"
ATTACH_FLEET = "/nearcast.v1.DeviceService/AttachFleet"
SEARCH = "/nearcast.v1.DeviceService/Search"
WATCH = "/nearcast.v1.ControlService/Watch"
PUBLISH = "/nearcast.v1.PublisherService/Publish"
RETRACT = "/nearcast.v1.PublisherService/Retract"
_SHOWN = 60
"""Number of characters at the start of an error that define its kind in the counts."""
_CALL_S = 60.0

Stream = Any
"""gRPC has no type for it."""


class Caller:
    """A caller with one token.

    Parameters
    ----------
    address
        Address of the server.
    token
        Empty for a caller without a token.
    name
        Name of the token's owner: a device has to attach under this id.
    word
        The keyword of all initial objects.
    """

    def __init__(self, address: str, token: str, name: str, word: str) -> None:
        self.address = address
        self.token = token
        self.name = name
        self.word = word
        self.metadata = metadata(token)
        self.counts: Counter[str] = Counter()
        """Messages sent, responses, refusals, and refusals by their kind."""
        self._until_s = 0.0
        self._channel: Any = None
        self._reading: set[asyncio.Task[None]] = set()

    def begin(self, seconds: float) -> None:
        """Start to act for a number of seconds."""
        self._until_s = time.monotonic() + seconds

    @property
    def is_on(self) -> bool:
        """Return whether the caller still acts."""
        return self.remaining_s > 0.0

    @property
    def remaining_s(self) -> float:
        """Return the seconds for which the caller still acts."""
        return max(0.0, self._until_s - time.monotonic())

    async def rest(self) -> None:
        """Stop sending, and keep streams and connections open."""
        await asyncio.sleep(self.remaining_s)

    @property
    def channel(self) -> Any:  # noqa: ANN401 - grpc.aio has no types for raw methods
        """Return the connection, which is created at its first use."""
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self.address, options=_OPTIONS)
        return self._channel

    def stream(self, method: str, note: Callable[[bytes], str] | None = None) -> Stream:
        """Open a stream whose responses are read and counted; `note` returns the error of a response."""
        call = self.channel.stream_stream(method)(metadata=self.metadata)
        task = asyncio.create_task(self._read(call, note))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)
        return call

    async def _read(self, call: Stream, note: Callable[[bytes], str] | None) -> None:
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            while (message := await call.read()) is not grpc.aio.EOF:
                self.counts["responses"] += 1
                if note is not None and (error := note(message)):
                    self.count_refusal(error)
        code = await call.code()
        if code is not grpc.StatusCode.OK:
            self.count_refusal(f"{code.name}: {await call.details()}")

    async def write(self, stream: Stream, message: bytes) -> bool:
        """Write a message; return whether the stream accepted it."""
        try:
            await stream.write(message)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return False  # the reader counts the error
        self.counts["sent"] += 1
        return True

    async def attached(self, specs: Iterable[messages.Spec] = (), nonce: bytes = b"a") -> Stream:
        """Return a stream of a device that has subscribed."""
        call = self.stream(ATTACH, rejected)
        await self.write(call, messages.hello(self.name, nonce))
        for number, spec in enumerate(specs, 1):
            await self.write(call, messages.subscribe(number, spec))
        return call

    async def call(self, method: str, message: bytes) -> None:
        """Make one call of a method and read its response."""
        self.counts["sent"] += 1
        try:
            answer = await self.channel.unary_unary(method)(
                message, metadata=self.metadata, timeout=_CALL_S
            )
            self.counts["responses"] += 1
            self.counts["bytes"] += len(answer)
        except grpc.aio.AioRpcError as error:
            self.count_error(error)

    def count_error(self, error: BaseException) -> None:
        """Count a call that ended with an error."""
        if isinstance(error, grpc.aio.AioRpcError):
            self.count_refusal(f"{error.code().name}: {error.details()}")
        else:
            self.count_refusal(type(error).__name__)

    def count_refusal(self, error: str) -> None:
        """Count a refusal, also under the start of its message."""
        self.counts["refused"] += 1
        self.counts[error[:_SHOWN]] += 1


Act = Callable[[Caller], Awaitable[None]]


def rejected(message: bytes) -> str:
    """Return the reason of a rejected command; the empty text if the message is no rejection."""
    response = device_service_pb2.AttachResponse.FromString(message)
    return response.rejection.error.message if response.HasField("rejection") else ""


def refused(message: bytes) -> str:
    """Return the reason of a refused request to publish; the empty text if it was accepted."""
    response = publisher_service_pb2.PublishResponse.FromString(message)
    return response.error.message if response.HasField("error") else ""
