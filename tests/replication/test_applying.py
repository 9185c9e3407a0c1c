"""Nodes that apply one log reach one state, whenever they read it and whatever their clocks show."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.codec import Assembler, encoded
from cluster.entries import NO_CURSOR, Caller, Cursor, Entry, Publish, Retract, TakeIn
from cluster.log import Message
from nearcast.canonical import Boolean, Clause, NewObject, TopK, Window
from nearcast.errors import RefusedError
from safe_region import oracle
from safe_region.earth.shapes import Circle
from server.core.evaluation_batch import EvaluationBatch, Place
from server.model import DropReason
from server.replication.outcomes import KEPT_MS
from server.store import check
from server.store.mutations import SetLogPosition
from tests.replication.draws import START_MS, logs
from tests.replication.local_node import FRAME, LocalNode
from tests.replication.model import Model
from tests.support.amounts import examples

pytestmark = pytest.mark.usefixtures("without_fsync")

TOP_K = (TopK(("ice", "tea"), 5, 0.5), TopK(("music",), 3, 0.9))
COUNTED = TopK(("ice", "tea"), 3, 0.5, window=Window(count=4))
"""Has a subscription at each node, unlike the others."""
WINDOWED = (COUNTED, TopK(("tea",), 2, 0.7, window=Window(count=2)))
RANGE = Boolean((Clause(("tea",)), Clause(("ice",), ("music",))), Circle(20_000.0), is_moving=True)
PLACES = ((14.5, 35.5), (14.25, 35.75), (14.875, 35.125))
MINUTE_MS = 60_000

many = settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def as_read(message: Message) -> Message:
    """Return a message as a node reads it."""
    return Message(message.offset, Assembler().decoded(encoded(message.entries)))


def audit(node: LocalNode, model: Model) -> None:
    """Compare results with those of the oracle, at the time of the node."""
    objects, wanted = model.oracle_objects(), oracle.OracleCircle(20_000.0)
    clauses = tuple(oracle.OracleClause(*map(frozenset, one)) for one in RANGE.clauses)
    for lon, lat in PLACES:
        point = FRAME.project(lon, lat)
        for spec in (*TOP_K, *WINDOWED):
            window = oracle.OracleWindow(None, spec.window.count or None, len(model.objects))
            words = frozenset(spec.keywords)
            asked = oracle.OracleSubscription(words, spec.k, spec.alpha, "jaccard", window=window)
            best = oracle.top_k(asked, *point, FRAME.maxdist_m, objects, node.now_ms)
            found = node.search(spec, lon, lat)
            assert [(length_m, item.object_id) for item, length_m in found] == [
                tuple(one) for one in best
            ]
        matches = oracle.matching(oracle.OracleRange(clauses, wanted), *point, objects, node.now_ms)
        found = node.search(RANGE, lon, lat)
        assert {item.object_id for item, _ in found} == {one.object_id for one in matches}


def in_words(reply):
    return reply.reason if isinstance(reply, RefusedError) else reply


WRITES = (
    LocalNode.begin_write,
    LocalNode.begin_write,
    LocalNode.end_write,
    LocalNode.fail_to_write,
    LocalNode.kill,
    lambda _node: None,
)


def test_a_key_that_another_version_of_python_accepts_is_retracted(tmp_path):
    """The node that appends verifies keys; the next version of Unicode has more printable characters."""
    caller, key = Caller("", "shop", ("publisher",)), "shop-\ue000"
    assert not key.isprintable()
    entries = [
        Entry(START_MS, Publish(caller, (NewObject(14.5, 35.5, ("tea",), MINUTE_MS, key=key),)), b"1"),
        Entry(START_MS, Retract(caller, (), (key,)), b"2"),
    ]
    with closing(LocalNode(tmp_path / "node.db")) as node:
        node.applier.apply(1, as_read(Message(1, entries)).entries)
        assert not list(node.coordinator.log_objects.all())


@many
@given(logs(), st.data())
def test_nodes_that_read_at_different_times_reach_one_state(messages, data):
    """One node reads along; one is ahead; one is killed, or fails to write; one reads all of it later."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        along, ahead, killed, late = (
            opened.enter_context(closing(LocalNode(Path(folder) / f"{name}.db", (COUNTED,))))
            for name in ("along", "ahead", "killed", "late")
        )
        model = Model()
        for message in messages:
            model.apply(message)
            along.applier.apply(*as_read(message))
            ahead.applier.apply(*as_read(message))
            ahead.pass_time(model.log_ms + data.draw(st.integers(0, 5)) * MINUTE_MS)
            if data.draw(st.booleans()):
                ahead.write()
            killed.pass_time(model.log_ms + data.draw(st.sampled_from((0, 0, 500, 90_000))))
            data.draw(st.sampled_from(WRITES))(killed)
            for one in messages[killed.applier.offset : message.offset]:
                killed.applier.apply(*as_read(one))
        late.pass_time(START_MS + 60 * MINUTE_MS)  # by its clock, nearly everything has expired
        for message in messages:
            late.applier.apply(*as_read(message))

        nodes = (along, ahead, killed, late)
        assert len({node.applier.digest() for node in nodes}) == 1
        for node in nodes:
            node.check()
            objects = node.coordinator.log_objects.all()
            assert [one.object_id for one in objects] == [one.object_id for one in model.alive()]
            assert node.waiting() == model.waiting
            assert node.coordinator.sink.waiting_count == len(model.waiting)
            claims = node.coordinator.log_windows.claims.items()
            assert {name: (one.time_ms, frozenset(one.windows)) for name, one in claims} == model.windows
        assert along.stored() == ahead.stored() == killed.stored() == late.stored()
        assert along.replies == ahead.replies == late.replies
        now_ms = max(node.now_ms for node in nodes)
        audit(along, model)
        for node in nodes:
            node.pass_time(now_ms)
            audit(node, model)


