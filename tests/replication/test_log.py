"""The contract of a log, in JetStream and in memory; what a log in JetStream has to promise."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import nats
import pytest

from cluster import stream
from cluster.entries import Entry, Publish, Tick
from cluster.jetstream import JetStreamOptions, connected_log, open_log
from cluster.local_servers import wait_until_healthy
from cluster.log import LogConflictError, LogError, LogUnavailableError
from nearcast.canonical import NewObject
from tests.replication.conftest import log_servers
from tests.replication.memory_log import MemoryLog
from tests.replication.test_rules import SHOP

pytestmark = pytest.mark.processes

LARGE = Publish(SHOP, tuple(NewObject(14.5, 35.5, ("tea",), 9, bytes(4_000)) for _ in range(700)))
"""Of some 2.8 MB: more than two messages of the log."""

HOUR_NS = 3_600 * 10**9


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that syncs."""
    with log_servers(tmp_path_factory.mktemp("log"), 1) as (one,):
        yield one


def options(server, stream="nearcast", **more):
    return JetStreamOptions(
        **{
            "servers": [server.url],
            "monitors": [server.monitor_url],
            "stream": stream,
            "replicas": 1,
            **more,
        }
    )


@asynccontextmanager
async def opened(chosen):
    log = await open_log(chosen)
    try:
        yield log
    finally:
        await log.close()


async def made_before(chosen, changes):
    """Make the streams of a log with other settings, by name, as an operator may."""
    log = await connected_log(chosen)
    for one, settings in log._streams():  # noqa: SLF001 - what it would make itself
        await one.made({**settings, **changes.get(one.name, {})})
    await log.close()


@pytest.fixture(params=["memory", "jetstream"])
async def log(request):
    """An empty log."""
    if request.param == "memory":
        yield MemoryLog()
        return
    server = request.getfixturevalue("server")
    async with opened(
        options(server, request.node.name.translate(str.maketrans("[]", "--"))[-32:])
    ) as one:
        yield one


async def read(log, count, after=0):
    """Return the next messages after an offset."""
    found = []
    async with aclosing(log.read(after)) as messages:
        async for message in messages:
            found.append(message)
            if len(found) == count:
                return found
    raise AssertionError("a log has ended")


async def test_messages_have_one_order_for_every_reader(log):
    assert await log.end() == 0
    entries = [[Entry(i, Tick()), Entry(i + 1, Tick())] for i in range(20)]
    offsets = [await log.append(one) for one in entries]
    assert offsets == list(range(1, 21))
    assert await log.end() == 20
    first, second = await read(log, 20), await read(log, 20)
    assert first == second == list(zip(offsets, entries, strict=True))
    assert await read(log, 5, after=15) == first[15:]


async def test_a_reader_waits_for_messages(log):
    reading = asyncio.create_task(read(log, 2))
    await log.append([Entry(1, Tick())])
    await log.append([Entry(2, Tick())])
    assert [message.entries[0].time_ms for message in await reading] == [1, 2]


async def test_one_of_several_first_messages_is_the_first(log):
    tries = (log.append([Entry(i, Tick())], is_first=True) for i in range(5))
    done = await asyncio.gather(*tries, return_exceptions=True)
    assert [one for one in done if not isinstance(one, LogConflictError)] == [1]
    assert await log.end() == 1


async def test_a_large_message_stays_whole(log):
    await log.append([Entry(1, Tick())])
    end = await log.append([Entry(2, LARGE, b"large")])
    await log.append([Entry(3, Tick())])
    small, large, last = await read(log, 3)
    assert (small.offset, large.offset, last.offset) == (1, end, end + 1)
    assert large.entries == [Entry(2, LARGE, b"large")]
    assert await read(log, 1, after=end) == [last]


async def test_large_messages_of_several_nodes_do_not_mix(log):
    await asyncio.gather(*(log.append([Entry(i, LARGE)]) for i in range(4)))
    found = await read(log, 4)
    assert sorted(message.entries[0].time_ms for message in found) == [0, 1, 2, 3]
    assert all(message.entries[0].change == LARGE for message in found)


