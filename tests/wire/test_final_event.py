"""The sending side of a stream that ends with a final event: the client half-closes behind it."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from nearcast.errors import Reason, RefusedError
from safe_region.earth.frame import Area, Frame
from server.core.coordinator import Coordinator
from server.limits import Limits
from server.session import GoAway, Pong
from server.transport.stream_sender import StreamSender

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
AWAY = GoAway(RefusedError(Reason.DRAINING, "server", "stopping", "running"))


class Stream:
    """Writes what is sent while the test lets it; its client half-closes when the test says so."""

    def __init__(self, *, single=False):
        self.written = []
        self.failure = None
        self.half_closed = asyncio.Event()
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.sender = StreamSender(Coordinator(FRAME, Limits()), self._write, single=single)
        self.running = asyncio.create_task(self.sender.carry(self.half_closed.wait()))

    async def _write(self, events):
        await self.is_open.wait()
        if self.failure is not None:
            raise self.failure
        self.written += [getattr(event, "number", event) for _, event in events]

    def put(self, *numbers):
        for number in numbers:
            self.sender.outbox.put(None, "device", Pong(number))

    async def over(self):
        async with asyncio.timeout(10.0):
            await self.running
        assert self.sender.outbox.closed


@pytest.fixture(params=[False, True])
async def stream(request):
    stream = Stream(single=request.param)
    await settled()
    yield stream
    stream.running.cancel()


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_it_comes_last_and_the_client_ends_the_stream(stream):
    stream.put(1, 2)
    stream.is_open.clear()
    await settled()
    stream.sender.send_away(AWAY.error)
    stream.put(3)
    stream.is_open.set()
    await settled()
    assert stream.sender.outbox.closed
    stream.put(4)
    await settled()
    assert stream.written == [1, 2, 3, AWAY]
    assert stream.sender.is_finishing, "what the client sends is discarded"
    assert not stream.running.done(), "it is read until the client has half-closed"
    stream.half_closed.set()
    await stream.over()
    assert stream.written == [1, 2, 3, AWAY]


@pytest.mark.parametrize("is_written", [False, True])
async def test_a_client_that_does_not_half_close_is_not_waited_for_for_ever(stream, is_written):
    if not is_written:
        stream.is_open.clear()
    stream.sender.send_away(AWAY.error)
    await settled()
    assert stream.sender.outbox.closed is is_written
    stream.sender.end()
    await stream.over()
    assert stream.written == [AWAY] * is_written


async def test_a_client_that_cancels_after_it(stream):
    stream.sender.send_away(AWAY.error)
    await settled()
    stream.running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stream.over()


async def test_one_that_cannot_be_written_ends_the_stream(stream):
    stream.failure = ValueError("as if it could not be written")
    stream.sender.send_away(AWAY.error)
    with pytest.raises(ValueError, match="as if"):
        await stream.over()


@pytest.mark.parametrize("is_failing", [False, True])
async def test_the_stream_leaves_no_cycle(is_failing):
    gc.collect()
    gc.disable()
    try:
        stream = Stream()
        gone = weakref.ref(stream.sender)
        await settled()
        if is_failing:
            stream.failure = ValueError("as if it could not be written")
        stream.sender.send_away(AWAY.error)
        await settled()
        stream.half_closed.set()
        await asyncio.wait([stream.running])
        assert (stream.running.exception() is not None) is is_failing
        stream.sender = stream.running = stream.failure = None
        await settled()
        assert gone() is None
    finally:
        gc.enable()
