"""What the log decides, case by case: the same for a node that reads along and one that reads late."""

from __future__ import annotations

from contextlib import ExitStack, closing

import pytest

from cluster.entries import (
    FIRST_RULES,
    NO_CURSOR,
    RULES,
    SECOND_RULES,
    Advance,
    Caller,
    Cursor,
    Entry,
    Founding,
    Publish,
    Retract,
    SetIdf,
    SetRules,
    SetSink,
    SinkSent,
    TakeIn,
    Tick,
    UseWindows,
    WeightsDone,
)
from cluster.log import LogError, Message
from nearcast.canonical import NewObject, Window
from nearcast.errors import Reason, RefusedError
from safe_region.scoring.idf import IdfTable
from server.replication import applier
from server.replication.outcomes import KEPT_MS, decoded, encoded
from server.store import check
from tests.replication.local_node import LIMITS, LocalNode

pytestmark = pytest.mark.usefixtures("without_fsync")

T_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
SHOP, BAR = Caller("", "shop", ("publisher",)), Caller("", "bar", ("publisher",))
BOSS = Caller("", "boss", ("operator",))


class Both:
    """A node that reads along, and one that reads each message when by its clock all has expired."""

    def __init__(self, along: LocalNode, late: LocalNode) -> None:
        self.nodes = along, late

    def reads(self, *changes, time_ms=T_MS):
        """Append changes as one message; return the replies, which are the same on both."""
        offset = self.nodes[0].applier.offset + 1
        numbers = [b"%d/%d" % (offset, i) for i in range(len(changes))]
        entries = [
            Entry(time_ms, change, number) for change, number in zip(changes, numbers, strict=True)
        ]
        return self.reads_entries(entries)

    def reads_entries(self, entries):
        message = Message(self.nodes[0].applier.offset + 1, entries)
        for node in self.nodes:
            node.applier.apply(*message)
        along, late = self.nodes
        late.pass_time(T_MS + 2 * HOUR_MS)
        assert along.replies == late.replies
        assert along.applier.digest() == late.applier.digest()
        return [along.replies.get(one.request_id, [None])[-1] for one in entries]

    def ids(self):
        """Return the ids of what is alive by the time of the log."""
        along, late = (
            [one.object_id for one in node.coordinator.log_objects.all()] for node in self.nodes
        )
        assert along == late
        return along


@pytest.fixture
def both(tmp_path):
    with ExitStack() as opened:
        along, late = (
            opened.enter_context(closing(LocalNode(tmp_path / f"{name}.db")))
            for name in ("along", "late")
        )
        late.pass_time(T_MS + 2 * HOUR_MS)
        yield Both(along, late)
        for node in (along, late):
            node.check()
            node.write()
        assert along.stored() == late.stored()


def posted(*keys, caller=SHOP, ttl_ms=HOUR_MS, words=("tea",), payload=b""):
    return Publish(caller, tuple(NewObject(14.5, 35.5, words, ttl_ms, payload, key) for key in keys))


def test_what_has_expired_on_its_way_takes_an_id(both):
    assert both.reads(posted("", ttl_ms=100), posted("")) == [[1], [2]]
    assert both.reads(posted(""), time_ms=T_MS + 100) == [[3]]
    assert both.ids() == [2, 3]
    along, late = both.nodes
    assert list(along.coordinator.matching.objects) == [2, 3]
    assert list(late.coordinator.matching.objects) == []


def test_a_key_is_taken_over_until_its_object_has_expired_by_the_log(both):
    assert both.reads(posted("k", ttl_ms=100)) == [[1]]
    assert both.reads(posted("k", ttl_ms=100), time_ms=T_MS + 99) == [[1]], "the same object again"
    assert both.reads(posted("k", words=("ice",)), time_ms=T_MS + 99) == [[2]], "in its place"
    assert both.ids() == [2]
    assert both.reads(posted("k", words=("ice",)), time_ms=T_MS + 99 + HOUR_MS) == [[3]], "a new one"


