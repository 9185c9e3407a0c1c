"""One publisher, many tasks: each gets its own answer, whatever happens to the others."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref

import pytest

import nearcast
from nearcast import ClosedError, GeoObject, Reason, RefusedError, UnavailableError
from tests.sdk.conftest import PATIENCE_S, until
from tests.support.servers import HeldCommits


def numbered(number, key=""):
    return GeoObject({"sushi"}, 14.5, 35.5, 3600.0, payload=b"%d" % number, key=key)


def alive(place):
    """Return the payloads of all objects of a server, by id."""
    objects = place.server.coordinator.matching.objects
    return {object_id: int(one.payload) for object_id, one in objects.items()}


async def test_tasks_that_publish_at_once_share_commits(place, client):
    publisher = client.publisher()
    (first,) = await publisher.publish([numbered(0)])
    commits = HeldCommits(place.server.store)
    publishing = [asyncio.create_task(publisher.publish([numbered(i)])) for i in range(1, 300)]
    await commits.begun()
    held = commits.held
    await until(lambda: place.server.command_loop.waiting_count == 64 - held)
    commits.go_on.set()
    ids = [one for task in publishing for one in await task]
    assert ids == sorted(ids), "in the order of the requests"
    assert alive(place) == dict(zip([first, *ids], range(300), strict=True))
    assert commits.rows[:2] == [held, 64 - held]


async def test_a_cancelled_or_refused_caller_does_not_disturb_others(place, client, caplog):
    publisher = client.publisher()
    await publisher.publish([numbered(0)])
    commits = HeldCommits(place.server.store)

    def published(i):
        return asyncio.create_task(publisher.publish([numbered(i)] if i % 4 else [numbered(i)] * 1001))

    publishing = {i: published(i) for i in range(1, 100)}
    refused = {i: asyncio.create_task(publisher.publish([_outside()])) for i in range(100, 120)}
    await until(lambda: place.server.coordinator.latest_object_id > 1)
    for i in range(3, 100, 10):
        publishing[i].cancel()
    commits.go_on.set()
    found = await asyncio.gather(*publishing.values(), return_exceptions=True)
    payloads = alive(place)
    for i, ids in zip(publishing, found, strict=True):
        if i % 10 == 3:
            assert isinstance(ids, asyncio.CancelledError)
        else:
            assert {payloads[one] for one in ids} == {i}
            assert len(ids) == (1 if i % 4 else 1001)
    for task in refused.values():
        with pytest.raises(RefusedError):
            await task
    gc.collect()
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


@pytest.mark.parametrize("number", [3, 1003])
async def test_a_refused_object_of_a_long_list_has_its_place_in_the_list(client, number):
    """Only the server knows the area; the list takes two requests."""
    objects = [numbered(i) for i in range(1500)]
    objects[number] = _outside()
    with pytest.raises(RefusedError) as refused:
        await client.publisher().publish(objects)
    error = refused.value
    assert (error.reason, error.field) == (Reason.OUT_OF_AREA, f"objects[{number}].position")
    assert str(error).startswith(f"{error.field} is {error.value}, must be ")
    assert error.limit in str(error)
    assert error.hint


def _outside():
    return GeoObject({"sushi"}, 80.0, 35.5, 3600.0)


async def test_a_server_that_restarts_carries_each_out_once(place, client):
    """Without keys: it says what it has done before it goes, and the rest waits for the next one."""
    publisher = client.publisher()
    await publisher.publish([numbered(0)])
    commits = HeldCommits(place.server.store)
    publishing = [asyncio.create_task(publisher.publish([numbered(i)])) for i in range(1, 200)]
    await until(lambda: place.server.command_loop.waiting_count >= 20)
    stopping = asyncio.create_task(place.stop())
    late = [asyncio.create_task(publisher.publish([numbered(i)])) for i in range(200, 300)]
    await asyncio.sleep(0.05)
    commits.go_on.set()
    await stopping
    await place.start()
    ids = [one for task in [*publishing, *late] for one in await task]
    assert {one: number for one, number in alive(place).items() if number} == dict(
        zip(ids, range(1, 300), strict=True)
    )


async def test_a_connection_that_breaks_with_many_under_way(place, far, proxy):
    """With keys all are published once; without, a task is told that nobody knows, or its id is right."""
    publisher = far.publisher()
    await publisher.publish([numbered(0)])
    keyed, keyless = [], []
    for i in range(1, 401):
        tasks = keyed if i % 2 else keyless
        tasks.append(asyncio.create_task(publisher.publish([numbered(i, key=f"k{i}" if i % 2 else "")])))
        if i % 100 == 0:
            await asyncio.sleep(0.01)
            proxy.cut()
    found = dict(zip(range(1, 401, 2), await asyncio.gather(*keyed), strict=True))
    responses = await asyncio.gather(*keyless, return_exceptions=True)
    published = list(alive(place).values())
    for number, response in zip(range(2, 401, 2), responses, strict=True):
        if isinstance(response, UnavailableError):
            assert published.count(number) <= 1
        else:
            found[number] = response
    for number, (object_id,) in found.items():
        assert alive(place)[object_id] == number
        assert published.count(number) == 1
    assert await publisher.publish([numbered(500)])


async def test_a_client_keeps_no_publisher_that_is_closed(place):
    async with nearcast.connect(place.target) as client:
        opened = weakref.WeakSet()
        for i in range(3):
            async with client.publisher() as publisher:
                opened.add(publisher)
                await publisher.publish([numbered(i)])
        publisher = client.publisher()
        await publisher.publish([numbered(3)])
        gc.collect()
        assert not opened
        await client.network_changed()
        await publisher.publish([numbered(4)])
    with pytest.raises(ClosedError):
        await publisher.publish([numbered(5)])


async def test_a_publisher_that_is_closed_while_its_stream_opens_publishes_nothing(
    place, client, monkeypatch
):
    publisher = client.publisher()
    accepted, go_on = asyncio.Event(), asyncio.Event()
    accept = publisher._accepted  # noqa: SLF001 - holds the server's acceptance

    async def held(*arguments):
        call = await accept(*arguments)
        accepted.set()
        await go_on.wait()
        return call

    monkeypatch.setattr(publisher, "_accepted", held)
    publishing = asyncio.create_task(publisher.publish([numbered(0)]))
    await accepted.wait()
    await publisher.close()
    go_on.set()
    with pytest.raises(ClosedError):
        await publishing
    async with asyncio.timeout(PATIENCE_S):
        await place.server.listener.publishers.idle()
    assert not alive(place)


async def test_objects_are_retracted_by_ids_and_by_keys(place, client):
    publisher = client.publisher()
    ids = await publisher.publish([numbered(i, key=f"shop-{i}") for i in range(6)])
    await publisher.retract(key="shop-0")
    await publisher.retract(ids[1], keys=["shop-2", "shop-1"])
    assert set(alive(place)) == set(ids[3:])
    with pytest.raises(RefusedError) as refused:
        await publisher.retract(ids[3], key="shop-0")
    assert str(refused.value) == "keys[0] is 'shop-0', must be the key of a live object"
    assert set(alive(place)) == set(ids[3:]), "all or none"
    await publisher.retract(key="shop-3", keys=("shop-4", "shop-5"))
    assert not alive(place)


ID = "the id of an object, as publish returned it"


NO_OBJECTS = [
    (
        ("bakery-1",),
        {},
        f"ids[0] is 'bakery-1', must be {ID}; a single key is given as key='bakery-1'",
    ),
    ((1, None), {}, "ids[1] is None, must be the id of an object, as publish returned it"),
    ((True,), {}, "ids[0] is True, must be the id of an object, as publish returned it"),
    ((2**63,), {}, f"ids[0] is {2**63}, must be the id of an object, as publish returned it"),
    (
        (),
        {"keys": "bakery-1"},
        "keys is 'bakery-1', must be an iterable of texts; a single key is given as key=",
    ),
    ((), {"keys": 7}, "keys is 7, must be an iterable of texts; a single key is given as key="),
    ((), {"key": 7}, "keys[0] is 7, must be a text of 1 to 128 printable characters"),
    ((), {"keys": ["a", b"b"]}, "keys[1] is b'b', must be a text of 1 to 128 printable characters"),
    ((), {}, "ids is (), must be at least one id, unless key= or keys= is given"),
    ((), {"key": ""}, "keys[0] is '', must be a text of 1 to 128 printable characters"),
]


async def test_an_argument_without_an_object_is_refused_with_a_reason(client):
    for ids, named, text in NO_OBJECTS:
        with pytest.raises(RefusedError) as refused:
            await client.publisher().retract(*ids, **named)
        assert str(refused.value) == text
