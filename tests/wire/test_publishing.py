"""A publisher need not wait for an answer before it asks again: what waits together shares a commit."""

from __future__ import annotations

import asyncio
import gc
import logging

from nearcast.v1 import publisher_service_pb2
from tests.sdk.conftest import until
from tests.support.servers import HeldCommits
from tests.wire.test_bad_input import an_object


def a_request(sequence, *objects):
    return publisher_service_pb2.PublishRequest(sequence=sequence, objects=objects or [an_object()])


async def test_requests_waiting_for_one_commit_share_the_next(stubs, server):
    commits = HeldCommits(server.store)
    call = stubs.publishers.Publish()
    await call.write(a_request(0))
    await until(lambda: server.coordinator.latest_object_id > 0)
    for sequence in range(1, 100):
        await call.write(a_request(sequence))
    await until(lambda: server.command_loop.waiting_count == 63)
    await asyncio.sleep(0.1)
    assert server.command_loop.waiting_count == 63, "that is all that is read"
    commits.go_on.set()
    responses = [await call.read() for _ in range(100)]
    assert commits.rows[:2] == [1, 63]
    assert [response.sequence for response in responses] == list(range(100))
    ids = [object_id for response in responses for object_id in response.ids]
    assert ids == sorted(server.coordinator.matching.objects)
    assert len(ids) == 100


async def test_refusals_come_in_their_turn(stubs, server):
    call = stubs.publishers.Publish()
    for sequence in range(60):
        objects = [an_object(ttl_ms=-1 if sequence % 3 == 0 else 60_000)]
        await call.write(a_request(sequence, *objects))
    responses = [await call.read() for _ in range(60)]
    assert [response.sequence for response in responses] == list(range(60))
    assert [response.error.field for response in responses] == ["objects[0].ttl_ms", "", ""] * 20
    assert [len(response.ids) for response in responses] == [0, 1, 1] * 20
    assert len(server.coordinator.matching.objects) == 40


async def test_of_replacements_the_last_stays(stubs, server):
    call = stubs.publishers.Publish()
    for sequence in range(100):
        await call.write(a_request(sequence, an_object(key="bus", payload=bytes([sequence]))))
    responses = [await call.read() for _ in range(100)]
    (alive,) = server.coordinator.matching.objects.values()
    assert alive.payload == bytes([99])
    assert list(responses[-1].ids) == list(server.coordinator.matching.objects)


async def test_no_more_is_read_than_one_request_may_hold(stubs, server):
    """Of 1,000 objects: three requests of 300. One that is too large is refused in its turn."""
    commits = HeldCommits(server.store)
    call = stubs.publishers.Publish()
    sizes = [300] * 8 + [1001, 1000, 1]
    for sequence, size in enumerate(sizes):
        await call.write(a_request(sequence, *[an_object()] * size))

    def under_way():
        return server.coordinator.latest_object_id + 300 * server.command_loop.waiting_count

    await until(lambda: under_way() == 900)
    await asyncio.sleep(0.1)
    assert under_way() == 900
    commits.go_on.set()
    responses = [await call.read() for _ in sizes]
    assert [response.sequence for response in responses] == list(range(len(sizes)))
    assert [len(response.ids) for response in responses] == [300] * 8 + [0, 1000, 1]
    assert responses[8].error.field == "objects"


async def test_a_publisher_that_leaves_takes_nothing_along(stubs, server, caplog):
    commits = HeldCommits(server.store)
    call = stubs.publishers.Publish()
    await call.write(a_request(0))
    await commits.has_begun.wait()
    for sequence in range(1, 50):
        await call.write(a_request(sequence, an_object(ttl_ms=-1 if sequence % 5 == 0 else 60_000)))
    await until(lambda: server.command_loop.waiting_count == 49)
    call.cancel()
    async with asyncio.timeout(20):
        await server.listener.publishers.idle()
    commits.go_on.set()
    other = stubs.publishers.Publish()
    await other.write(a_request(1))
    response = await other.read()
    assert response.ids[0] in server.coordinator.matching.objects
    assert len(server.coordinator.matching.objects) == 42, "what had been read was carried out"
    del call, other
    gc.collect()
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]
