"""Orders by digits, against sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from index.tables.order_kernels import order_of

_KEYS = st.lists(
    st.integers(-5, 5) | st.integers(-(1 << 40), 1 << 40) | st.just((1 << 62) - 1), max_size=60
)


@given(_KEYS, st.randoms())
@settings(max_examples=200, deadline=None)
def test_rows_come_in_the_order_of_their_keys_and_else_as_before(keys: list[int], random) -> None:
    before = list(range(len(keys)))
    random.shuffle(before)
    found = order_of(np.array(keys, dtype=np.int64), np.array(before, dtype=np.int64))
    assert found.tolist() == sorted(before, key=lambda row: keys[row])


def test_keys_may_lie_far_apart() -> None:
    keys = np.array([(1 << 63) - 1, 0, 5, (1 << 63) - 1, (1 << 62)], dtype=np.int64)
    assert order_of(keys, np.arange(5)).tolist() == [1, 2, 4, 0, 3]
