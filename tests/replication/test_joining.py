"""A node that joins: what it copies, what it refuses, and the log that is trimmed meanwhile."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.entries import Entry, SetIdf, Tick
from cluster.key_registry import KeyRegistry
from cluster.key_shared_records import KeySharedRecords
from cluster.log import LogConflictError, LogError
from cluster.ownership import Lease, Node, NodeState
from cluster.registry import StoredSubscription
from server.errors import StoreError
from server.replication import joining
from server.replication.founding import founding_of, joined
from server.replication.joining import CopyError, Joiner
from server.replication.trimmer import Trimmer
from server.store import SqliteStore, check
from server.store.adopting import snapshot_facts
from tests.replication.draws import logs
from tests.replication.local_node import FRAME, LIMITS, LOG_ID, LocalNode
from tests.replication.memory_keys import MemoryKeys
from tests.replication.memory_log import MemoryLog
from tests.replication.test_applying import as_read, many
from tests.replication.test_entries import TABLE
from tests.replication.test_rules import T_MS, posted

pytestmark = pytest.mark.usefixtures("without_fsync")

ENTRIES = 40


# -- the state from a snapshot -------------------------------------------------------------------


@many
@given(logs(), st.data())
def test_a_node_from_a_snapshot_reaches_the_state_of_one_that_applied_all(messages, data):
    middle = data.draw(st.integers(1, len(messages)))
    with tempfile.TemporaryDirectory() as made, ExitStack() as opened:
        folder = Path(made)
        whole, again = (
            opened.enter_context(closing(LocalNode(folder / f"{name}.db"))) for name in ("whole", "again")
        )
        for message in messages[:middle]:
            whole.applier.apply(*as_read(message))
        snapshot = whole.snapshot(folder / "snapshot.db")
        assert check(snapshot, lambda *_: None) == []
        assert snapshot_facts(snapshot) == (LOG_ID, middle)
        later = opened.enter_context(closing(LocalNode(folder / "later.db", snapshot=snapshot)))
        assert later.applier.digest() == whole.applier.digest()
        for node, first in ((whole, middle), (again, 0), (later, middle)):
            for message in messages[first:]:
                node.applier.apply(*as_read(message))
        assert whole.applier.digest() == again.applier.digest() == later.applier.digest()
        for node in (whole, again, later):
            node.check()
            node.write()
        assert whole.stored() == again.stored() == later.stored()
        assert check(folder / "later.db", lambda *_: None) == []


def test_a_store_keeps_its_own_id_and_time_and_its_new_content_after_a_kill(tmp_path):
    with closing(LocalNode(tmp_path / "source.db")) as source:
        source.applier.apply(1, [Entry(T_MS, posted("a", "b"), b"1"), Entry(T_MS, SetIdf(TABLE), b"2")])
        snapshot = source.snapshot(tmp_path / "snapshot.db")
        digest = source.applier.digest()
    with closing(SqliteStore(tmp_path / "node.db", FRAME)) as store:
        store.commit([], T_MS + 5_000)
        own = store.database.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()
        store.adopt(snapshot)
        assert own == store.database.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()
        assert store.recover().time_ms == T_MS + 5_000
        files = {one.name: one.read_bytes() for one in tmp_path.glob("node.db*")}
    for name, content in files.items():  # as a kill leaves them
        (tmp_path / name).write_bytes(content)
    (tmp_path / "node.db.lock").unlink()
    assert check(tmp_path / "node.db", lambda *_: None) == []
    with closing(LocalNode(tmp_path / "node.db")) as node:
        assert node.applier.digest() == digest
        assert node.coordinator.matching.generation == 1


def test_a_snapshot_of_another_area_changes_nothing(tmp_path):
    other = type(FRAME).of(type(FRAME.area)(14.0, 35.0, 15.0, 37.0))
    with closing(SqliteStore(tmp_path / "other.db", other)) as store:
        store.write_snapshot(tmp_path / "snapshot.db")
    with closing(LocalNode(tmp_path / "node.db")) as node:
        node.applier.apply(1, [Entry(T_MS, posted("a"), b"1")])
        node.write()
        before = node.stored()
        with pytest.raises(StoreError, match="has the area"):
            node.adopt(tmp_path / "snapshot.db")
        assert node.stored() == before
        node.applier.apply(2, [Entry(T_MS, posted("b"), b"2")])
        node.write()
    assert check(tmp_path / "node.db", lambda *_: None) == []


def test_a_store_in_memory_has_snapshots_as_well(tmp_path):
    with closing(SqliteStore(":memory:", FRAME)) as store:
        store.commit([], 7)
        store.write_snapshot(tmp_path / "snapshot.db")
    assert check(tmp_path / "snapshot.db", lambda *_: None) == []


# -- where it comes from -------------------------------------------------------------------------


class Cluster:
    """A log, of which a node has the store in a file, and the records of nodes that are there."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.log, self.keys = MemoryLog(), MemoryKeys()
        self.records = KeySharedRecords(self.keys)
        self.calls = []
        self.sources = {}
        """By address: a function that writes a snapshot into a file, or fails."""

    async def fill(self, count=ENTRIES):
        """Append entries, which a node has all in its store."""
        with closing(LocalNode(self.folder / "full.db")) as node:
            for i in range(count):
                await self.log.append([Entry(T_MS + i, posted(""), b"%d" % i)])
                node.applier.apply(i + 1, [Entry(T_MS + i, posted(""), b"%d" % i)])
            self.snapshot = node.snapshot(self.folder / "full.copy")
            self.digest = node.applier.digest()

    async def add(self, address, source, stored=ENTRIES):
        """Add a node that is there."""
        lease = Lease(Node(address, address.encode()), NodeState.READY, stored)
        await KeyRegistry(self.keys).renew(lease, 0)
        self.sources[address] = source

    async def fetch(self, address, incarnation, target):
        assert incarnation == address.encode()
        self.calls.append(address)
        self.sources[address](target)

    def sends(self, target):
        shutil.copy(self.snapshot, target)

    def joiner(self, log_id=LOG_ID):
        return Joiner(self.log, log_id, self.records, self.fetch)

    async def join(self, offset=0, log_id=LOG_ID):
        """Let a node with a new store join; return the offset of its store."""
        with closing(SqliteStore(self.folder / "new.db", FRAME)) as store:
            await self.joiner(log_id).prepare(store, offset, "new:1")
            return store.recover().log.offset


