"""Nothing that devices do leaves cycles behind: what they were is freed when they are gone."""

from __future__ import annotations

import gc
import weakref

import pytest

from safe_region.frame import Area, Frame
from server import commands as c
from server.limits import Limits
from server.planning import Planner
from server.session import Connection, Rejection
from server.switchboard import Switchboard
from server.transport.outlet import Outlet

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_a_stream_that_was_closed_is_freed():
    async def write(_events):
        pytest.fail("there is nothing to write")

    outlet = Outlet(Switchboard(FRAME, Limits()), write, single=True)
    outlet.close()
    gone = weakref.ref(outlet)
    del outlet
    assert gone() is None


@pytest.mark.usefixtures("no_collector")
def test_a_refusal_is_freed_with_all_that_was_planned_beside_it():
    board = Switchboard(FRAME, Limits())
    line = Connection()
    planned = Planner(board).plan_batch([c.Report(line, "nobody", 1, 14.5, 35.5, (1,))])
    command, error = c.Report(line, "nobody", 1, 14.5, 35.5, (1,)), planned[0]
    board.reject(command, error)
    ((_, event),) = board.take(line, 1)
    assert isinstance(event, Rejection)
    gone = weakref.ref(event.error)
    del planned, error, event
    assert gone() is None
