"""The sending side of a stream: all is written, in order, either end ends it, whoever waits is woken."""

from __future__ import annotations

import asyncio

import pytest

from nearcast.errors import Reason, RefusedError
from safe_region.earth.frame import Area, Frame
from server import command as c
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.limits import Limits
from server.model import Place, TopK
from server.session import Detached, Pong, State, VersionedDelta
from server.transport.stream_sender import StreamSender

ANSWERS_MAX = 3
HERE = Place(14.5, 35.5)


class Stream:
    """Takes what is written while the test lets it."""

    def __init__(self, *, single=False, limits=None):
        self.written = []
        self.failure = None
        self.half_closed = asyncio.Event()
        self.is_open = asyncio.Event()
        self.is_open.set()
        frame = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
        self.coordinator = Coordinator(frame, limits or Limits(answers_max=ANSWERS_MAX))
        self.sender = StreamSender(self.coordinator, self._write, single=single)
        self.running = asyncio.create_task(self.sender.carry(self._read()))

    async def _read(self):
        await self.half_closed.wait()

    async def _write(self, events):
        await self.is_open.wait()
        if self.failure is not None:
            raise self.failure
        self.written += [getattr(event, "number", event) for _, event in events]

    async def opened_while_reading_waits(self):
        """Let responses be written, for which the reader waits; return when it reads again."""
        waiting = asyncio.create_task(self.sender.room())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        self.is_open.set()
        async with asyncio.timeout(10.0):
            await waiting

    def put(self, *numbers):
        for number in numbers:
            self.sender.outbox.put(None, "device", Pong(number))


@pytest.fixture
async def stream():
    stream = Stream()
    yield stream
    stream.running.cancel()


async def over(stream):
    async with asyncio.timeout(10.0):
        await stream.running
    assert stream.sender.outbox.closed


async def flushed(stream):
    async with asyncio.timeout(10.0):
        await stream.sender.flush()
    return stream.written


async def test_events_are_written_in_order(stream):
    stream.put(1)  # before it runs
    assert await flushed(stream) == [1]
    stream.put(2, 3)
    assert await flushed(stream) == [1, 2, 3]
    stream.is_open.clear()
    stream.put(4)
    await asyncio.sleep(0)
    stream.put(5)  # while it writes
    stream.is_open.set()
    assert await flushed(stream) == [1, 2, 3, 4, 5]


async def test_when_the_device_has_half_closed_the_rest_is_dropped(stream):
    stream.is_open.clear()
    stream.put(1)
    await asyncio.sleep(0)
    stream.half_closed.set()
    await over(stream)
    stream.is_open.set()
    stream.put(2)
    await asyncio.sleep(0)
    assert not stream.written


@pytest.mark.parametrize("single", [False, True])
async def test_a_session_that_is_over_ends_the_stream_of_its_only_device(single):
    stream = Stream(single=single)
    stream.put(1)
    end = Detached(RefusedError(Reason.DRAINING, "server", "stopping", "running"))
    stream.sender.outbox.put(None, "device", end)
    assert await flushed(stream) == [1, end]
    if not single:
        await asyncio.sleep(0.1)
        assert not stream.running.done()
        stream.half_closed.set()
    await over(stream)


async def test_a_failed_write_ends_the_stream(stream):
    await asyncio.sleep(0)
    stream.failure = ValueError("as if it could not be written")
    stream.put(1)
    with pytest.raises(ValueError, match="as if"):
        await over(stream)
    assert stream.sender.outbox.closed


@pytest.mark.parametrize("is_writing", [False, True])
@pytest.mark.parametrize("is_over", [False, True])
async def test_a_client_that_is_gone_ends_it(stream, is_writing, is_over):
    stream.is_open.clear()
    await asyncio.sleep(0)
    if is_writing:
        stream.put(1)
        await asyncio.sleep(0)
    if is_over:  # at the same time
        stream.sender.end()
    stream.running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await over(stream)
    assert stream.sender.outbox.closed


async def test_a_silent_stream_has_one_task():
    before = asyncio.all_tasks()
    stream = Stream()
    stream.put(1)
    await flushed(stream)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() - before == {stream.running}
    stream.half_closed.set()
    await over(stream)


async def test_reading_waits_while_too_much_is_not_written(stream):
    stream.is_open.clear()
    stream.put(*range(ANSWERS_MAX))
    async with asyncio.timeout(10.0):
        await stream.sender.room()
    stream.put(7)
    await stream.opened_while_reading_waits()
    assert stream.written == [0, 1, 2, 7]


async def test_reading_waits_while_a_device_gets_snapshots_in_slices():
    stream = Stream(limits=Limits(slice_bytes_max=1, outbox_max=1), single=True)
    stream.is_open.clear()
    outbox, coordinator, batch = stream.sender.outbox, stream.coordinator, EvaluationBatch()
    coordinator.hello(c.Hello(outbox, "device", b"n", 0, HERE), batch)
    session = coordinator.sessions["device"]
    for number in (1, 2, 3):
        coordinator.subscribe(session, number, TopK(("sushi",), 3, 0.5), HERE, batch)
    coordinator.evaluate(batch)
    assert session.state is State.CATCHING_UP
    await asyncio.sleep(0)  # the first snapshot is being written
    assert outbox.is_behind
    await stream.opened_while_reading_waits()
    assert not outbox.is_behind
    assert session.state is State.IN_SYNC
    written = [one.subscription_id for one in stream.written if isinstance(one, VersionedDelta)]
    assert written == [1, 2, 3]
    stream.running.cancel()


async def test_no_caller_waits_for_a_closed_one(stream):
    stream.is_open.clear()
    stream.put(*range(2 * ANSWERS_MAX))
    waiting = [asyncio.create_task(one()) for one in (stream.sender.room, stream.sender.flush)]
    await asyncio.sleep(0)
    stream.sender.close()
    async with asyncio.timeout(10.0):
        await asyncio.gather(*waiting)
