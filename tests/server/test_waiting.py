"""The queue of commands: in order, but for reports that give way to the next one of their device."""

from __future__ import annotations

import math

import pytest

from server import commands as c
from server.counters import Counters
from server.limits import Limits
from server.session import Connection
from server.waiting import WaitingCommands

LINE, OTHER_LINE = Connection(), Connection()


def report(sequence=1, device_id="d", **changes):
    fields = {"connection": LINE, "lon": 14.5, "lat": 35.5, "subscription_ids": (1, 2), **changes}
    return c.Report(device_id=device_id, sequence=sequence, **fields)


@pytest.fixture
def counters():
    return Counters()


@pytest.fixture
def queue(counters):
    return WaitingCommands(Limits(), counters)


def test_a_report_takes_the_place_of_the_one_before(queue, counters):
    sync = c.Sync()
    for command in (report(1), sync, report(1, "other"), report(2, lon=14.6), report(7, lon=14.7)):
        queue.put(command)
    assert queue.first(10) == [report(7, lon=14.7), sync, report(1, "other")]
    assert len(queue) == 3
    assert counters.reports_superseded == 2
    assert [entry.command for entry in queue.take(2)] == [report(7, lon=14.7), sync]
    assert queue.first(10) == [report(1, "other")]


@pytest.mark.parametrize(
    "after",
    [
        report(1),
        report(2, connection=OTHER_LINE),
        report(2, subscription_ids=(1,)),
        report(2, subscription_ids=(1, 2, 3)),
        report(2, margin_m=5.0),
        report(2, lon=200.0),
        report(2, lat=math.nan),
        report(2, heading_deg=math.inf),
        report(2, speed_mps=-1.0),
        report(2**62 + 1),
    ],
    ids=lambda one: str(one[2:9]),
)
def test_reports_that_say_something_else_both_wait(queue, counters, after):
    queue.put(report(1))
    queue.put(after)
    assert queue.first(10) == [report(1), after]
    assert counters.reports_superseded == 0


@pytest.mark.parametrize(
    "between",
    [c.Unsubscribe(LINE, "d", 1), c.Ping(LINE, "d", 1), c.Ack(LINE, "d", 1), c.Detach(LINE, "d")],
)
def test_nothing_of_a_device_is_overtaken(queue, between):
    queue.put(report(1))
    queue.put(between)
    queue.put(report(2))
    queue.put(report(3))
    assert queue.first(10) == [report(1), between, report(3)]


def test_what_was_taken_is_gone(queue):
    queue.put(report(1))
    queue.take(1)
    queue.put(report(2))
    queue.put(report(3))
    assert queue.first(10) == [report(3)]
    queue.put(report(4, subscription_ids=(5,)))
    queue.take(1)  # of the two reports of the device, not the last
    queue.put(report(5, subscription_ids=(5,)))
    assert queue.first(10) == [report(5, subscription_ids=(5,))]
