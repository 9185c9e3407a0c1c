"""Feeds in Redis: addresses, entries, streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from feeds.redis import AddressError, RedisAddress, entries
from feeds.redis.address import BEGIN, Span, is_redis
from feeds.redis.entries import ARROW, JSON, packed, rows_of
from feeds.redis.streams import Streams, TrimmedError, connected
from feeds.schemas import KEYS, MESSAGES
from tests.streaming.feed import RandomFeed
from tests.support.redis_server import RedisServer


def test_an_address_is_read_and_written() -> None:
    text = "redis://127.0.0.1:6379/2/messages?streams=4"
    address = RedisAddress.parse(text)
    assert address == RedisAddress("redis://127.0.0.1:6379/2", "messages", 4)
    assert str(address) == text
    assert address.names == ("messages:0", "messages:1", "messages:2", "messages:3")
    assert RedisAddress.parse("redis://host/0/one").streams == 1
    span = Span(address.server, "messages:1", "0-0", "17-3")
    assert Span.parse(str(span)) == span
    assert is_redis(text)
    assert not is_redis("/folder/redis")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("redis://127.0.0.1/messages", "must be like redis://host:port/database/feed"),
        ("redis:///0/messages", "must be like"),
        ("redis://host/0/mess ages", "must be like"),
        ("redis://host/x/messages", "must be like"),
        ("redis://host/0/messages?stream=2", "must be like"),
        ("redis://host/0/messages?streams=0", "streams is 0, must be 1 to 1024"),
        ("redis://me:secret@host/0/messages", "NEARCAST_REDIS_PASSWORD"),
    ],
)
def test_an_address_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(AddressError, match=message.replace("?", r"\?")) as found:
        RedisAddress.parse(text)
    assert "secret" not in str(found.value)


def test_an_unreadable_entry_is_an_empty_row() -> None:
    row = {"action": "retract", "object_id": 7, "time_ms": 5}
    lines = [json.dumps(row).encode(), b"{", b"[1]", b'{"object_id": "seven"}', b'{"payload": 5}']
    found = rows_of({JSON: b"\n".join(lines)}, MESSAGES).to_pylist()
    assert [one["object_id"] for one in found] == [7, None, None, None, None]
    for entry in ({}, {ARROW: b"no arrow"}, {ARROW: packed(pa.record_batch({"object_id": [1]}))}):
        assert rows_of(entry, MESSAGES).to_pylist() == [dict.fromkeys(MESSAGES.names)]


def _rows(streams: Streams) -> list[dict[str, Any]]:
    found = []
    for name in streams.address.names:
        upto = streams.upto(BEGIN, name, None)
        for rows in streams.read(Span(streams.address.server, name, BEGIN, upto)):
            found += rows.to_pylist()
    return found


def test_rows_of_an_object_stay_in_order_and_survive_the_servers_death(redis: RedisServer) -> None:
    feed = RandomFeed(3)
    streams = Streams(redis.address("messages", 3), MESSAGES, KEYS["messages"])
    given: list[dict[str, Any]] = []
    for _ in range(3):
        table = pa.Table.from_pylist(feed.messages(40), MESSAGES)
        streams.append(table)
        given += table.to_pylist()
        redis.kill()
        redis.start()
    found = _rows(streams)
    assert len(found) == len(given)
    for one in {row["object_id"] for row in given}:
        assert [row for row in found if row["object_id"] == one] == [
            row for row in given if row["object_id"] == one
        ]
    streams.close()


def test_a_batch_is_so_many_entries_and_an_entry_is_put_once(redis: RedisServer) -> None:
    streams = Streams(redis.address("messages"), MESSAGES, KEYS["messages"])
    rows = pa.RecordBatch.from_pylist(RandomFeed(3).messages(3), MESSAGES)
    for number in range(5):
        for _ in range(2):
            streams.put("messages:0", f"7-{number}", rows)
    streams.put("messages:0", "7-2", rows)
    assert streams.upto(BEGIN, "messages:0", 2) == "7-1"
    assert streams.upto("7-1", "messages:0", 2) == "7-3"
    assert streams.upto("7-3", "messages:0", 2) == "7-4"
    assert streams.upto("7-4", "messages:0", 2) == "7-4"
    assert streams.upto(BEGIN, "messages:1", None) == BEGIN
    assert len(_rows(streams)) == 5 * len(rows)
    assert streams.first(4).num_rows == 4
    streams.close()


def test_a_range_of_which_entries_were_trimmed_is_not_read(redis: RedisServer) -> None:
    streams, client = Streams(redis.address("messages"), MESSAGES, KEYS["messages"]), redis.client()
    rows = pa.RecordBatch.from_pylist([{"object_id": 1}], MESSAGES)

    def read(after: str, upto: str) -> Iterator[pa.RecordBatch]:
        return streams.read(Span(streams.address.server, "messages:0", after, upto))

    for number in range(150):
        streams.put("messages:0", f"7-{number}", rows)
    client.xtrim("messages:0", minid="7-2", approximate=False)
    assert len(list(read("7-2", "7-140"))) == 138
    client.xtrim("messages:0", minid="7-3", approximate=False)
    with pytest.raises(TrimmedError, match="messages:0 lacks the entry 7-2, "):
        list(read("7-2", "7-140"))
    assert len(list(read(BEGIN, "7-140"))) == 138, "a new job begins with what there is"
    started = read(BEGIN, "7-149")
    next(started)
    client.xtrim("messages:0", minid="7-148", approximate=False)
    with pytest.raises(TrimmedError, match="lacks the entry 7-67, "):
        list(started)
    with pytest.raises(TrimmedError, match="lacks the entry 7-140, "):
        list(read(BEGIN, "7-140"))
    assert streams.first(10).num_rows == 2
    streams.close()


def test_the_password_is_taken_from_the_environment(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connected(redis.address("any").server)
    client.config_set("requirepass", "secret")
    monkeypatch.setenv("NEARCAST_REDIS_PASSWORD", "secret")
    assert connected(redis.address("any").server).ping()


def test_entries_are_small_enough_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "BYTES_MAX", 10_000)
    sizes = [100] * 60 + [3_000] * 7 + [20_000] + [0] * 5
    rows = [{"object_id": i, "payload": bytes(size)} for i, size in enumerate(sizes)]
    table = pa.Table.from_pylist(rows, MESSAGES)
    found = list(entries.batches_of(pa.concat_tables([table, table])))
    assert [row for batch in found for row in batch.to_pylist()] == 2 * table.to_pylist()
    assert all(batch.nbytes <= 10_000 or batch.num_rows == 1 for batch in found)
    assert len(found) < 2 * len(sizes) / 2
    data = [len(entries.packed(batch)) for batch in found]
    assert max(data) < 25_000, "what was cut off is not written"


class FakeRedis:
    """Entries of one stream, and how many were asked for each time."""

    def __init__(self, sizes: list[int]) -> None:
        self._entries = [(f"{i}-0".encode(), {ARROW: bytes(size)}) for i, size in enumerate(sizes, 1)]
        self.counts: list[int] = []

    def xread(self, streams: dict[str, str], *, count: int, block: int) -> list[Any]:
        assert block == 1
        ((name, after),) = streams.items()
        self.counts.append(count)
        start = int(after.partition("-")[0])
        return [(name.encode(), self._entries[start : start + count])] if self._entries[start:] else []


def test_large_entries_are_read_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feeds.redis.streams._BYTES_AT_ONCE", 10_000)
    address = RedisAddress.parse("redis://localhost:6379/0/messages?streams=1")
    streams, after = Streams(address, MESSAGES, KEYS["messages"]), BEGIN
    fake = FakeRedis([10] * 200 + [3_000] * 70 + [20_000] * 3 + [10] * 4)
    monkeypatch.setattr(streams, "_redis", fake)
    ids = []
    while found := [entry_id for entry_id, _ in streams.wait("messages:0", after, 0.001)]:
        ids += found
        after = found[-1]
    assert ids == [f"{i}-0" for i in range(1, 278)]
    assert fake.counts[:8] == [1, 2, 4, 8, 16, 32, 64, 64]
    assert fake.counts[8:11] == [64, 3, 3]
    assert 1 in fake.counts[11:]
    assert fake.counts[-1] > 1
