"""What the event loop computes at a stretch, while much is asked of it at once."""

from __future__ import annotations

import asyncio
import gc
import math
import random

import pytest

from safe_region.earth.frame import Area, Frame
from safe_region.earth.shapes import Circle, Polygon
from server import command as c
from server.core.coordinator import Coordinator
from server.distribution import Distribution
from server.limits import Limits
from server.measures import SliceTimer, cpu_us
from server.model import Boolean, Clause, NewObject, Place, TopK
from server.runtime import batcher, command_loop
from server.runtime.command_loop import CommandLoop
from server.session import Outbox
from server.store import SqliteStore

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
DEVICES = 400
OUTLIERS = 2
"""Stretches that do not count: beside busy processes one has been 218 ms, all others 46 at most."""
TIMES_SHORTER = 4
"""How much shorter slices are, at least, than stretches without: they were 12 to 17 times as short."""


def a_place(chance):
    return Place(14.5 + chance.uniform(-0.4, 0.4), 35.5 + chance.uniform(-0.4, 0.4))


def an_object(chance):
    area, place = None, a_place(chance)
    if chance.random() < 0.02:
        corners = [
            (place.lon + 0.01 * math.cos(0.2 * i), place.lat + 0.01 * math.sin(0.2 * i))
            for i in range(31)
        ]
        area = Polygon(tuple(corners))
    return NewObject(place.lon, place.lat, (f"word{chance.randrange(50)}",), 3_600_000, b"", "", area)


def a_spec(chance):
    words = tuple(sorted({f"word{chance.randrange(50)}" for _ in range(3)}))
    if chance.random() < 0.5:
        return TopK(words, 10, 0.5)
    return Boolean((Clause(words[:1], ()),), Circle(5_000.0, None), True)


def requests(chance, lines):
    """All that is asked at once."""
    for _ in range(12):
        yield c.Publish(tuple(an_object(chance) for _ in range(1_000)))
    for _ in range(3):
        for line in lines:
            name = line.name
            yield c.Subscribe(line, name, chance.randrange(1, 4), a_spec(chance), a_place(chance))
    for _ in range(200):
        yield c.Search(TopK(("word1", "word2"), 10, 0.5), *a_place(chance)[:2])
    for sequence in range(1, 9):
        for line in lines:
            place = a_place(chance)
            yield c.Report(line, line.name, line.devices.get(line.name), sequence, place, (1, 2, 3))


@pytest.fixture(autouse=True)
def _spared():
    """Spare the collector what the other tests have loaded, as the server does."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Line(Outbox):
    """The stream of one device."""

    def __init__(self, name):
        super().__init__()
        self.name = name


async def warm_up(loop):
    """Let all kernels be loaded, which takes a fifth of a second, and forget that."""
    line, chance = Line("first"), random.Random(3)
    await loop.enqueue(c.Hello(line, line.name, b"nonce", 0, a_place(chance)))
    for number in range(8):
        await loop.enqueue(c.Subscribe(line, line.name, number, a_spec(chance), a_place(chance)))
    await loop.execute(c.Publish(tuple(an_object(chance) for _ in range(100))))
    await loop.execute(c.Search(TopK(("word1",), 10, 0.5), *a_place(chance)[:2]))
    loop.coordinator.counters.measures.slice_us = Distribution(6, 24)


async def stretches_us(path):
    """Ask; return the lengths of all stretches in microseconds, longest first: each its class's bound."""
    store, chance = SqliteStore(path, FRAME), random.Random(7)
    loop = CommandLoop(Coordinator(FRAME, Limits()), store)
    running = asyncio.create_task(loop.run())
    await warm_up(loop)
    lines = [Line(f"device-{i}") for i in range(DEVICES)]
    for line in lines:
        await loop.enqueue(c.Hello(line, line.name, b"nonce", 0, a_place(chance)))
    replies = []
    for command in requests(chance, lines):
        if isinstance(command, c.DeviceCommand):
            await loop.enqueue(command)
        else:
            replies.append(await loop.submit(command))
    loop.stop()
    await running
    assert all(len(one.result()) for one in replies), "nothing was refused"
    store.close()
    found = loop.coordinator.counters.measures.slice_us.classes()
    return [
        bound
        for bound, count in zip(reversed(found.bounds), reversed(found.counts), strict=True)
        for _ in range(count)
    ]


async def test_concurrent_requests_are_processed_in_slices(tmp_path, monkeypatch):
    sliced_us = await stretches_us(tmp_path / "sliced.db")
    for module, name in (
        (command_loop, "_SLICE_US"),
        (command_loop, "_BATCH_US"),
        (batcher, "_CHUNK_US"),
    ):
        monkeypatch.setattr(module, name, 1e12)
    whole_us = await stretches_us(tmp_path / "whole.db")
    assert len(sliced_us) > 100 > len(whole_us)
    assert TIMES_SHORTER * sliced_us[OUTLIERS] <= whole_us[0]


def test_pauses_do_not_count():
    distribution = Distribution(0, 24)
    slice_timer = SliceTimer(distribution)
    slice_timer.pause()
    before_us, began_us = slice_timer.total_us, cpu_us()
    sum(range(200_000))
    paused_us = cpu_us() - began_us
    slice_timer.resume()
    slice_timer.pause()
    assert sum(distribution.classes().counts) == 2
    assert slice_timer.total_us - before_us < paused_us
