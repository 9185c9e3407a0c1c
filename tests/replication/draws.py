"""Random entries of a log, as nodes append them: few publishers, few keys, short lives, repeats."""

from __future__ import annotations

from hypothesis import strategies as st

from cluster.entries import (
    NO_CURSOR,
    RULES,
    Caller,
    Cursor,
    Entry,
    Publish,
    Retract,
    SetRules,
    SetSink,
    SinkSent,
    TakeIn,
    Tick,
    UseWindows,
)
from cluster.log import Message
from nearcast.canonical import NewObject, Window
from safe_region.earth.shapes import Bounds, Polygon

START_MS = 1_700_000_000_000
_WORDS = ("ice", "music", "tea")
_KEYS = ("", "", "k1", "k2", "k3")
_TTLS_MS = (100, 700, 3_000, 60_000, 3_600_000)
_STEPS_MS = (-400, 0, 0, 1, 300, 900, 5_000, 70_000)
_LATE_MS = (0, 0, 0, 0, 59_999, 60_000, 60_001)
_CALLERS = (
    Caller("", "shop", ("publisher",)),
    Caller("", "bar", ("publisher",)),
    Caller("", "boss", ("operator", "publisher")),
    Caller("", "", ("device", "gateway", "operator", "publisher")),
)
_COORDINATES = st.integers(0, 8).map(lambda number: number / 16 + 0.25)


@st.composite
def objects(draw):
    lon, lat = 14.0 + draw(_COORDINATES), 35.0 + draw(_COORDINATES)
    area = draw(
        st.sampled_from(
            (
                None,
                None,
                Bounds(lon - 0.125, lat - 0.125, lon + 0.125, lat + 0.125),
                Polygon(((lon - 0.125, lat - 0.125), (lon + 0.125, lat), (lon, lat + 0.125))),
            )
        )
    )
    return NewObject(
        lon,
        lat,
        tuple(sorted(draw(st.sets(st.sampled_from(_WORDS), min_size=1)))),
        draw(st.sampled_from(_TTLS_MS)),
        bytes(draw(st.sampled_from((0, 0, 3, 25)))),
        draw(st.sampled_from(_KEYS)),
        area,
    )


def _different_keys(items):
    keys = [item.key for item in items if item.key]
    return len(keys) == len(set(keys))


publications = st.builds(
    Publish,
    st.sampled_from(_CALLERS),
    st.lists(objects(), min_size=1, max_size=4).filter(_different_keys).map(tuple),
)
retractions = st.builds(
    Retract,
    st.sampled_from(_CALLERS),
    st.lists(st.integers(1, 20), max_size=2).map(tuple),
    st.lists(st.sampled_from(_KEYS[2:]), max_size=2, unique=True).map(tuple),
).filter(lambda one: one.ids or one.keys)
_NUMBERS = st.lists(st.integers(1, 6), max_size=3)
source_objects = st.builds(
    lambda item, number: item._replace(key=f"source/{number}"), objects(), st.integers(1, 6)
)
cursors = st.just(NO_CURSOR) | st.builds(Cursor, st.sampled_from(("a", "b")), st.integers(1, 3))
intakes = st.builds(
    TakeIn,
    st.sampled_from(("files", "in:0")),
    cursors,
    st.sampled_from(("a", "b")),
    st.lists(source_objects, max_size=4).map(tuple),
    _NUMBERS.map(lambda numbers: tuple(f"source/{number}" for number in numbers)),
)
"""Rows of the source, as nodes append them that know the cursor, or do not."""
of_sink = st.builds(SetSink, st.sampled_from((True, True, False))) | st.builds(
    SinkSent, st.integers(0, 60)
)
windows = st.builds(Window, st.sampled_from((60_000, 90_000))) | st.builds(
    Window, st.just(0), st.integers(1, 3)
)
of_windows = st.builds(
    UseWindows,
    st.sampled_from(("a:1", "b:1", "c:1")),
    st.lists(windows, max_size=3, unique=True).map(tuple),
    st.booleans(),
)
changes = st.one_of(
    publications, publications, publications, retractions, intakes, of_sink, of_windows, st.just(Tick())
)


@st.composite
def logs(draw):
    """Draw the messages of a log. Times of entries go back and forth, and some requests come again."""
    now_ms, messages, sent = START_MS, [], []
    for offset in range(1, draw(st.integers(2, 25)) + 1):
        entries = []
        for _ in range(draw(st.integers(1, 3))):
            now_ms += draw(st.sampled_from(_STEPS_MS))
            sent_ms = now_ms - draw(st.sampled_from(_LATE_MS))
            if sent and draw(st.integers(0, 7)) == 0:
                entry = draw(st.sampled_from(sent))
                entries.append(Entry(sent_ms, entry.change, entry.request_id))
            else:
                change = draw(changes)
                number = b"" if isinstance(change, Tick) else b"request %d" % len(sent)
                entries.append(Entry(sent_ms, change, number))
                if number:
                    sent.append(entries[-1])
        messages.append(Message(offset, entries))
    if draw(st.booleans()):
        messages[0].entries.insert(0, Entry(START_MS, SetRules(RULES)))
    return messages
