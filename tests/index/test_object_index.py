"""The contract of object indexes. An implementation joins by a line in FACTORIES."""

from __future__ import annotations

import numpy as np
import pytest

from index.contracts import InconsistentIndexError
from index.iq_tree import IqTreeObjectIndex
from index.iqf import IqfObjectIndex
from index.naive import NaiveObjectIndex
from tests.index.brute import Dice, ids, interest_batch, object_batch

FACTORIES = {
    "naive": NaiveObjectIndex,
    "iqf": IqfObjectIndex,
    "iq-tree": IqTreeObjectIndex,
    "iqf, all keywords frequent": lambda: IqfObjectIndex(100.0),
}


@pytest.fixture(params=FACTORIES)
def index(request):
    return FACTORIES[request.param]()


def ask(index, questions):
    """Questions are (interest, x, y, count, bound); answers lists of (length, id)."""
    found = index.best(
        interest_batch([one[0] for one in questions]),
        np.array([one[1] for one in questions], dtype=np.float64),
        np.array([one[2] for one in questions], dtype=np.float64),
        np.array([one[3] for one in questions], dtype=np.int64),
        np.array([one[4] for one in questions], dtype=np.float64),
    )
    rows = [slice(found.offsets[i], found.offsets[i + 1]) for i in range(len(questions))]
    for row, (interest, x_m, y_m, _, _) in zip(rows, questions, strict=True):
        del x_m, y_m
        assert (found.r_m[row] <= found.length_m[row]).all()
        assert (found.r_m[row] <= interest.weight_m).all()
    return [list(zip(found.length_m[row].tolist(), found.ids[row].tolist(), strict=True)) for row in rows]


def expected(objects, questions):
    answers = []
    for interest, x_m, y_m, count, bound in questions:
        lengths = [(interest.length(x_m, y_m, one), one.object_id) for one in objects.values()]
        found = sorted(pair for pair in lengths if pair[0] is not None and pair[0] <= bound)
        answers.append(found[:count])
    return answers


def questions(dice, count):
    return [
        (
            dice.interest(),
            dice.coordinate(),
            dice.coordinate(),
            dice.random.choice((0, 1, 3, 10, 1_000)),
            dice.random.choice((float("inf"), float("inf"), 0.0, 5.0, 20.0)),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_any_mix_of_operations(index, seed):
    dice = Dice(seed)
    there = {}
    next_id = 1
    ranked = 0
    for step in range(60):
        kind = dice.random.choice(("insert", "insert", "remove", "ask", "ask"))
        if kind == "insert":
            new = [dice.object(next_id + i) for i in range(dice.random.choice((0, 1, 1, 7, 30)))]
            next_id += len(new)
            index.insert(object_batch(new))
            there.update({one.object_id: one for one in new})
        elif kind == "remove":
            some = dice.random.sample(sorted(there), min(len(there), dice.random.randint(0, 9)))
            index.remove(ids(some))
            for key in some:
                del there[key]
            asked = [(one[0], one[1], one[2], 1_000, float("inf")) for one in questions(dice, 5)]
            for row in ask(index, asked):
                assert not {key for _, key in row} & set(some)
        else:
            asked = questions(dice, dice.random.choice((0, 1, 6)))
            found = ask(index, asked)
            assert found == expected(there, asked)
            ranked += sum(map(len, found))
        assert len(index) == len(there)
        if step % 7 == 0:
            index.check()
    assert ranked > 0, "a run without an answer proves nothing"


def test_nothing_there(index):
    assert ask(index, questions(Dice(1), 4)) == [[], [], [], []]


def test_what_is_refused_changes_nothing(index):
    dice = Dice(2)
    there = {key: dice.object(key) for key in range(10)}
    index.insert(object_batch(list(there.values())))
    with pytest.raises(KeyError, match="id 3"):
        index.insert(object_batch([dice.object(100), dice.object(3)]))
    with pytest.raises(KeyError, match="id 100"):
        index.insert(object_batch([dice.object(100), dice.object(100)]))
    with pytest.raises(KeyError, match="id 99"):
        index.remove(ids([1, 99]))
    with pytest.raises(KeyError, match="id 1"):
        index.remove(ids([1, 1]))
    index.check()
    asked = questions(dice, 20)
    assert ask(index, asked) == expected(there, asked)


def test_growth_and_shrinkage(index):
    dice = Dice(3)
    there = {key: dice.object(key) for key in range(3_000)}
    index.insert(object_batch(list(there.values())))
    gone = dice.random.sample(sorted(there), 2_900)
    for start in range(0, len(gone), 290):
        index.remove(ids(gone[start : start + 290]))
    for key in gone:
        del there[key]
    index.check()
    asked = questions(dice, 30)
    assert ask(index, asked) == expected(there, asked)


def test_check_notices_damage():
    index = NaiveObjectIndex()
    dice = Dice(4)
    index.insert(object_batch([dice.object(key) for key in range(5)]))
    index.check()
    rows = index._table.rows
    longest = int(rows["keyword_count"].argmax())
    index._table.pool[int(rows[longest]["keyword_start"])] = 99
    with pytest.raises(InconsistentIndexError):
        index.check()
