"""Publish requests that were read wait within a bound of their caller, however many streams it has."""

from __future__ import annotations

import asyncio
import contextlib
import time

from hypothesis import given
from hypothesis import strategies as st

from identity import setup
from identity.quotas import Account, Quota
from server.transport import received_bytes
from server.transport.parsing import LargeRequest
from server.transport.received_bytes import ReceivedBytes
from tests.sdk.conftest import until
from tests.support.identity import bearer, token
from tests.support.servers import HeldCommits
from tests.wire.city import a_city, refused
from tests.wire.test_bad_input import an_object
from tests.wire.test_publishing import a_request

PAYLOAD = bytes(16_000)


async def test_requests_on_many_streams_wait_within_one_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(received_bytes, "CALLER_BYTES_MAX", 50_000)  # three requests
    async with a_city(tmp_path) as city:
        received = city.server.listener.publishers._received  # noqa: SLF001 - the sum has no other sign
        commits = HeldCommits(city.server.store)
        calls = {
            who: [city.publishers.Publish(metadata=bearer(token(who, "publisher"))) for _ in range(8)]
            for who in ("many", "other")
        }
        for call in calls["many"]:
            await call.write(a_request(0, an_object(payload=PAYLOAD)))
        sums = set()

        def has_reached(requests):
            sums.add(received._size)  # noqa: SLF001
            return received._size // len(PAYLOAD) == requests  # noqa: SLF001

        await until(lambda: has_reached(3))
        await calls["other"][0].write(a_request(0, an_object(payload=PAYLOAD)))
        await until(lambda: has_reached(4))
        commits.go_on.set()
        responses = [await call.read() for call in (*calls["many"], calls["other"][0])]
    assert all(len(response.ids) == 1 for response in responses)
    assert max(sums) <= 50_000 + 50_000 / 3


async def test_refused_requests_and_calls_that_are_broken_off_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(received_bytes, "CALLER_BYTES_MAX", 50_000)
    async with a_city(tmp_path) as city:
        who = bearer(token("p", "publisher"))
        received = city.server.listener.publishers._received  # noqa: SLF001 - the sum has no other sign
        commits = HeldCommits(city.server.store)
        calls = [city.publishers.Publish(metadata=who) for _ in range(8)]
        for call in calls:
            await call.write(a_request(0, an_object(payload=PAYLOAD)))
        await until(lambda: city.server.coordinator.latest_object_id > 0)
        for call in calls:
            call.cancel()
        commits.go_on.set()
        call = city.publishers.Publish(metadata=who)
        for sequence in range(8):
            await call.write(a_request(sequence, an_object(payload=PAYLOAD, ttl_ms=-1)))
        assert [(await call.read()).error.field for _ in range(8)] == ["objects[0].ttl_ms"] * 8
        await until(lambda: not received._size)  # noqa: SLF001
        assert {one.received_bytes for one in city.server.readings.accounts()} == {0}


async def test_little_of_a_stream_is_received_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(received_bytes, "CALLER_BYTES_MAX", 1)  # a request at a time
    request = [an_object(payload=PAYLOAD)] * 6  # 96 KB
    async with a_city(tmp_path) as city:
        commits = HeldCommits(city.server.store)
        calls = [city.publishers.Publish(metadata=bearer(token("p", "publisher"))) for _ in range(8)]
        sent = [0] * len(calls)

        async def send(number):
            while True:
                await calls[number].write(a_request(sent[number], *request))
                sent[number] += 1

        sending = [asyncio.create_task(send(number)) for number in range(len(calls))]
        await until(lambda: city.server.coordinator.latest_object_id > 0)
        await asyncio.sleep(2.0)
        for task in sending:
            task.cancel()
        received = list(sent)
        commits.go_on.set()
    # Of each stream the one that waits, what is ahead of it, and what the client holds.
    assert max(received) <= 2 + 3 + 2, received


