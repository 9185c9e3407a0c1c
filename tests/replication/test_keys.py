"""The contract of keys, in JetStream and in memory."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager

import pytest

from cluster import key_shared_records
from cluster.jetstream import JetStreamOptions, open_log
from cluster.key_shared_records import KeySharedRecords
from cluster.keys import Fence
from cluster.log import LogConflictError, LogError, LogUnavailableError
from cluster.registry import LastSeen
from tests.replication.conftest import log_servers
from tests.replication.memory_keys import MemoryKeys

pytestmark = pytest.mark.processes

OWNER = "slot.5.owner"


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Three servers that replicate."""
    with log_servers(tmp_path_factory.mktemp("log"), 3) as three:
        yield three


@asynccontextmanager
async def connected(servers, stream):
    urls, monitors = [one.url for one in servers], [one.monitor_url for one in servers]
    log = await open_log(JetStreamOptions(urls, monitors, stream))
    try:
        yield log.keys
    finally:
        await log.close()


@pytest.fixture(params=["memory", "jetstream"])
async def keys(request):
    """Keys of which none is set."""
    if request.param == "memory":
        yield MemoryKeys()
        return
    stream = request.node.name.translate(str.maketrans("[]", "--"))[-32:]
    async with connected(request.getfixturevalue("servers"), stream) as one:
        yield one


async def latest_of(records, until):
    """Return the latest records as of a sequence, in order."""
    found = {}
    async for record in records:
        found.pop(record.key, None)
        found[record.key] = record
        if record.sequence == until:
            return list(found.values())
    raise AssertionError("a reader has ended")


async def watched(keys, patterns, until):
    """Return the latest records as of a sequence that a reader gets."""
    async with aclosing(keys.watch(patterns)) as records:
        return await latest_of(records, until)


async def test_a_key_is_set_on_condition_of_its_latest_record(keys):
    first = await keys.put(OWNER, b"a", 0)
    with pytest.raises(LogConflictError):
        await keys.put(OWNER, b"b", 0)
    second = await keys.put(OWNER, b"c", first)
    assert second > first
    with pytest.raises(LogConflictError):
        await keys.put(OWNER, b"d", first)
    [record] = await watched(keys, ["slot.*.owner"], second)
    assert record == (OWNER, b"c", second)


async def test_of_many_that_set_a_key_at_once_one_succeeds(keys):
    results = await asyncio.gather(
        *(keys.put(OWNER, b"%d" % i, 0) for i in range(20)), return_exceptions=True
    )
    assert sorted(isinstance(one, LogConflictError) for one in results) == [False] + [True] * 19
    [won] = [i for i, one in enumerate(results) if isinstance(one, int)]
    [record] = await watched(keys, [OWNER], results[won])
    assert record == (OWNER, b"%d" % won, results[won])


async def test_keys_are_set_together_while_the_fence_stands(keys):
    fence = Fence(OWNER, await keys.put(OWNER, b"a", 0))
    rows = {f"slot.5.device.x.{i}": b"%d" % i for i in range(1_000)}
    await keys.put_all(rows, fence)
    await keys.put_all({"slot.5.device.x.0": b"", "slot.5.device.x.1": b"new"}, fence)
    taken = await keys.put(OWNER, b"b", fence.sequence)
    with pytest.raises(LogConflictError):
        await keys.put_all({"slot.5.device.x.1": b"stale", "slot.5.device.y.1": b"stale"}, fence)
    with pytest.raises(LogConflictError):
        await keys.put_all({"slot.5.device.y.1": b"stale"}, fence)
    found = {one.key: one.value for one in await keys.read(["slot.5.>"], taken) if one.value}
    rows |= {"slot.5.device.x.1": b"new", OWNER: b"b"}
    del rows["slot.5.device.x.0"]
    assert found == rows


async def test_a_stale_fence_of_a_key_that_was_never_set_holds_nobody_up(keys):
    with pytest.raises(LogConflictError):
        await keys.put_all({"slot.5.device.x.1": b"x"}, Fence(OWNER, 7))
    await keys.put_all({"slot.5.device.x.1": b"x"}, Fence(OWNER, 0))