def test_publishers_have_keys_of_their_own(both):
    assert both.reads(posted("k"), posted("k", caller=BAR)) == [[1], [2]]
    assert both.reads(Retract(BAR, (), ("k",))) == [None]
    assert both.ids() == [1]
    (refused,) = both.reads(Retract(BAR, (1,), ()))
    assert "PERMISSION_DENIED" in refused
    assert both.reads(Retract(BOSS, (), ("k",))) == [None]


def test_what_is_retracted_in_the_message_that_publishes_it_has_its_id(both):
    assert both.reads(posted("k", ""), Retract(SHOP, (), ("k",)), posted("k")) == [[1, 2], None, [3]]
    assert both.ids() == [2, 3]
    along, _ = both.nodes
    along.write()
    rows, *_ = along.stored()
    assert [row[0] for row in rows] == [2, 3]


def test_a_quota_counts_what_is_alive_by_the_log(both):
    count_max = LIMITS.publisher_objects_max
    both.reads(*[posted("", ttl_ms=100) for _ in range(count_max)])
    (refused,) = both.reads(posted(""), time_ms=T_MS + 99)
    assert "TOO_MANY" in refused
    assert both.reads(posted(""), time_ms=T_MS + 100) == [[count_max + 1]], "a refusal takes no id"
    (refused,) = both.reads(posted("", payload=bytes(LIMITS.publisher_bytes_max + 1)), time_ms=T_MS + 100)
    assert "payload bytes" in refused


def taken(before, offset, *numbers, gone=(), **more):
    """Return rows of the source."""
    objects = tuple(
        NewObject(
            **{"lon": 14.5, "lat": 35.5, "keywords": ("tea",), "ttl_ms": HOUR_MS, **more},
            key=f"source/{number}",
        )
        for number in numbers
    )
    return TakeIn("files", before, offset, objects, tuple(f"source/{number}" for number in gone))


def test_rows_of_the_source_count_once_whoever_appends_them(both):
    first, second = taken(NO_CURSOR, "a", 1, 2), taken(Cursor("a", 1), "b", 3)
    assert both.reads(first, second, first, second) == [True, True, False, False]
    assert both.reads(taken(Cursor("b", 2), "c", 4), taken(Cursor("b", 2), "c", 4)) == [True, False]
    assert both.ids() == [1, 2, 3, 4]
    for node in both.nodes:
        assert node.coordinator.source_cursors == {"files": Cursor("c", 3)}


def test_a_cursor_that_comes_back_to_an_offset_is_another_one(both):
    """Within a file, the offset stays. A node that was paused there has nothing to add any more."""
    assert both.reads(taken(NO_CURSOR, "", 1), taken(Cursor("", 1), "", 2)) == [True, True]
    assert both.reads(taken(NO_CURSOR, "", 1), taken(Cursor("", 1), "", 2)) == [False, False]
    assert both.reads(taken(Cursor("", 2), "a", 1, 2, 3)) == [True], "read from the start again"
    assert both.ids() == [1, 2, 3]


def test_rows_of_the_source_are_refused_as_a_whole(both):
    both.reads(taken(NO_CURSOR, "a", 1))
    assert both.reads(taken(NO_CURSOR, "b", 2, gone=(1,))) == [False]
    assert both.ids() == [1]
    assert both.reads(taken(Cursor("a", 1), "b", 2, gone=(1, 77))) == [True]
    assert both.ids() == [2], "a refusal has taken no id"
    assert both.reads(taken(Cursor("b", 2), "c", 3, gone=(3,))) == [True]
    assert both.ids() == [2], "what comes and goes at once was never there"


def test_the_cursor_of_the_source_is_in_the_store_with_its_objects(both, tmp_path):
    assert both.reads(taken(NO_CURSOR, "a file", 1)) == [True]
    along, late = both.nodes
    along.write()
    assert both.reads(taken(Cursor("a file", 1), "b file", 2)) == [True]
    digest = along.applier.digest()
    along.kill()
    assert along.coordinator.source_cursors == {"files": Cursor("a file", 1)}
    assert [one.object_id for one in along.coordinator.log_objects.all()] == [1]
    assert along.applier.digest() != digest
    along.adopt(late.snapshot(tmp_path / "snapshot.db"))
    assert along.coordinator.source_cursors == {"files": Cursor("b file", 2)}
    assert along.applier.digest() == digest