@many
@given(logs())
def test_every_reply_is_that_of_the_definition(messages):
    with tempfile.TemporaryDirectory() as folder, closing(LocalNode(Path(folder) / "node.db")) as node:
        model, found = Model(), []
        node.applier._on_reply = lambda request_id, reply: found.append((request_id, in_words(reply)))  # noqa: SLF001
        for message in messages:
            model.apply(message)
            node.applier.apply(*message)
        assert found == model.seen
        assert node.waiting() == model.waiting
        assert check(Path(folder) / "node.db", lambda *_: None) == []


@many
@given(logs(), st.data())
def test_a_message_may_be_applied_in_parts(messages, data):
    """Between the parts nothing is written: a store is at the end of a message, never within it."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        whole, parts = (
            opened.enter_context(closing(LocalNode(Path(folder) / f"{name}.db", (COUNTED,))))
            for name in ("whole", "parts")
        )
        for message in messages:
            whole.applier.apply(*message)
            middle = data.draw(st.integers(0, len(message.entries) - 1))
            first, rest = message.entries[:middle], message.entries[middle:]
            if first:
                parts.applier.apply(message.offset, first, is_last=False)
                assert parts.applier.take_unwritten() == []
            parts.applier.apply(message.offset, rest, middle)
            position = parts.applier.take_unwritten()[-1]
            parts.applier.put_back_unwritten()
            assert isinstance(position, SetLogPosition)
            assert position.offset == message.offset
        assert whole.applier.digest() == parts.applier.digest()


def test_an_entry_is_one_change_of_a_window_also_if_its_last_object_has_expired(tmp_path):
    """Else a device would for a moment have results that are exact at no entry."""
    items = [NewObject(14.5, 35.5, ("ice",), 1_000 + 60_000 * (i < 4), b"", "", None) for i in range(5)]
    first, *others = [
        Message(offset, (Entry(START_MS, Publish(Caller("", "", ("publisher",)), tuple(some)), id_),))
        for offset, some, id_ in ((1, items[:3], b"1"), (2, items[3:], b"2"))
    ]
    with closing(LocalNode(tmp_path / "node.db")) as node:
        matching, routed = node.coordinator.matching, []
        handle = matching.subscribe(TopK(("ice",), 3, 0.5, window=Window(count=3)))
        node.applier.apply(*first)
        batch = EvaluationBatch()
        batch.place(handle, Place(14.5, 35.5))
        matching.evaluate(batch)
        node.pass_time(START_MS + 2_000)  # by its clock, the last object comes too late
        node.coordinator._route = routed.append  # noqa: SLF001
        for message in others:
            node.applier.apply(*message)
        [[delta]] = [deltas for deltas in routed if deltas]
        assert [item.object_id for item, _ in delta.add] == [4]
        assert set(delta.drop) == {1, 2}, "of the last three ids, one is of the object that has expired"


def test_rows_of_the_source_are_one_change_of_a_result(tmp_path):
    first, second = ("a", "b"), ("c", "d")

    def taken(offset, before, keys, gone):
        new = tuple(NewObject(14.5, 35.5, ("ice",), MINUTE_MS, b"", key, None) for key in keys)
        change = TakeIn("feed", before, str(offset), new, gone)
        return Message(offset, (Entry(START_MS, change, b"%d" % offset),))

    with closing(LocalNode(tmp_path / "node.db")) as node:
        matching, routed = node.coordinator.matching, []
        handle = matching.subscribe(TopK(("ice",), 3, 0.5))
        node.applier.apply(*taken(1, NO_CURSOR, first, ()))
        batch = EvaluationBatch()
        batch.place(handle, Place(14.5, 35.5))
        matching.evaluate(batch)
        node.coordinator._route = routed.append  # noqa: SLF001
        node.applier.apply(*taken(2, Cursor("1", 1), second, ("a",)))
        [[delta]] = [deltas for deltas in routed if deltas]
        assert [item.object_id for item, _ in delta.add] == [3, 4]
        assert delta.drop == {1: DropReason.RETRACTED}


def test_a_store_that_is_not_written_for_long_lacks_what_is_alive_and_no_more(tmp_path):
    """Objects that have come and gone, and outcomes that are forgotten, do not wait for the store."""
    shop = Caller("", "shop", ("publisher",))
    item = NewObject(14.5, 35.5, ("tea",), 1_000, key="k")
    with ExitStack() as opened:
        late, along = (
            opened.enter_context(closing(LocalNode(tmp_path / f"{name}.db")))
            for name in ("late", "along")
        )
        unwritten_max = 0
        for offset in range(1, 1_001):
            changes = Publish(shop, (item,)), Retract(shop, (offset - 1,), ())
            time_ms = START_MS + 1_000 * offset
            entries = [Entry(time_ms, one, b"%d/%d" % (offset, i)) for i, one in enumerate(changes)]
            for node in (late, along):
                node.applier.apply(offset, entries)
            along.write()
            unwritten_max = max(unwritten_max, len(late.coordinator.unwritten))
        assert unwritten_max <= 1 + len(changes) * KEPT_MS // 1_000
        late.write()
        assert late.stored() == along.stored()