async def test_a_reader_gets_the_latest_records_then_each_further_one(keys):
    first = await keys.put("node.a", b"1", 0)
    second = await keys.put("node.a", b"2", first)
    other = await keys.put("slot.1.owner", b"x", 0)
    await keys.put("slot.1.device.d.1", b"row", 0)
    async with aclosing(keys.watch(["node.*", "slot.*.owner"])) as records:
        found = await latest_of(records, other)
        assert found == [("node.a", b"2", second), ("slot.1.owner", b"x", other)]
        third = await keys.put("node.a", b"3", second)
        fourth = await keys.put("node.a", b"4", third)
        assert await anext(records) == ("node.a", b"3", third)
        assert await anext(records) == ("node.a", b"4", fourth)


async def test_slots_are_read_as_of_their_owners(keys):
    sequences = []
    for slot in range(100):
        sequence = await keys.put(f"slot.{slot}.owner", b"a", 0)
        await keys.put_all(
            {f"slot.{slot}.device.x.{i}": b"x" for i in range(3)}, Fence(f"slot.{slot}.owner", sequence)
        )
        sequences.append(await keys.put(f"slot.{slot}.owner", b"b", sequence))
    found = await keys.read([f"slot.{slot}.>" for slot in range(100)], max(sequences))
    assert len(found) == 400
    found = await keys.read(["slot.7.>"], sequences[7])
    assert {one.key for one in found} == {"slot.7.owner", *(f"slot.7.device.x.{i}" for i in range(3))}


async def test_keys_that_are_set_while_they_are_read_are_not_missed(keys):
    """Their records before the end of the read are gone, and others are behind it."""
    value, names = bytes(20_000), [f"node.{i}" for i in range(400)]
    sequences = [await keys.put(name, value, 0) for name in names]

    async def rewrite():
        while True:
            for i, name in enumerate(names):
                sequences[i] = await keys.put(name, value, sequences[i])

    rewriting = asyncio.create_task(rewrite())
    try:
        for _ in range(20):
            found = await keys.read(["node.*"], max(sequences))
            assert {one.key for one in found} == set(names)
    finally:
        rewriting.cancel()
        await asyncio.wait([rewriting])


async def test_a_key_expires(servers):
    async with connected(servers, "expiring") as keys:
        await keys.put("node.a", b"1", 0, ttl_s=1)
        sequence = await keys.put("node.b", b"1", 0)
        while len(await keys.read(["node.*"], sequence)) > 1:  # noqa: ASYNC110 - time has no event
            await asyncio.sleep(0.1)
        await keys.put("node.a", b"2", 0)


class SlowKeys:
    """Keys of which a reader gets none before the log has deleted the record at which it is to end."""

    def __init__(self, keys):
        self._keys = keys
        self.put = keys.put

    async def read(self, patterns, until):
        while await self._has(until):  # noqa: ASYNC110 - time has no event
            await asyncio.sleep(0.1)
        return await self._keys.read(patterns, until)

    async def _has(self, sequence):
        try:
            await self._keys._stream.time_s(sequence)  # noqa: SLF001 - what the log has
        except LogUnavailableError:
            return True
        except LogError as error:
            return "no message found" not in str(error)
        return True


async def test_a_read_ends_that_takes_longer_than_its_marker_is_kept(servers, monkeypatch):
    monkeypatch.setattr(key_shared_records, "_MARKER_S", 1)
    async with connected(servers, "slow") as keys, asyncio.timeout(60.0):
        records = KeySharedRecords(SlowKeys(keys))
        seen = [LastSeen(f"d{i}", 1_000 + i) for i in range(5)]
        for one in seen:
            await records.add(one)
        assert (await records.devices()).seen == seen


class DeafKeys(MemoryKeys):
    """Keys that refuse the second record, and end a read when there is a third one."""

    def __init__(self):
        super().__init__()
        self.tries = 0
        self.is_marked = asyncio.Event()

    async def put(self, key, value, expected, ttl_s=0):
        self.tries += 1
        if self.tries == 2:
            raise LogUnavailableError("the log does not respond")
        if self.tries == 3:
            self.is_marked.set()
        return await super().put(key, value, expected, ttl_s)

    async def read(self, patterns, until):
        await self.is_marked.wait()
        return await super().read(patterns, until)


async def test_a_read_goes_on_when_its_marker_cannot_be_renewed(monkeypatch):
    monkeypatch.setattr(key_shared_records, "_MARKER_S", 0.02)
    keys = DeafKeys()
    async with asyncio.timeout(60.0):
        assert await KeySharedRecords(keys).leases() == []
    assert keys.tries == 3
