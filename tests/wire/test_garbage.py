"""Nothing that devices do leaves cycles behind: what they were is freed when they are gone."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from safe_region.earth.frame import Area, Frame
from server import command as c
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.limits import Limits
from server.session import Outbox, Pong, RefusedCommand, Rejection
from server.transport.stream_sender import StreamSender

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("end", ["reading", "ended", "failed", "gone"])
async def test_a_stream_that_has_ended_is_freed(end):
    finished = asyncio.Event()

    async def write(_events):
        if end == "failed":
            raise ValueError("as if it could not be written")

    sender = StreamSender(Coordinator(FRAME, Limits()), write, single=True)
    gone = weakref.ref(sender)
    running = asyncio.create_task(sender.carry(finished.wait()))
    await asyncio.sleep(0)
    sender.outbox.put(None, "device", Pong(1))
    if end == "reading":
        finished.set()
    elif end == "ended":
        sender.end()
    del sender
    await asyncio.sleep(0)
    if end == "gone":
        running.cancel()
    await asyncio.wait([running])
    assert running.cancelled() is (end == "gone")
    if not running.cancelled():
        assert (running.exception() is not None) is (end == "failed")
    del running
    await asyncio.sleep(0)
    assert gone() is None


@pytest.mark.usefixtures("no_collector")
def test_a_refusal_is_freed_with_all_that_was_planned_beside_it():
    coordinator = Coordinator(FRAME, Limits())
    line = Outbox()
    command = c.Unsubscribe(line, "nobody", 1)
    planned = Planner(coordinator).plan_batch([command])
    error = planned[0]
    coordinator.reject(line, "nobody", 1, RefusedCommand.UNSUBSCRIBE, error)
    ((_, event),) = coordinator.router.take(line, 1)
    assert isinstance(event, Rejection)
    gone = weakref.ref(event.error)
    del planned, error, event
    assert gone() is None
