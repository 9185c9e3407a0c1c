"""Hellos that wait for an owner of their slot: what comes after them, and other devices."""

from __future__ import annotations

import asyncio

from nearcast.v1.device_service_pb2 import AttachRequest
from server.transport.waiting_hellos import WaitingHellos

HELLO = AttachRequest(hello={"device_id": "d"})


def ping(number):
    return AttachRequest(ping={"number": number})


class Slots:
    """Devices whose slots have an owner once that is set."""

    def __init__(self):
        self.owned = {}

    def own(self, device_id):
        self.owned.setdefault(device_id, asyncio.Event()).set()

    def is_settled(self, device_id):
        return self.owned.setdefault(device_id, asyncio.Event()).is_set()

    async def settled(self, device_id):
        await self.owned.setdefault(device_id, asyncio.Event()).wait()


class Stream:
    """What is submitted, in order."""

    def __init__(self):
        self.slots = Slots()
        self.submitted = []
        self.hellos = WaitingHellos(self.slots, self.submit)

    async def submit(self, device_id, request):
        await asyncio.sleep(0)  # as when the queue is full
        self.submitted.append((device_id, request))

    async def read(self, device_id, request):
        if not await self.hellos.keep(device_id, request):
            await self.submit(device_id, request)


async def test_a_device_waits_in_order_and_others_go_on():
    stream = Stream()
    stream.slots.own("there")
    await stream.read("away", HELLO)
    for number in range(5):
        await stream.read("away", ping(number))
        await stream.read("there", ping(number))
    await stream.read("away", None)
    assert stream.submitted == [("there", ping(number)) for number in range(5)]
    stream.slots.own("away")
    stream.submitted.clear()
    while not any(request is None for _, request in stream.submitted):  # noqa: ASYNC110
        await asyncio.sleep(0)
    await stream.read("away", HELLO)
    assert stream.submitted == [
        ("away", HELLO),
        *(("away", ping(number)) for number in range(5)),
        ("away", None),
        ("away", HELLO),
    ]


async def test_what_comes_while_a_device_is_let_in_stays_in_order():
    stream = Stream()
    await stream.read("d", HELLO)
    await stream.read("d", ping(0))
    stream.slots.own("d")
    for number in range(1, 200):
        await stream.read("d", ping(number))
        await asyncio.sleep(0)
    expected = [("d", HELLO), *(("d", ping(number)) for number in range(200))]
    while len(stream.submitted) < len(expected):  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert stream.submitted == expected


async def test_a_stream_is_not_read_beyond_what_may_wait():
    stream = Stream()
    await stream.read("d", HELLO)
    reading = asyncio.create_task(flood(stream))
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert not reading.done()
    stream.slots.own("d")
    await reading
    assert [request for _, request in stream.submitted] == [HELLO, *map(ping, range(100))]


async def flood(stream):
    for number in range(100):
        await stream.read("d", ping(number))


async def test_what_waits_is_discarded_when_the_stream_ends():
    stream = Stream()
    await stream.read("d", HELLO)
    stream.hellos.close()
    stream.slots.own("d")
    for _ in range(10):
        await asyncio.sleep(0)
    assert stream.submitted == []
