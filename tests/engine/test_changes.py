"""Changes in order, against sorting; and what is different behind all of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.change_kernels import net
from engine.contracts import CHANGE_DTYPE, Rows, grouped
from index.tables.order_kernels import order_of

_CHANGES = st.lists(
    st.tuples(st.sampled_from([3, 1 << 48, 7]), st.integers(0, 40), st.integers(0, 1)),
    max_size=90,
    unique=True,
)


def _rows(changes: list[tuple[int, int, int]]) -> Rows:
    rows = np.zeros(len(changes), dtype=CHANGE_DTYPE)
    for row, (handle, object_id, is_drop) in zip(rows, changes, strict=True):
        row["handle"], row["object_id"], row["is_drop"] = handle, object_id, is_drop
    return rows


def _told(rows: Rows) -> list[tuple[int, int, int]]:
    return [(int(one["handle"]), int(one["object_id"]), int(one["is_drop"])) for one in rows]


def _in_order(changes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    return sorted(changes, key=lambda one: (one[0], -one[2], one[1]))


@given(_CHANGES)
@settings(max_examples=200, deadline=None)
def test_changes_are_grouped_and_removals_come_first(changes: list[tuple[int, int, int]]) -> None:
    assert _told(grouped(_rows(changes))) == _in_order(changes)


@given(_CHANGES)
@settings(max_examples=200, deadline=None)
def test_an_object_that_enters_and_leaves_is_omitted(changes: list[tuple[int, int, int]]) -> None:
    pairs = Counter(one[:2] for one in changes)
    kept = [one for one in changes if pairs[one[:2]] == 1]
    assert _told(grouped(_rows(changes), undo=True)) == _in_order(kept)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40))
@settings(max_examples=200, deadline=None)
def test_only_the_difference_at_the_end_is_kept(pairs: list[tuple[int, int]]) -> None:
    handles = np.array([one for one, _ in pairs], dtype=np.int64)
    object_ids = np.array([one for _, one in pairs], dtype=np.int64)
    order = order_of(object_ids, order_of(handles, np.arange(len(pairs))))
    kept = order[: net(handles, object_ids, order)].tolist()
    last = {pair: row for row, pair in enumerate(pairs)}
    odd = [pair for pair, count in Counter(pairs).items() if count % 2]
    assert kept == [last[pair] for pair in sorted(odd, key=lambda pair: pair[::-1])]