def fails(_target):
    raise CopyError("as if the node had been killed in the middle")


@pytest.fixture
async def cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(joining, "PATIENCE_S", 0.0)
    found = Cluster(tmp_path)
    await found.fill()
    return found


async def test_a_node_whose_store_is_older_than_the_log_copies_one(cluster):
    await cluster.log.trim(30)
    await cluster.add("a:1", cluster.sends)
    assert await cluster.join() == ENTRIES
    with closing(LocalNode(cluster.folder / "new.db")) as node:
        assert node.applier.digest() == cluster.digest


async def test_a_node_to_which_the_log_leads_on_copies_nothing(cluster):
    await cluster.add("a:1", cluster.sends)
    assert await cluster.join() == 0, "the log has its beginning"
    await cluster.log.trim(30)
    await cluster.join(offset=30)
    assert cluster.calls == []


async def test_a_long_log_is_not_applied_if_another_node_sends_its_store(cluster, monkeypatch):
    monkeypatch.setattr(joining, "COPY_MIN", ENTRIES)
    assert await cluster.join() == 0, "nobody is there: the log has its beginning"
    await cluster.add("a:1", fails)
    assert await cluster.join() == 0
    await cluster.add("b:1", cluster.sends)
    assert await cluster.join() == ENTRIES


async def test_the_next_node_is_tried_when_one_ends_or_sends_something_else(cluster, caplog):
    def damages(target):
        cluster.sends(target)
        with closing(sqlite3.connect(target)) as database:
            database.execute("UPDATE objects SET lon = lon + 0.125 WHERE object_id = 3")
            database.commit()

    def cuts(target):
        target.write_bytes(cluster.snapshot.read_bytes()[:-4096])

    def sends_an_old_one(target):
        shutil.copy(cluster.old, target)

    with closing(LocalNode(cluster.folder / "old.db")) as node:
        node.applier.apply(1, [Entry(T_MS, posted(""), b"0")])
        cluster.old = node.snapshot(cluster.folder / "old.copy")
    await cluster.log.trim(30)
    for number, source in enumerate((fails, damages, cuts, sends_an_old_one, cluster.sends)):
        await cluster.add(f"n{number}:1", source, stored=100 - number)
    assert await cluster.join() == ENTRIES
    assert cluster.calls == [f"n{number}:1" for number in range(5)], "the furthest one first"
    for reason in ("in the middle", "does not match its checksum", "damaged", "it ends at offset 1,"):
        assert reason in caplog.text


async def test_a_snapshot_of_another_log_is_refused(cluster, caplog):
    await cluster.log.trim(30)
    await cluster.add("a:1", cluster.sends)
    with pytest.raises(LogError, match="no node of the cluster sends its store"):
        await cluster.join(log_id="another")
    assert "has the objects of another log" in caplog.text
    with closing(SqliteStore(cluster.folder / "new.db", FRAME)) as store:
        assert store.recover().next_object_id == 1


async def test_without_a_node_that_has_it_the_error_names_what_is_needed(cluster):
    await cluster.log.trim(30)
    reason = "log starts at offset 31, store .* ends at 7, .* whose store ends at 30 or later; .* restore"
    with pytest.raises(LogError, match=reason):
        await cluster.join(offset=7)
    await cluster.add("new:1", cluster.sends)  # its own address: what it was before it started
    with pytest.raises(LogError, match=reason):
        await cluster.join(offset=7)
    assert cluster.calls == []


