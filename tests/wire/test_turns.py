"""Nobody's message holds the loop: what is long is read in portions."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from nearcast.v1 import device_service_pb2, publisher_service_pb2
from server.transport import converters
from tests.wire.test_bad_input import an_object, hello

Entry = device_service_pb2.AttachFleetRequest.Entry
ENTRIES, ENTRIES_AT_ONCE = 2_000, 256
OBJECTS, OBJECTS_AT_ONCE = 500, 32


def message(*entries):
    return device_service_pb2.AttachFleetRequest(entries=entries)


class Turns:
    """Counts what is done in each turn of the loop, of which another task takes every second."""

    def __init__(self):
        self.turn, self.counts = 0, Counter()

    def counted(self, function):
        def counting(*arguments):
            self.counts[self.turn] += 1
            return function(*arguments)

        return counting

    async def go_on(self):
        while True:
            self.turn += 1
            await asyncio.sleep(0)


@pytest.fixture
async def turns():
    turns = Turns()
    task = asyncio.create_task(turns.go_on())
    yield turns
    task.cancel()


async def test_others_have_their_turn_while_a_message_of_a_fleet_is_read(
    stubs, server, turns, monkeypatch
):
    coordinator = server.coordinator  # which each command goes by
    monkeypatch.setattr(coordinator, "renew_lease", turns.counted(coordinator.renew_lease))
    call = stubs.devices.AttachFleet()
    await call.write(message(Entry(device_id="a", request=hello("a"))))
    assert (await call.read()).entries[0].response.HasField("welcome")
    turns.counts.clear()
    refused = Entry(device_id="a", request=hello("b"))
    last = Entry(device_id="a", request={"ping": {"number": 7}})
    await call.write(message(*[refused] * ENTRIES, last))
    while not any(entry.response.pong.number == 7 for entry in (await call.read()).entries):
        pass
    assert sum(turns.counts.values()) == ENTRIES + 1
    assert max(turns.counts.values()) <= ENTRIES_AT_ONCE
    call.cancel()


async def test_so_they_have_while_objects_of_a_request_are_read(stubs, turns, monkeypatch):
    monkeypatch.setattr(converters, "new_object_from", turns.counted(converters.new_object_from))
    call = stubs.publishers.Publish()
    objects = [an_object() for _ in range(OBJECTS)]
    await call.write(publisher_service_pb2.PublishRequest(sequence=1, objects=objects))
    assert len((await call.read()).ids) == OBJECTS
    assert sum(turns.counts.values()) == OBJECTS
    assert max(turns.counts.values()) <= OBJECTS_AT_ONCE
    call.cancel()
