"""Messages of the log: what is read is what was appended, and nothing unknown is passed over."""

from __future__ import annotations

import pytest
from hypothesis import given

from cluster.codec import Assembler, FormatError, encoded, encoded_parts
from cluster.entries import (
    NO_CURSOR,
    Advance,
    Entry,
    Founding,
    SetIdf,
    SetRules,
    SetSink,
    SinkSent,
    TakeIn,
    UseWindows,
    WeightsDone,
)
from cluster.v1 import entries_pb2 as pb
from nearcast.canonical import Window
from safe_region.scoring.idf import IdfTable
from tests.replication.draws import logs

TABLE = IdfTable.of_documents([["tea"], ["tea", "ice"]])
FOUNDING = Founding(
    1, (14.0, 35.0, 15.0, 36.0), (0.1, 1 / 3, -0.0, 2.0, 9.0), True, {"tenant_objects_max": 7}
)


@given(logs())
def test_entries_are_read_as_they_were_appended(messages):
    for message in messages:
        assert Assembler().decoded(encoded(message.entries)) == message.entries


@pytest.mark.parametrize(
    "change",
    [
        FOUNDING,
        Advance(5),
        SetIdf(TABLE),
        SetRules(2),
        SetSink(is_on=True),
        SetSink(is_on=False),
        SinkSent(7),
        WeightsDone(3),
        UseWindows("h1:7433", (Window(60_000), Window(count=3)), must=True),
        UseWindows("h1:7433", (), must=False),
        TakeIn("s", NO_CURSOR, "1", (), ("k",)),
        SetIdf(IdfTable.from_stored(TABLE.as_json().replace('"tea"', '"Tea"'))),
    ],
)
def test_entries_of_other_kinds(change):
    entry = Entry(3, change, b"id")
    assert Assembler().decoded(encoded([entry])) == [entry]


@given(logs())
def test_a_batch_is_read_as_one_message(messages):
    assembler, entries = Assembler(), messages[0].entries
    *parts, last = encoded_parts(encoded(entries), 10)
    assert [assembler.decoded(part) for part in parts] == [None] * len(parts)
    assert assembler.decoded(last) == entries
    assert assembler.decoded(encoded(entries)) == entries


def test_a_batch_with_a_gap_is_refused():
    first, second, *_ = encoded_parts(encoded([Entry(3, FOUNDING, b"id")]), 10)
    with pytest.raises(FormatError, match="not complete"):
        Assembler().decoded(second)
    assembler = Assembler()
    assembler.decoded(first)
    with pytest.raises(FormatError, match="not complete"):
        assembler.decoded(encoded([]))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff", "cannot be read"),
        (pb.Message(format=2).SerializeToString(), "format 2, this version reads 1"),
        (pb.Message(format=1, entries=[pb.Entry(time_ms=1)]).SerializeToString(), "does not know"),
    ],
)
def test_what_this_version_does_not_know_is_refused(data, reason):
    with pytest.raises(FormatError, match=reason):
        Assembler().decoded(data)