async def test_a_log_that_is_trimmed_keeps_its_end_and_ends_readers_of_what_is_gone(log):
    assert (await log.first(), await log.end()) == (1, 0)
    for i in range(5):
        await log.append([Entry(i, Tick())])
    for _ in range(2):
        await log.trim(2)
        assert (await log.first(), await log.end()) == (3, 5)
    with pytest.raises(LogError, match="no message 1"):
        await read(log, 1)
    assert [one.offset for one in await read(log, 3, after=2)] == [3, 4, 5]
    await log.trim(5)
    assert (await log.first(), await log.end()) == (6, 5)
    assert await log.append([Entry(5, Tick())]) == 6
    assert await log.first() == 6


async def test_what_is_older_is_found_by_the_clock_of_the_log(server):
    async with opened(options(server, "aged")) as log:
        assert await log.older(0.0) == 0
        ages = []
        for i in range(12):
            await log.append([Entry(i, LARGE if i == 5 else Tick())])
        first, last = await log.first(), await log.end()
        times = {one: await log._stream.time_s(one) for one in range(first, last + 1)}  # noqa: SLF001
        for offset in range(first, last + 1):
            age_s = times[last] - times[offset]
            ages.append(age_s)
            older = await log.older(age_s)
            assert older == max(one for one in times if times[one] <= times[last] - age_s)
            assert older >= offset
        assert await log.older(ages[0] + 60.0) == 0
        assert await log.older(0.0) == last
        await log.trim(4)
        assert await log.older(ages[0] + 60.0) == 4


async def test_a_log_is_made_after_an_offset_and_only_where_there_is_none(server):
    log = await connected_log(options(server, "made"))
    try:
        await log.create(after=1_000)
        assert (await log.first(), await log.end()) == (1_001, 1_000)
        assert await log.append([Entry(1, Tick())]) == 1_001
        assert [one.offset for one in await read(log, 1, after=1_000)] == [1_001]
        with pytest.raises(LogError, match="stream made exists, must be absent"):
            await log.create(after=1_000)
    finally:
        await log.close()


async def test_what_a_stream_promises_is_read_from_its_servers(server, tmp_path):
    async with opened(options(server, "one")):
        pass
    with pytest.raises(LogError, match="has 1 replicas, must have 3"):
        await open_log(options(server, "one", replicas=3))
    with pytest.raises(LogError, match="no monitoring port is known: --log-monitor; --log-unsafe"):
        await open_log(options(server, "one", monitors=[]))
    with pytest.raises(LogError, match="cannot be read"):
        await open_log(options(server, "one", monitors=["http://127.0.0.1:1"]))
    with log_servers(tmp_path, 1, syncs=False) as (careless,):
        with pytest.raises(
            LogError, match="server log1 does not sync each append: set sync_interval: always"
        ):
            await open_log(options(careless))
        async with opened(options(careless, is_unsafe=True)) as log:
            assert await log.append([Entry(1, Tick())]) == 1


@pytest.mark.parametrize(
    ("suffix", "settings", "flaw"),
    [
        ("", {"max_age": HOUR_NS}, f"max_age of stream {{}} is {HOUR_NS}, must be 0"),
        ("", {"max_msgs_per_subject": 9}, "max_msgs_per_subject of stream {} is 9, must be -1"),
        ("", {"discard": "old"}, "discard of stream {} is old, must be new"),
        ("-devices", {"max_age": HOUR_NS}, f"max_age of stream {{}} is {HOUR_NS}, must be 0"),
        ("-devices", {"max_bytes": 1_000}, "max_bytes of stream {} is 1000, must be -1"),
        ("-devices", {"max_msgs": 9}, "max_msgs of stream {} is 9, must be -1"),
        ("-devices", {"max_msgs_per_subject": 9}, "max_msgs_per_subject of stream {} is 9, must be 1"),
        ("-devices", {"allow_msg_ttl": False}, "allow_msg_ttl of stream {} is False, must be True"),
    ],
)
async def test_streams_that_delete_what_was_acknowledged_are_refused(server, suffix, settings, flaw):
    name = f"{next(iter(settings))}-of-{'devices' if suffix else 'objects'}"
    chosen = options(server, name)
    await made_before(chosen, {name + suffix: settings})
    message = f"the log does not promise durability: {flaw.format(name + suffix)}; --log-unsafe"
    with pytest.raises(LogError, match=message):
        await open_log(chosen)
    async with opened(replace(chosen, is_unsafe=True)):
        pass


