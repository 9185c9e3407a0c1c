"""The id map against a dictionary."""

from __future__ import annotations

import random

import numpy as np
import pytest

from index.contracts import InconsistentIndexError
from index.tables import IdMap
from index.tables.id_map_kernels import find, home_cell
from tests.support.leaves import compiled


def ids(values):
    return np.array(list(values), dtype=np.int64)


def numbers(values):
    return np.array(list(values), dtype=np.int32)


@pytest.mark.parametrize("spread", [40, 2**40, 2**62])
@pytest.mark.parametrize("seed", range(5))
def test_any_mix_of_operations(seed, spread):
    dice = random.Random(seed)
    table = IdMap()
    there = {}
    for step in range(200):
        if dice.random() < 0.55:
            new = {
                dice.randint(-spread, spread): dice.randint(0, 2**31 - 1)
                for _ in range(dice.randint(0, 20))
            }
            new = {key: value for key, value in new.items() if key not in there}
            table.insert(ids(new), numbers(new.values()))
            there.update(new)
        else:
            gone = dice.sample(sorted(there), dice.randint(0, min(len(there), 25)))
            assert table.remove(ids(gone)).tolist() == [there.pop(key) for key in gone]
            assert not any(table.contains(key) for key in gone)
        assert len(table) == len(there)
        assert table.find(ids(there)).tolist() == list(there.values())
        if step % 20 == 0:
            table.check()


def test_a_refused_batch_changes_nothing():
    table = IdMap()
    table.insert(ids(range(10)), numbers(range(10)))
    for refused in ([20, 5], [20, 20]):
        with pytest.raises(KeyError, match="already in"):
            table.insert(ids(refused), numbers(refused))
    for refused in ([3, 20], [3, 3]):
        with pytest.raises(KeyError, match="not in"):
            table.remove(ids(refused))
    table.check()
    assert len(table) == 10
    assert table.find(ids(range(10))).tolist() == list(range(10))
    assert not table.contains(20)


def test_keys_that_collide_survive_removals():
    """Keys of one home cell form a run; taking any of them out must not cut off the others."""
    mask = 15
    same = [key for key in range(2_000) if compiled(home_cell)(key, mask) == 3][:7]
    for gone in same:
        table = IdMap()
        table.insert(ids(same), numbers(range(len(same))))
        assert len(table.keys) == mask + 1
        table.remove(ids([gone]))
        table.check()
        assert [compiled(find)(table.keys, table.values, key) for key in same] == [
            -1 if key == gone else same.index(key) for key in same
        ]


def test_check_notices_damage():
    table = IdMap()
    table.insert(ids([1, 2, 3]), numbers([1, 2, 3]))
    cell = np.flatnonzero(table.keys == 2)[0]
    mask = len(table.keys) - 1
    elsewhere = (cell + 8) & mask
    table.keys[cell] = next(
        key for key in range(100, 1_000) if compiled(home_cell)(key, mask) == elsewhere
    )
    with pytest.raises(InconsistentIndexError):
        table.check()
