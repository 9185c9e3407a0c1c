"""What goes into an index and comes out of it."""

from __future__ import annotations

import numpy as np

from index.batches import Ranking


def test_rows_of_a_ranking_are_replaced_in_order():
    chance = np.random.default_rng(5)
    for _ in range(50):
        count = int(chance.integers(1, 8))
        rows = [chance.integers(0, 99, chance.integers(0, 4)).tolist() for _ in range(count)]
        is_new = chance.random(count) < 0.5
        new = [
            chance.integers(100, 199, chance.integers(0, 4)).tolist() for _ in range(int(is_new.sum()))
        ]
        fresh = iter(new)
        wanted = [next(fresh) if replaced else row for row, replaced in zip(rows, is_new, strict=True)]
        assert as_rows(ranking_of(rows).replaced(is_new, ranking_of(new))) == wanted
        assert as_rows(ranking_of(rows).part(~is_new)) == [
            row for row, replaced in zip(rows, is_new, strict=True) if not replaced
        ]


def ranking_of(rows):
    offsets = np.cumsum([0, *(len(row) for row in rows)])
    flat = np.array([one for row in rows for one in row], dtype=np.int64)
    return Ranking(offsets, flat, flat / 2.0, flat / 4.0)


def as_rows(ranking):
    assert ranking.length_m.tolist() == (ranking.ids / 2.0).tolist()
    assert ranking.r_m.tolist() == (ranking.ids / 4.0).tolist()
    pairs = zip(ranking.offsets[:-1], ranking.offsets[1:], strict=True)
    return [ranking.ids[begin:end].tolist() for begin, end in pairs]