async def test_a_log_that_is_trimmed_during_the_copy_needs_another_one(cluster):
    def trims(target):
        cluster.sends(target)
        if len(cluster.calls) == 1:
            asyncio.get_running_loop().create_task(cluster.log.trim(ENTRIES + 1))
            cluster.snapshot = newer

    await cluster.log.append([Entry(T_MS + ENTRIES, posted(""), b"more")])
    with closing(LocalNode(cluster.folder / "full.db")) as node:
        node.applier.apply(ENTRIES + 1, [Entry(T_MS + ENTRIES, posted(""), b"more")])
        newer = node.snapshot(cluster.folder / "newer.copy")
    await cluster.log.trim(30)
    await cluster.add("a:1", trims)
    assert await cluster.join() == ENTRIES + 1
    assert cluster.calls == ["a:1", "a:1"]


# -- the first entry -----------------------------------------------------------------------------


async def test_the_first_entry_is_read_when_the_log_has_deleted_it():
    log, records = MemoryLog(), KeySharedRecords(MemoryKeys())
    founding = founding_of(FRAME, LIMITS, is_virtual=False)
    log_id = await joined(log, records, founding)
    await log.append([Entry(T_MS, Tick())])
    await log.trim(2)
    assert await joined(log, records, founding) == log_id
    with pytest.raises(LogError, match="virtual_time is True, must be False as in the log"):
        await joined(log, records, founding_of(FRAME, LIMITS, is_virtual=True))
    with pytest.raises(LogError, match="the first entry of the log is lost"):
        await joined(log, KeySharedRecords(MemoryKeys()), founding)


async def test_a_new_log_is_not_mistaken_for_the_one_whose_records_are_there():
    records = KeySharedRecords(MemoryKeys())
    founding = founding_of(FRAME, LIMITS, is_virtual=False)
    first, second = MemoryLog(), MemoryLog()
    former, log_id = await joined(first, records, founding), await joined(second, records, founding)
    assert former != log_id
    await second.trim(1)
    await second.append([Entry(T_MS, Tick())])
    assert await joined(second, records, founding) == log_id


async def test_nodes_have_one_key():
    keys = MemoryKeys()
    found = await asyncio.gather(*(KeySharedRecords(keys).key() for _ in range(3)))
    assert len(set(found)) == 1
    assert len(found[0]) == 32


class RepeatedKeys(MemoryKeys):
    """Keys of which each first response is lost: the repeated request finds the record of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.losses = 3

    async def put(self, key, value, expected, ttl_s=0):
        found = await super().put(key, value, expected, ttl_s)
        if self.losses:
            self.losses -= 1
            raise LogConflictError
        return found


async def test_requests_that_are_repeated_change_no_result():
    keys = RepeatedKeys()
    records = KeySharedRecords(keys)
    assert await records.founding() is None
    assert keys.losses == 0
    keys.losses = 3
    key = await records.key()
    keys.losses = 1
    assert await records.key() == key
    one = StoredSubscription("d", 1, 0, "{}")
    keys.losses = 1
    await records.add(one)
    assert (await records.devices()).subscriptions == [one]


# -- trimming ------------------------------------------------------------------------------------


def lease_of(address, stored):
    return Lease(Node(address, b""), NodeState.READY, stored)


@pytest.mark.parametrize(
    ("stored", "keep_s", "first"),
    [
        ((ENTRIES, 20), 0.0, 21),  # what each node has in its store
        ((ENTRIES, ENTRIES), 0.0, ENTRIES + 1),
        ((ENTRIES, 0), 0.0, 1),  # a node of a version that does not say
        ((ENTRIES, ENTRIES), 3_600.0, 1),  # too young
    ],
)
async def test_the_log_keeps_what_a_node_does_not_have_and_what_is_young(cluster, stored, keep_s, first):
    leases = [lease_of(address, offset) for address, offset in zip("ab", stored, strict=True)]
    await Trimmer(cluster.log, lambda: leases, "b", keep_s).trim()
    assert await cluster.log.first() == 1, "the other node does it"
    for _ in range(2):
        await Trimmer(cluster.log, lambda: leases, "a", keep_s).trim()
        assert await cluster.log.first() == first


async def test_nobody_trims_who_knows_no_node(cluster):
    await Trimmer(cluster.log, list, "a", 0.0).trim()
    assert await cluster.log.first() == 1


@many
@given(logs(), st.data())
def test_a_trimmed_log_and_any_store_beyond_it_lead_to_one_state(messages, data):
    """Stores of all ages: each is brought forward by the log alone, or by a snapshot first."""
    until = data.draw(st.integers(0, len(messages)))
    with tempfile.TemporaryDirectory() as made, ExitStack() as opened:
        folder = Path(made)
        full = opened.enter_context(closing(LocalNode(folder / "full.db")))
        old = opened.enter_context(closing(LocalNode(folder / "old.db")))
        age = data.draw(st.integers(0, len(messages)))
        for message in messages[:age]:
            old.applier.apply(*message)
        for message in messages:
            full.applier.apply(*message)
        old.write()
        if old.applier.offset < until:
            old.adopt(full.snapshot(folder / "copy.db"))
        for message in messages[old.applier.offset :]:
            old.applier.apply(*message)
        assert old.applier.digest() == full.applier.digest()