def test_a_store_that_takes_a_snapshot_has_its_cursors_and_rules_and_no_others(tmp_path):
    with ExitStack() as opened:
        one, other = (
            opened.enter_context(closing(LocalNode(tmp_path / f"{name}.db"))) for name in ("one", "other")
        )
        founding = Founding(RULES, (14.0, 35.0, 15.0, 36.0), (), virtual_time=False)
        one.applier.apply(1, [Entry(T_MS, founding, b"log"), Entry(T_MS, taken(NO_CURSOR, "a", 1), b"1")])
        other.adopt(one.snapshot(tmp_path / "first.db"))
        assert other.applier.digest() == one.applier.digest()
        assert other.applier.rules == RULES
        with closing(LocalNode(tmp_path / "third.db")) as third:
            third.applier.apply(2, [Entry(T_MS, posted("a"), b"2")])
            other.adopt(third.snapshot(tmp_path / "second.db"))
            assert other.coordinator.source_cursors == {}
            assert other.applier.rules == third.applier.rules == FIRST_RULES
            assert other.applier.digest() == third.applier.digest()


def waiting(both):
    """Return the changes that wait for the sink, which are the same on both nodes."""
    along, late = both.nodes
    assert along.waiting() == late.waiting()
    assert along.stored() == late.stored()
    return along.waiting()


def test_changes_are_kept_for_the_sink_in_the_order_in_which_the_log_decides_them(both):
    both.reads(posted("before", ttl_ms=100), SetSink(is_on=True), posted("a", "b", ttl_ms=300))
    assert waiting(both) == [(1, "publish", 2), (2, "publish", 3)]
    both.reads(SinkSent(2), posted("a", words=("ice",), ttl_ms=200), Retract(SHOP, (), ("b",)))
    assert waiting(both) == [(3, "retract", 2), (4, "publish", 4), (5, "retract", 3)]
    both.reads(SinkSent(5), posted("", ttl_ms=200), posted("", ttl_ms=150))
    both.reads(SinkSent(7), posted("", "", ttl_ms=0), time_ms=T_MS + 500)
    expiries = [(8, "expire", 1), (9, "expire", 6), (10, "expire", 4), (11, "expire", 5)]
    assert waiting(both) == [*expiries, (12, "publish", 7), (13, "publish", 8)]
    both.reads(Tick(), time_ms=T_MS + 501)
    assert waiting(both)[-2:] == [(14, "expire", 7), (15, "expire", 8)]


def test_a_sink_begins_and_ends_by_entries_and_numbers_never_go_back(both):
    both.reads(posted(""), SinkSent(1))
    assert waiting(both) == []
    both.reads(SetSink(is_on=True), posted(""), SetSink(is_on=True), SinkSent(77))
    assert waiting(both) == []
    both.reads(posted(""), SinkSent(0))
    assert waiting(both) == [(2, "publish", 3)]
    both.reads(SetSink(is_on=False), posted(""), SinkSent(1))
    assert waiting(both) == []
    both.reads(SetSink(is_on=True), SinkSent(2), posted(""))
    assert waiting(both) == [(3, "publish", 5)]


