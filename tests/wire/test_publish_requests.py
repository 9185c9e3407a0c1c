"""The requests of a publish stream at the server: answered in order; none is admitted once it drains."""

from __future__ import annotations

import asyncio

import pytest

from nearcast.errors import Reason, RefusedError
from server.transport.publish_requests import AdmittedCount, PendingRequest, PublishRequests

OBJECTS_MAX = 1000
DRAINING = RefusedError(Reason.DRAINING, "server", "stopping", "running; try again")


class Stream:
    """Requests, and what has been said of them."""

    def __init__(self):
        self.requests = PublishRequests(OBJECTS_MAX)
        self.ids = []
        self.sent = []
        self.sending = asyncio.create_task(self._send())

    async def _send(self):
        async for response in self.requests.responses():
            self.sent.append(response if isinstance(response, AdmittedCount) else response.sequence)

    async def receive(self, size=1):
        """Admit a request and enqueue it, as the service does."""
        if not await self.requests.admit(size):
            return False
        self.ids.append(asyncio.get_running_loop().create_future())
        self.requests.enqueue(PendingRequest(len(self.ids), size, self.ids[-1]))
        return True

    def done(self, *sequences):
        for sequence in sequences:
            self.ids[sequence - 1].set_result([sequence])


@pytest.fixture
async def stream():
    stream = Stream()
    yield stream
    stream.sending.cancel()


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_responses_are_sent_in_order_as_they_come(stream):
    for _ in range(3):
        assert await stream.receive()
    stream.done(2)
    await settled()
    assert stream.sent == []
    stream.done(1)
    await settled()
    assert stream.sent == [1, 2]
    stream.requests.enqueue(
        PendingRequest(4, 1, RefusedError(Reason.INVALID_FIELD, "objects", "none", "some"))
    )
    stream.done(3)
    stream.requests.end()
    await stream.sending
    assert stream.sent == [1, 2, 3, 4]


@pytest.mark.parametrize("due", [0, 1, 3])
async def test_the_admitted_count_is_sent_at_once_and_the_rest_is_discarded(stream, due):
    for _ in range(3):
        await stream.receive()
    stream.done(*range(1, 4 - due))
    await settled()
    stream.requests.drain(DRAINING)
    assert not await stream.receive()
    await settled()
    assert stream.sent == [*range(1, 4 - due), AdmittedCount(3, DRAINING)], (
        "answers that are due do not hold it up"
    )
    stream.done(*range(4 - due, 4))
    assert not await stream.receive()
    await settled()
    assert stream.sent == [*range(1, 4 - due), AdmittedCount(3, DRAINING), *range(4 - due, 4)]
    assert not stream.requests.stop_reading.is_set(), "it is read until the client has half-closed"
    assert not stream.sending.done()
    stream.requests.end()
    await stream.sending


@pytest.mark.parametrize("size", [1, OBJECTS_MAX])
async def test_a_request_that_waits_for_room_when_the_server_drains_is_discarded(stream, size):
    for _ in range(64 if size == 1 else 1):
        assert await stream.receive(size)
    waiting = asyncio.create_task(stream.receive(size))
    await settled()
    assert not waiting.done()
    stream.requests.drain(DRAINING)
    assert not await waiting
    await settled()
    assert stream.sent == [AdmittedCount(len(stream.ids), DRAINING)]


async def test_a_request_that_is_being_submitted_when_the_server_drains_is_counted(stream):
    assert await stream.requests.admit(1)
    stream.requests.drain(DRAINING)
    await settled()
    assert stream.sent == [AdmittedCount(1, DRAINING)]
    ids = asyncio.get_running_loop().create_future()
    stream.requests.enqueue(PendingRequest(7, 1, ids))
    stream.requests.end()
    ids.set_result([1])
    await stream.sending
    assert stream.sent == [AdmittedCount(1, DRAINING), 7]


async def test_a_response_frees_capacity_for_the_next_request(stream):
    """A request that is alone may have more objects than the limit."""
    assert await stream.receive(OBJECTS_MAX + 1)
    waiting = asyncio.create_task(stream.receive(1))
    await settled()
    assert not waiting.done()
    stream.done(1)
    assert await waiting
    assert stream.sent == [1]
