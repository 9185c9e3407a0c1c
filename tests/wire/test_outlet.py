"""The sending side of a stream: everything is written, in order, and whoever waits is woken."""

from __future__ import annotations

import asyncio

import pytest

from safe_region.frame import Area, Frame
from server.limits import Limits
from server.session import Pong
from server.switchboard import Switchboard
from server.transport.outlet import Outlet

ANSWERS_MAX = 3


class Stream:
    """Takes what is written while the test lets it."""

    def __init__(self):
        self.written = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        frame = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
        self.outlet = Outlet(
            Switchboard(frame, Limits(answers_max=ANSWERS_MAX)), self._write, single=False
        )
        self.running = asyncio.create_task(self.outlet.run())

    async def _write(self, events):
        await self.is_open.wait()
        self.written += [event.number for _, event in events]

    def put(self, *numbers):
        for number in numbers:
            self.outlet.connection.put(None, "device", Pong(number))


@pytest.fixture
async def stream():
    stream = Stream()
    yield stream
    stream.running.cancel()


async def flushed(stream):
    async with asyncio.timeout(10.0):
        await stream.outlet.flush()
    return stream.written


async def test_what_is_put_is_written_in_order(stream):
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


@pytest.mark.parametrize("is_running", [False, True])
async def test_it_finishes_when_all_is_written(stream, is_running):
    if is_running:
        await asyncio.sleep(0)
    stream.put(1, 2)
    stream.outlet.finish()
    async with asyncio.timeout(10.0):
        await stream.running
    assert stream.written == [1, 2]


async def test_an_idle_one_finishes_and_closes_at_once(stream):
    await asyncio.sleep(0)
    stream.outlet.finish()
    async with asyncio.timeout(10.0):
        await stream.running
    other = Stream()
    await asyncio.sleep(0)
    other.outlet.close()
    async with asyncio.timeout(10.0):
        await other.running
    assert not other.written


async def test_who_reads_waits_while_too_much_is_not_written(stream):
    stream.is_open.clear()
    stream.put(*range(ANSWERS_MAX))
    async with asyncio.timeout(10.0):
        await stream.outlet.room()
    stream.put(7)
    waiting = asyncio.create_task(stream.outlet.room())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    stream.is_open.set()
    async with asyncio.timeout(10.0):
        await waiting
    assert stream.written == [0, 1, 2, 7]


async def test_nobody_waits_for_a_closed_one(stream):
    stream.is_open.clear()
    stream.put(*range(2 * ANSWERS_MAX))
    waiting = [asyncio.create_task(one()) for one in (stream.outlet.room, stream.outlet.flush)]
    await asyncio.sleep(0)
    stream.outlet.close()
    async with asyncio.timeout(10.0):
        await asyncio.gather(*waiting)