def test_new_objects_are_refused_while_too_many_changes_wait_for_the_sink(both):
    both.reads(SetSink(is_on=True))
    for _ in range(LIMITS.sink_max // 4):
        both.reads(posted("", ""))
        both.reads(*[Retract(SHOP, (one,), ()) for one in both.ids()])
    assert len(waiting(both)) >= LIMITS.sink_max
    for change in (posted(""), taken(NO_CURSOR, "a", 1)):
        (refused,) = both.reads(change)
        assert "TOO_MANY" in refused
        assert "sink" in refused
    both.reads(SinkSent(waiting(both)[0][0]))
    assert both.reads(taken(NO_CURSOR, "a", 1)) == [True], "the cursor was not moved"


def test_what_waits_for_the_sink_is_in_the_store_with_its_objects(both, tmp_path):
    both.reads(SetSink(is_on=True), posted("", ""))
    along, late = both.nodes
    along.write()
    both.reads(SinkSent(1), posted(""))
    digest, changes = along.applier.digest(), late.waiting()
    along.kill()
    assert along.waiting() == [(1, "publish", 1), (2, "publish", 2)]
    assert along.applier.digest() != digest
    along.adopt(late.snapshot(tmp_path / "snapshot.db"))
    assert along.waiting() == changes == [(2, "publish", 2), (3, "publish", 3)]
    assert along.applier.digest() == digest
    both.reads(SinkSent(3), posted(""))
    assert waiting(both) == [(4, "publish", 4)]
    assert check(tmp_path / "along.db", lambda *_: None) == []


def windows_of(both):
    """Return the windows in use by node, as counts, which are the same on both nodes."""
    along, late = (
        {n: one.windows for n, one in of.coordinator.log_windows.claims.items()} for of in both.nodes
    )
    assert along == late
    return {name: [one.count for one in windows] for name, windows in along.items()}


def used(node, *counts, must=False):
    return UseWindows(node, tuple(Window(count=count) for count in counts), must)


def test_the_nodes_together_use_so_many_windows_at_most(both):
    assert LIMITS.windows_max == 3
    assert both.reads(used("a", 1, 2), used("b", 2, 3), used("a", 1)) == [None, None, None]
    assert windows_of(both) == {"a": [1], "b": [2, 3]}
    (refused,) = both.reads(used("a", 1, 4))
    assert "spec.window is 3 different ones are in use, must be one of these, or at most 3" in refused
    assert both.reads(used("a", 1, 2, 3)) == [None], "which are in use"
    assert both.reads(used("a", 3), used("b", 3), used("a", 3, 4, 5)) == [None, None, None], "released"
    assert windows_of(both) == {"a": [3, 4, 5], "b": [3]}


def test_what_a_node_uses_already_is_not_refused(both):
    both.reads(used("a", 1, 2, 3))
    assert both.reads(used("b", 4, 5, must=True)) == [None]
    assert windows_of(both) == {"a": [1, 2, 3], "b": [4, 5]}
    assert both.reads(used("b", 4)) == [None], "no further one"
    (refused,) = both.reads(used("b", 4, 6))
    assert "TOO_MANY" in refused


def test_windows_of_a_node_that_has_ended_are_free_after_three_minutes(both, tmp_path):
    both.reads(used("a", 1, 2), used("b", 3))
    both.reads(used("b", 3), time_ms=T_MS + 179_999)
    (refused,) = both.reads(used("b", 3, 4), time_ms=T_MS + 179_999)
    assert "TOO_MANY" in refused
    assert both.reads(used("b", 3, 4), time_ms=T_MS + 180_000) == [None]
    assert windows_of(both) == {"b": [3, 4]}
    along, late = both.nodes
    digest = along.applier.digest()
    along.write()
    along.kill()
    assert windows_of(both) == {"b": [3, 4]}
    along.adopt(late.snapshot(tmp_path / "snapshot.db"))
    assert along.applier.digest() == digest


def test_a_table_of_weights_is_refused_until_all_nodes_are_done_with_the_last(both, tmp_path):
    first, second = (SetIdf(IdfTable({"tea": weight})) for weight in (1.5, 2.5))
    assert both.reads(SetRules(SECOND_RULES), first) == [None, 1]
    (refused,) = both.reads(second)
    assert "TOO_MANY" in refused
    assert "idf is 1 is coming into force, must be one at a time" in refused
    along, late = both.nodes
    along.write()
    along.kill()
    along.adopt(late.snapshot(tmp_path / "snapshot.db"))
    (refused,) = both.reads(second, WeightsDone(0))[:1]
    assert "TOO_MANY" in refused, "also after a restart"
    both.reads_entries([Entry(T_MS, WeightsDone(1))])
    assert both.reads(second) == [2]
    both.reads_entries([Entry(T_MS, WeightsDone(1))])
    (refused,) = both.reads(first)
    assert "2 is coming into force" in refused, "an entry that comes late"


def test_the_time_of_the_log_never_goes_back(both):
    both.reads(posted("", ttl_ms=100))
    both.reads(Tick(), time_ms=T_MS + 50)
    both.reads(posted("", ttl_ms=100), time_ms=T_MS - HOUR_MS)
    first, second = both.nodes[0].coordinator.log_objects.all()
    assert (first.created_ms, second.created_ms) == (T_MS, T_MS + 50)


def test_a_repeat_gets_the_first_reply_also_after_a_restart(both):
    entry = Entry(T_MS, posted(""), b"the request")
    assert both.reads_entries([entry, entry]) == [[1], [1]]
    for node in both.nodes:
        node.write()
        node.kill()
    assert both.reads_entries([entry]) == [[1]]
    assert both.ids() == [1]
    later = Entry(T_MS + KEPT_MS, posted(""), b"the request")
    assert both.reads_entries([later]) == [[2]], "forgotten, by all together"


def test_of_a_message_in_which_time_passes_a_store_forgets_old_requests_only(both):
    """In virtual time, an entry can advance the time within its message."""
    old, new = (Entry(T_MS + late_ms, posted(""), b"%d" % late_ms) for late_ms in (0, KEPT_MS))
    assert both.reads_entries([old, new]) == [[1], [2]]
    for node in both.nodes:
        node.write()
        node.kill()
    assert both.reads_entries([new, old]) == [[2], [3]]


def test_a_refusal_is_repeated_as_well(both):
    missing = Entry(T_MS, Retract(SHOP, (1,), ()), b"too early")
    (first,) = both.reads_entries([missing])
    both.reads(posted(""))
    assert both.reads_entries([missing]) == [first]
    assert both.ids() == [1]


def test_virtual_time_goes_on_by_an_entry(both):
    assert both.reads(Advance(T_MS + 5), time_ms=0) == [T_MS + 5]
    (refused,) = both.reads(Advance(T_MS), time_ms=0)
    assert "TIME_BACKWARDS" in refused


def test_rules_that_a_node_does_not_know_end_it(tmp_path):
    founding = Founding(RULES + 1, (14.0, 35.0, 15.0, 36.0), (), virtual_time=False)
    with closing(LocalNode(tmp_path / "node.db")) as node:
        with pytest.raises(LogError, match=f"knows those up to {RULES}: use a newer version"):
            node.applier.apply(1, [Entry(0, founding, b"log")])
        assert node.applier.offset == 0


def test_later_rules_are_in_force_from_an_entry_on_also_after_a_restart(tmp_path, monkeypatch):
    monkeypatch.setattr(applier, "RULES", 2)
    with closing(LocalNode(tmp_path / "node.db")) as node:
        node.applier.apply(1, [Entry(T_MS, posted("a"), b"1")])
        assert node.applier.rules == 1
        digest = node.applier.digest()
        node.applier.apply(2, [Entry(T_MS, SetRules(2))])
        assert node.applier.rules == 2
        assert node.applier.digest() != digest
        node.applier.apply(3, [Entry(T_MS, SetRules(1))])
        assert node.applier.rules == 2, "an entry that comes late"
        node.write()
        node.kill()
        assert (node.applier.offset, node.applier.rules) == (3, 2)
        with pytest.raises(LogError, match="the log has the rules 3, this version knows those up to 2"):
            node.applier.apply(4, [Entry(T_MS, SetRules(3))])


def test_a_node_that_is_killed_continues_from_its_store(tmp_path):
    with closing(LocalNode(tmp_path / "node.db")) as node:
        node.applier.apply(1, [Entry(T_MS, posted("a", "b"), b"1")])
        node.write()
        node.pass_time(T_MS + 2 * HOUR_MS)
        node.applier.apply(2, [Entry(T_MS, posted("a", words=("ice",)), b"2")])
        digest = node.applier.digest()
        node.kill()
        assert node.applier.offset == 1, "what was not written comes again"
        node.applier.apply(2, [Entry(T_MS, posted("a", words=("ice",)), b"2")])
        assert node.applier.digest() == digest


@pytest.mark.parametrize(
    "reply",
    [
        [1, 2],
        7,
        None,
        True,
        False,
        RefusedError(Reason.TOO_MANY, "objects", "9", "at most 8", "no more", 0),
    ],
)
def test_replies_are_stored_as_they_were(reply):
    found = decoded(encoded(reply))
    assert repr(found) == repr(reply)
    if isinstance(reply, RefusedError):
        assert (found.field, found.value, found.limit) == (reply.field, reply.value, reply.limit)
