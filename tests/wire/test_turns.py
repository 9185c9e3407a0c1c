"""Nobody's message holds the loop: what is long is read in portions."""

from __future__ import annotations

import asyncio
from collections import Counter

from nearcast.v1 import device_service_pb2
from server.transport.device_service import DeviceServicer
from tests.wire.test_bad_input import hello

Entry = device_service_pb2.AttachFleetRequest.Entry
ENTRIES = 2_000
AT_ONCE = 256


def message(*entries):
    return device_service_pb2.AttachFleetRequest(entries=entries)


async def test_others_have_their_turn_while_a_message_of_a_fleet_is_read(stubs, monkeypatch):
    turns, read = 0, Counter()
    command = DeviceServicer._command

    def counted(servicer, *arguments):
        read[turns] += 1
        return command(servicer, *arguments)

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(DeviceServicer, "_command", counted)
    call = stubs.devices.AttachFleet()
    await call.write(message(Entry(device_id="a", request=hello("a"))))
    assert (await call.read()).entries[0].response.HasField("welcome")
    read.clear()
    another = asyncio.create_task(other())
    refused = Entry(device_id="a", request=hello("b"))
    last = Entry(device_id="a", request={"ping": {"number": 7}})
    await call.write(message(*[refused] * ENTRIES, last))
    while not any(entry.response.pong.number == 7 for entry in (await call.read()).entries):
        pass
    another.cancel()
    assert sum(read.values()) == ENTRIES + 1
    assert max(read.values()) <= AT_ONCE
    call.cancel()
