"""The bridge, with a server in this process: objects come from a feed and are told to another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast
from feeds.redis.address import BEGIN, Span
from feeds.redis.entries import ARROW, JSON, packed
from feeds.redis.streams import Streams
from feeds.schemas import EXPIRE, KEYS, MESSAGES, PUBLISH, RETRACT
from identity.principal import Principal, Role
from safe_region.earth.frame import Area
from server import command as c
from server import main
from server.assembly.deployment import Feeds
from server.bridge import attempts
from server.bridge.chunk import Chunk
from server.bridge.feeds import FolderSinkFeed, RedisSinkFeed
from server.counters import Feed
from server.errors import BridgeError
from server.limits import Limits
from server.main import Server
from server.model import NewObject
from server.settings import ServerSettings
from tests.support.redis_server import RedisServer
from tests.support.servers import serving

pytestmark = pytest.mark.processes

AREA = Area(12.0, 55.0, 12.2, 55.1)
_PATIENCE_S = 60.0


def settings(tmp_path: Path, **more: Any) -> ServerSettings:
    return ServerSettings(area=AREA, port=0, store=tmp_path / "store.db", virtual_time=True, **more)


def message(object_id: int, **more: Any) -> dict[str, Any]:
    row = {"action": PUBLISH, "object_id": object_id, "time_ms": 1_000, "lon": 12.1, "lat": 55.05}
    return {**row, "keywords": ["tea", "Ice"], "ttl_ms": 60_000, "payload": b"x", **more}


def write(folder: Path, number: int, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    FolderSinkFeed(folder).put(number, number, pa.Table.from_pylist(rows, MESSAGES))


def sent(folder: Path) -> list[tuple[str, int]]:
    """Return what a folder was told, in order."""
    whole = sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))
    rows = [row for path in whole for row in pq.read_table(path).to_pylist()]
    return [(row["action"], row["object_id"]) for row in rows]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.02)


def keys(server: Server) -> set[str]:
    return {item.key for item in server.coordinator.matching.objects.values()}


async def test_objects_come_from_a_folder_once_and_survive_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "in"
    wrong = [message(3, lat=80.0), message(4, keywords=None), {"action": "shout"}]
    write(folder, 1, [message(1), message(2), message(1), *wrong, message(5, ttl_ms=None)])
    async with serving(settings(tmp_path, source=str(folder))) as server:
        await until(lambda: len(keys(server)) == 3)
        assert keys(server) == {"source/1", "source/2", "source/5"}
        assert server.coordinator.counters.source_refused == 3
        assert "first: object 3.position must be within" in caplog.text
        assert "80.0" not in caplog.text, "logs have no positions"
        item = server.coordinator.matching.objects[server.coordinator.keys.get("", "source/1")]
        assert (item.keywords, item.payload) == (("ice", "tea"), b"x")
        gone = {"action": RETRACT, "object_id": 2, "time_ms": 2_000}
        # What comes and goes at once was never there.
        write(folder, 2, [gone, message(6), {**gone, "object_id": 6}, {**gone, "object_id": 77}])
        await until(lambda: len(keys(server)) == 2)
    write(folder, 3, [message(7), message(1)])
    async with serving(settings(tmp_path, source=str(folder))) as server:
        await until(lambda: "source/7" in keys(server))
        assert keys(server) == {"source/1", "source/5", "source/7"}
        server.coordinator.check()


async def test_the_sink_receives_all_changes_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    async with serving(settings(tmp_path, sink=str(folder))) as server:
        async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
            await client.advance_clock(1_000)
            publisher = client.publisher()
            first, second = await publisher.publish(
                [
                    nearcast.GeoObject(["tea"], 12.1, 55.05, ttl_s=5, key="a", payload=b"x"),
                    nearcast.GeoObject(["ice"], 12.1, 55.05, ttl_s=5),
                ]
            )
            (third,) = await publisher.publish(
                [nearcast.GeoObject(["tea"], 12.1, 55.05, ttl_s=50, key="a")]
            )
            await publisher.retract(third)
            await client.advance_clock(10_000)
            (fourth,) = await publisher.publish([nearcast.GeoObject(["tea"], 12.1, 55.05, ttl_s=50)])
        await until(lambda: len(sent(folder)) == 7)
    happened = [(PUBLISH, first), (PUBLISH, second), (RETRACT, first), (PUBLISH, third)]
    happened += [(RETRACT, third), (EXPIRE, second), (PUBLISH, fourth)]
    assert sent(folder) == happened
    row = pq.read_table(min(folder.glob("*.parquet"))).to_pylist()[0]
    assert row == {
        "action": PUBLISH,
        "object_id": first,
        "time_ms": 1_000,
        "lon": 12.1,
        "lat": 55.05,
        "keywords": ["tea"],
        "ttl_ms": 5_000,
        "payload": b"x",
    }


async def test_unsent_changes_are_sent_by_the_next_server(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("no folder")
    given = settings(tmp_path, sink=str(out))
    async with (
        serving(given, Limits(sink_max=3)) as server,
        nearcast.connect(f"127.0.0.1:{server.port}") as client,
    ):
        publisher = client.publisher()
        posts = [nearcast.GeoObject(["tea"], 12.1, 55.05, ttl_s=500) for _ in range(3)]
        ids = await publisher.publish(posts)
        with pytest.raises(nearcast.RefusedError, match="sink is 3 changes wait, must be below 3"):
            await publisher.publish(posts)
    out.unlink()
    async with serving(given) as server:
        await until(lambda: len(sent(out)) == 3)
        await until(lambda: server.store.unsent_count == 0)
    assert sent(out) == [(PUBLISH, one) for one in ids]


async def test_feeds_in_redis_of_a_killed_server(tmp_path: Path, redis: RedisServer) -> None:
    source, target = redis.address("in", 2), redis.address("out")
    streams = Streams(source, MESSAGES, KEYS["messages"])
    given = settings(tmp_path, source=str(source), sink=str(target))
    async with serving(given) as server:
        streams.append(pa.Table.from_pylist([message(one) for one in range(10)], MESSAGES))
        await until(lambda: len(keys(server)) == 10)
        await asyncio.to_thread(redis.kill)
        await asyncio.to_thread(redis.start)
        streams.append(pa.Table.from_pylist([message(one) for one in range(10, 20)], MESSAGES))
        await until(lambda: len(keys(server)) == 20)
        await until(lambda: server.store.unsent_count == 0)
    found = Streams(target, MESSAGES, KEYS["messages"])
    rows = [
        row for some in found.read(Span(target.server, "out:0", BEGIN, "+")) for row in some.to_pylist()
    ]
    assert {row["object_id"] for row in rows} == set(range(1, 21))
    assert {row["action"] for row in rows} == {PUBLISH}


def test_a_write_of_many_bytes_is_several_entries_and_is_stored_once(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("feeds.redis.entries.BYTES_MAX", 4_000)
    target = redis.address("out", 2)
    feed, found = RedisSinkFeed(target), Streams(target, MESSAGES, KEYS["messages"])
    rows = pa.Table.from_pylist([message(one) | {"payload": bytes(900)} for one in range(20)], MESSAGES)
    for _ in range(2):  # the server was killed before it knew
        feed.put(1, 20, rows)
    feed.put(21, 21, rows.slice(0, 1))
    for name, more in (("out:0", [0]), ("out:1", [])):
        read = found.read(Span(target.server, name, BEGIN, "+"))
        ids = [row["object_id"] for some in read for row in some.to_pylist()]
        assert ids == [one for one in range(20) if one % 2 == int(name[-1])] + more
        entries = [entry_id.decode() for entry_id, _ in redis.client().xrange(name)]
        assert entries == [f"20-{place}" for place in range(4)] + ["21-0"] * len(more)


def poisoned() -> list[dict[bytes, bytes]]:
    """Return entries that cannot be read."""
    rows = pa.RecordBatch.from_pylist([message(900)], MESSAGES)
    wide = pa.nulls(3_000_000)
    columns = {name: wide.cast(MESSAGES.field(name).type) for name in MESSAGES.names}
    return [
        {b"x": b"y"},
        {ARROW: b"no Arrow"},
        {ARROW: packed(rows)[:-30]},
        {ARROW: packed(pa.RecordBatch.from_pydict(columns, MESSAGES))},
        {ARROW: packed(pa.RecordBatch.from_pylist([{"a": 1}]))},
        {JSON: b"{}\n" * 100_001},
    ]


async def test_entries_that_cannot_be_read_are_passed_over_for_good(
    tmp_path: Path, redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    source = redis.address("in")
    streams = Streams(source, MESSAGES, KEYS["messages"])
    given = settings(tmp_path, source=str(source))
    entries = poisoned()
    async with serving(given) as server:
        streams.append(pa.Table.from_pylist([message(1)], MESSAGES))
        for entry in entries:
            redis.client().xadd("in:0", entry)
        streams.append(pa.Table.from_pylist([message(2)], MESSAGES))
        await until(lambda: keys(server) == {"source/1", "source/2"})
        assert server.coordinator.counters.source_unreadable == len(entries)
        assert server.coordinator.counters.source_refused == 0
    assert caplog.text.count(" of in:0 is skipped: it ") == len(entries)
    async with serving(given) as server:
        streams.append(pa.Table.from_pylist([message(3)], MESSAGES))
        await until(lambda: "source/3" in keys(server))
        assert server.coordinator.counters.source_unreadable == 0


async def test_an_entry_that_cannot_be_read_is_noted_though_nothing_comes_behind_it(
    tmp_path: Path, redis: RedisServer
) -> None:
    source = redis.address("in")
    given = settings(tmp_path, source=str(source))
    async with serving(given) as server:
        redis.client().xadd("in:0", {b"x": b"y"})
        await until(lambda: server.coordinator.counters.source_unreadable == 1)
        await until(lambda: server.store.recover().source_offsets.get("in:0", "0-0") != "0-0")


async def test_redis_that_is_gone_is_a_state_that_operators_see(
    tmp_path: Path, redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "_PAUSE_S", 0.05)
    source, target = redis.address("in"), redis.address("out")
    async with serving(settings(tmp_path, source=str(source), sink=str(target))) as server:
        counters = server.coordinator.counters
        await asyncio.to_thread(redis.kill)
        await until(lambda: counters.bridge_failing[Feed.SOURCE] == 1)
        await server.command_loop.execute(
            c.Publish((NewObject(12.1, 55.05, ("tea",), 60_000, b"x", ""),), Principal("p", frozenset()))
        )
        await until(lambda: counters.bridge_failing[Feed.SINK] == 1)
        found = server.readings.read()
        assert found.gauges["bridge_failing.SOURCE"] == found.gauges["bridge_failing.SINK"] == 1
        assert found.counters["bridge_failures.SOURCE"] >= 1
        await asyncio.to_thread(redis.start)
        await until(lambda: not counters.bridge_failing.total())
        await until(lambda: server.store.unsent_count == 0)


class _Broken:
    """A feed of which nothing works, for a reason that nobody has thought of."""

    streams = ("a", "b")

    def begin(self, stream: str) -> str:
        return stream

    def next(self, stream: str, after: str, wait_s: float) -> Iterator[Chunk]:
        raise ZeroDivisionError(f"{stream} {after} {wait_s}")

    def close(self) -> None:
        pass

    def put(self, first: int, last: int, rows: pa.Table) -> None:
        raise ZeroDivisionError(f"{first} {last} {rows}")


async def test_nothing_of_a_feed_ends_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(attempts, "_PAUSE_S", 0.01)
    monkeypatch.setattr(main, "opened_feeds", lambda _: Feeds(_Broken(), _Broken()))
    async with serving(settings(tmp_path, source="x", sink="y")) as server:
        await server.command_loop.execute(
            c.Publish((NewObject(12.1, 55.05, ("tea",), 60_000, b"x", ""),), Principal("p", frozenset()))
        )
        failures = server.coordinator.counters.bridge_failures
        await until(lambda: failures[Feed.SOURCE] > 3 and failures[Feed.SINK] > 1)
        assert server.coordinator.counters.bridge_failing == {Feed.SOURCE: 2, Feed.SINK: 1}
        before = failures.total()
        await until(lambda: failures.total() > before + 2)  # they are tried again and again
    assert "source, stream a failed, retry in 0.01 s: ZeroDivisionError\n" in caplog.text


async def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    server = Server(settings(tmp_path, source=str(tmp_path / "nowhere")))
    with pytest.raises(BridgeError, match=r"source is .*nowhere, must be an existing folder"):
        await server.start()


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="address is redis://nowhere, must be like"):
        settings(tmp_path, sink="redis://nowhere")
    with pytest.raises(ValueError, match="must be another feed"):
        settings(tmp_path, source="feed", sink="feed")


async def test_a_publisher_does_not_get_in_the_way_of_the_source(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    thief = Principal("thief", frozenset({Role.PUBLISHER}))
    async with serving(settings(tmp_path, source=str(folder))) as server:
        alien = NewObject(12.1, 55.05, ("tea",), 60_000, b"alien", "source/1")
        await server.command_loop.execute(c.Publish((alien,), thief))
        write(folder, 1, [message(1), message(2)])
        await until(lambda: len(keys(server)) == 2)
        await until(lambda: len(server.coordinator.matching.objects) == 3)
        found = [(item.owner, item.key) for item in server.coordinator.matching.objects.values()]
        assert sorted(found) == [("", "source/1"), ("", "source/2"), ("thief", "source/1")]
        server.coordinator.check()