@pytest.mark.parametrize("limit", [{"max_bytes": 1_000}, {"max_msgs": 1}])
async def test_a_stream_of_objects_that_is_full_refuses_and_keeps_what_it_has(server, monkeypatch, limit):
    name = f"full-{next(iter(limit))}"
    chosen = options(server, name)
    await made_before(chosen, {name: limit})
    async with opened(chosen) as log:
        await log.append([Entry(1, Tick())])
        monkeypatch.setattr(stream, "PATIENCE_S", 1.0)
        with pytest.raises(LogUnavailableError, match=r"maximum .* exceeded"):
            await log.append([Entry(2, Publish(SHOP, LARGE.objects[:1]))])
        assert [one.entries[0].time_ms for one in await read(log, 1)] == [1]
        assert await log.end() == 1


async def test_a_server_that_is_not_there_is_an_error():
    with pytest.raises(LogUnavailableError, match="no server of the log can be reached"):
        await open_log(JetStreamOptions(["nats://127.0.0.1:1"]))


async def test_readers_and_writers_continue_when_a_server_is_back(tmp_path):
    with log_servers(tmp_path, 1) as (server,):
        async with opened(options(server)) as log:
            await log.append([Entry(0, Tick())])
            reading = asyncio.create_task(read(log, 2))
            server.kill()
            writing = asyncio.create_task(log.append([Entry(1, Tick())]))
            server.start()
            await asyncio.to_thread(wait_until_healthy, server)
            assert await writing == 2
            assert [message.entries[0].time_ms for message in await reading] == [0, 1]


async def test_what_could_not_be_sent_is_not_sent_later(tmp_path, monkeypatch):
    """Its sender has been told that it may have failed, and may have sent something else since."""
    with log_servers(tmp_path, 1) as (server,):
        async with opened(options(server)) as log:
            await log.append([Entry(1, Tick())])
            server.kill()
            while log.keys.is_connected:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            with monkeypatch.context() as patched:
                patched.setattr(stream, "PATIENCE_S", 0.5)
                with pytest.raises(LogUnavailableError):
                    await log.append([Entry(2, Tick())])
            client = log._stream._client  # noqa: SLF001 - what the library keeps
            reading = asyncio.create_task(read(log, 2))
            await asyncio.sleep(1.0)
            assert len(client._resp_map) + len(client._subs) <= 2, "nothing that waits for a connection"  # noqa: SLF001
            asking = asyncio.create_task(log.end())
            await asyncio.sleep(0)
            server.start()
            assert await asking == 1
            assert await log.append([Entry(3, Tick())]) == 2
            assert [message.entries[0].time_ms for message in await reading] == [1, 3]


async def test_an_append_is_repeated_until_there_is_a_quorum(tmp_path, monkeypatch):
    """The leader refuses copies of a message of which the first one has no quorum yet."""
    monkeypatch.setattr(stream, "PATIENCE_S", 600.0)
    with log_servers(tmp_path, 3) as servers:
        chosen = JetStreamOptions([one.url for one in servers], [one.monitor_url for one in servers])
        async with opened(chosen) as log:
            await log.append([Entry(0, Tick())])
        leader = next(one for one in servers if one.leads("nearcast"))
        others = [one for one in servers if one is not leader]
        async with (
            opened(replace(chosen, servers=[leader.url])) as log,
            await nats.connect(leader.url) as client,
        ):
            copies = await client.subscribe("nearcast.objects")
            for one in others:
                one.kill()
            appending = asyncio.create_task(log.append([Entry(1, Tick())]))
            for _ in range(3):
                copy = asyncio.create_task(copies.next_msg(timeout=600.0))
                await asyncio.wait({appending, copy}, return_when=asyncio.FIRST_COMPLETED)
                assert not appending.done(), appending
            for one in others:
                one.start()
            assert await appending == 2
            assert [message.entries[0].time_ms for message in await read(log, 2)] == [0, 1]


async def test_a_message_that_is_repeated_while_the_first_is_on_its_way_is_there_once(
    tmp_path, monkeypatch
):
    """Three servers have to agree first, and meanwhile they refuse the repetition."""
    with log_servers(tmp_path, 3) as servers:
        chosen = JetStreamOptions(
            [one.url for one in servers], [one.monitor_url for one in servers], "repeated"
        )
        async with opened(chosen) as log:
            monkeypatch.setattr(stream.secrets, "token_hex", lambda _: "of both")
            offsets = await asyncio.gather(*(log.append([Entry(1, Tick())]) for _ in range(20)))
            assert set(offsets) == {1}
            assert await log.end() == 1
