"""Raw gRPC streams: bytes out, bytes in. The load generator decodes as little as possible.

A line is one stream, on its own connection or on a shared one, with one task that reads. It passes each
message to `on_message`, which the current measurement sets, and writes the messages that this function
returns, so that an exchange costs two awaits.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import grpc

from bench.errors import BenchError
from bench.server.workload import SEQUENCE

ATTACH = "/nearcast.v1.DeviceService/Attach"
ATTACH_FLEET = "/nearcast.v1.DeviceService/AttachFleet"
PUBLISH = "/nearcast.v1.PublisherService/Publish"

Metadata = Sequence[tuple[str, str]]
OnMessage = Callable[[int, bytes], Sequence[bytes]]
_Line = TypeVar("_Line", bound="Line")
_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
)
_OPENING = 200
"""Connections that are opened at once: below the backlog of a listening socket."""
_PUBLISH_S = 60.0
"""All sent requests are answered within this time."""


def silent(_line: int, _message: bytes) -> Sequence[bytes]:
    """Ignore a message and send nothing."""
    return ()


def _varint(sequence: int) -> bytes:
    """Return a number above 2**34 as it is on the wire, in five bytes like SEQUENCE."""
    rest = 2**34 + sequence
    return bytes([rest >> shift & 127 | (128 if shift < 28 else 0) for shift in range(0, 35, 7)])  # noqa: PLR2004


_PLACEHOLDER = _varint(SEQUENCE - 2**34)
_SEQUENCES = itertools.count(1)
"""Sequences of reports: common to all lines, as a device may change its line."""


class Line(ABC):
    """One connection of a device, which sends and receives messages.

    Parameters
    ----------
    number
        Number of the line.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.on_message: OnMessage = silent
        self.tape: list[bytes] | None = None
        """Received messages, if they are audited."""
        self._writing = asyncio.Lock()  # a stream takes one message at a time

    @abstractmethod
    async def start(self) -> None:
        """Connect, then start to read."""

    @abstractmethod
    async def write(self, message: bytes) -> None:
        """Write a message."""

    async def send(self, message: bytes) -> None:
        """Write a message; the reports in it get the next number."""
        async with self._writing:
            if _PLACEHOLDER in message:
                message = message.replace(_PLACEHOLDER, _varint(next(_SEQUENCES)))
            await self.write(message)

    async def received(self, message: bytes) -> None:
        """Process a message."""
        if self.tape is not None:
            self.tape.append(message)
        for answer in self.on_message(self.number, message):
            await self.send(answer)


class Channel(Line):
    """One stream.

    Parameters
    ----------
    number
        Number of the stream.
    channel, method
        Connection and method of the call.
    metadata
        Metadata of the call.
    """

    def __init__(
        self,
        number: int,
        channel: grpc.aio.Channel,
        method: str,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(number)
        self.channel = channel
        self._method = method
        self._metadata = metadata
        self._call: Any = None
        self._reading: asyncio.Task[None] | None = None
        self._reads = asyncio.Event()
        self._reads.set()

    async def start(self) -> None:
        """Connect, then start to read. Thousands that connected at once would overrun the listener."""
        await self.channel.channel_ready()
        self._call = self.channel.stream_stream(self._method)(metadata=self._metadata)
        self._reading = asyncio.create_task(self._read())

    def stall(self, *, stalled: bool) -> None:
        """Stop reading messages, or resume."""
        (self._reads.clear if stalled else self._reads.set)()

    async def write(self, message: bytes) -> None:
        """Write a message.

        Raises
        ------
        BenchError
            If the stream has ended.
        """
        try:
            await self._call.write(message)
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
            code, details = await self._call.code(), await self._call.details()
            raise BenchError(f"stream {self.number} has ended: {code.name} {details}") from None

    async def _read(self) -> None:
        while (message := await self._call.read()) is not grpc.aio.EOF:
            if not self._reads.is_set():
                await self._reads.wait()
            await self.received(message)

    def end(self) -> None:
        """End the stream. Its connection, which other streams may share, stays open."""
        if self._reading is not None:
            self._reading.cancel()
            self._call.cancel()


def connection(address: str) -> grpc.aio.Channel:
    """Return a channel that shares its connection with no other channel."""
    return grpc.aio.insecure_channel(address, options=_OPTIONS)


@asynccontextmanager
async def opened(
    count: int,
    address: str,
    method: str,
    metadata: Metadata | Callable[[int], Metadata] = (),
    connections: int | None = None,
) -> AsyncIterator[list[Channel]]:
    """Open streams, each on its own connection or on shared ones; close them when the block ends.

    `metadata` may be a function of the stream's number.
    """
    shared = count if connections is None else min(count, connections)
    channels = [connection(address) for _ in range(shared)]
    lines = [
        Channel(
            number,
            channels[number % shared],
            method,
            metadata(number) if callable(metadata) else metadata,
        )
        for number in range(count)
    ]
    try:
        yield lines
    finally:
        for line in lines:
            line.end()
        channels = list({line.channel for line in lines})  # some may have been replaced
        for start in range(0, len(channels), _OPENING):
            await asyncio.gather(*(channel.close() for channel in channels[start : start + _OPENING]))
        # Closed channels are in reference cycles and keep their sockets until they are collected.
        lines.clear()
        channels.clear()
        gc.collect()


async def in_chunks(lines: Iterable[_Line], act: Callable[[_Line], Any]) -> None:
    """Do the same on all lines, a limited number at a time."""
    room = asyncio.Semaphore(_OPENING)

    async def one(line: _Line) -> None:
        async with room:
            await act(line)

    await asyncio.gather(*(one(line) for line in lines))


class Awaited:
    """A counter of received messages on which a caller can wait for a number."""

    def __init__(self) -> None:
        self.count = 0
        self._wanted = 0
        self._reached = asyncio.Event()

    def add(self, count: int) -> None:
        """Add to the count of received messages."""
        self.count += count
        if self.count >= self._wanted:
            self._reached.set()

    async def reach(self, wanted: int, within_s: float) -> bool:
        """Wait until the count reaches a number; return whether it did in time."""
        self._wanted = wanted
        if self.count < wanted:
            self._reached.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._reached.wait(), within_s)
        return self.count >= wanted


class Requests:
    """Requests to publish on some streams, each of which gets one response."""

    def __init__(self) -> None:
        self._sent = 0
        self._answered = Awaited()

    def begin(self, line: Line) -> None:
        """Count the responses on a stream."""
        line.on_message = self._on_message

    async def send(self, line: Line, message: bytes) -> None:
        """Send a request."""
        self._sent += 1
        await line.send(message)

    async def answered(self) -> None:
        """Wait for the responses to all requests: on a slow disk some are seconds late."""
        if not await self._answered.reach(self._sent, _PUBLISH_S):
            missing = self._sent - self._answered.count
            raise BenchError(f"publish: {missing} of {self._sent} requests got no response")

    def _on_message(self, _number: int, _message: bytes) -> tuple[bytes, ...]:
        self._answered.add(1)
        return ()


def entry_count(message: bytes) -> int:
    """Return the number of entries of an AttachFleetResponse, without decoding them."""
    place, count = 0, 0
    while place < len(message):
        place += 1  # the tag
        size, shift = 0, 0
        while True:
            byte = message[place]
            place += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:  # noqa: PLR2004 - a varint's last byte
                break
        place += size
        count += 1
    return count