async def test_one_large_request_of_a_caller_is_parsed_in_a_turn_of_the_loop(tmp_path, monkeypatch):
    request, turn, turns = [an_object(payload=PAYLOAD)] * 6, 0, []  # 96 KB
    parsed = LargeRequest.parsed

    def noted(large):
        turns.append(turn)
        time.sleep(0.05)  # so that the next requests are received at once
        return parsed(large)

    async def count():
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(LargeRequest, "parsed", noted)
    async with a_city(tmp_path) as city:
        counting = asyncio.create_task(count())
        calls = [city.publishers.Publish(metadata=bearer(token("p", "publisher"))) for _ in range(8)]
        await asyncio.gather(*(call.write(a_request(0, *request)) for call in calls))
        responses = [await call.read() for call in calls]
        counting.cancel()
    assert all(len(response.ids) == len(request) for response in responses)
    assert len(turns) == len(set(turns)) == len(calls)


async def test_a_large_request_that_breaks_a_bound_is_refused_alone(tmp_path):
    async with a_city(tmp_path) as city:
        call = city.publishers.Publish(metadata=bearer(token("p", "publisher")))
        await call.write(a_request(7, *[an_object()] * 60_000))
        await call.write(a_request(8, *[an_object(payload=PAYLOAD)] * 6))
        refusal, response = [await call.read() for _ in range(2)]
    assert (refusal.sequence, refusal.error.field) == (7, "objects")
    assert (response.sequence, len(response.ids)) == (8, 6)


async def test_the_streams_of_a_publisher_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "PUBLISHER_STREAMS_MAX", 2)
    async with a_city(tmp_path) as city:
        who = bearer(token("p", "publisher"))
        calls = []
        for _ in range(2):
            calls.append(city.publishers.Publish(metadata=who))
            await calls[-1].write(a_request(0))
            assert (await calls[-1].read()).ids
        await refused(city.publishers.Publish(metadata=who).read(), "RATE_LIMITED", "streams")


async def test_a_request_that_is_cancelled_after_its_turn_counts_no_longer():
    received, account = ReceivedBytes(), Account(Quota(), name="p")
    await received.add(account, received_bytes.CALLER_BYTES_MAX)
    waiting = asyncio.create_task(received.add(account, 7))
    await asyncio.sleep(0)
    received.remove(account, received_bytes.CALLER_BYTES_MAX)
    assert account.received_bytes == 7
    waiting.cancel()
    await asyncio.wait({waiting})
    assert account.received_bytes == 0


amounts = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 70), st.booleans()), max_size=40)


@given(amounts)
def test_no_caller_has_more_than_its_bound_and_all_are_served(steps):
    asyncio.run(_serve(steps))


async def _serve(steps):
    received = ReceivedBytes()
    accounts = [Account(Quota(), name=str(number)) for number in range(3)]
    held, tasks = [], []

    async def add(account, size):
        await received.add(account, size)
        held.append((account, size))

    def free_one():
        account, size = held.pop(0)
        received.remove(account, size)

    with (
        patched("CALLER_BYTES_MAX", 50),
        patched("BYTES_MAX", 100),
    ):
        for number, size, frees in steps:
            tasks.append(asyncio.create_task(add(accounts[number], size)))
            await asyncio.sleep(0)
            if frees and held:
                free_one()
            await asyncio.sleep(0)
            for account in accounts:
                own = [size for one, size in held if one is account]
                assert account.received_bytes == sum(own)
                assert sum(own) <= 50 or len(own) == 1
        while held or not all(task.done() for task in tasks):
            free_one()
            for _ in range(3):
                await asyncio.sleep(0)
    assert all(task.done() for task in tasks)
    assert [account.received_bytes for account in accounts] == [0, 0, 0]


@contextlib.contextmanager
def patched(name, value):
    before = getattr(received_bytes, name)
    setattr(received_bytes, name, value)
    try:
        yield
    finally:
        setattr(received_bytes, name, before)
