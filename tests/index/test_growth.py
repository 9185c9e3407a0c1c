"""Arrays that grow keep what they hold, whatever its type; what is new is zero."""

from __future__ import annotations

import resource
import weakref

import numpy as np
import pytest

from index.tables import growth
from index.tables.growth import longer
from tests.engine import test_exactness

RECORD = np.dtype([("id", np.int64), ("weight", np.float32), ("flag", np.bool_)], align=True)


def filled(dtype, shape):
    found = np.zeros(shape, dtype=dtype)
    found.reshape(-1).view(np.uint8)[:] = np.arange(found.nbytes) % 251
    return found


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.float64, RECORD])
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (0, 3), (5, 3), (1_000,)])
@pytest.mark.parametrize("step", [1, 4])
def test_growth_keeps_old_rows_and_zeroes_new_ones(dtype, shape, step):
    before = filled(dtype, shape)
    after = longer(before, shape[0] + 2, step)
    assert after.dtype == before.dtype
    assert after.shape[1:] == before.shape[1:]
    assert len(after) >= shape[0] + 2
    assert len(after) % step == 0
    assert after[: shape[0]].tobytes() == before.tobytes()
    assert not any(after[shape[0] :].tobytes())


def test_one_that_is_long_enough_is_itself():
    array = filled(RECORD, (6,))
    assert longer(array, 6) is array


def test_a_leading_part_grows_like_a_whole():
    array = filled(np.int32, (10,))
    after = longer(array[:6], 8)
    assert after[:6].tolist() == array[:6].tolist()
    assert not after[6:].any()


def test_large_ones_grow_by_less():
    small = longer(np.zeros(1_000, dtype=np.int64), 1_001)
    large = longer(np.zeros(1 << 20, dtype=np.int64), (1 << 20) + 1)
    assert len(small) == 1_500
    assert len(large) == int((1 << 20) * 1.2)


@pytest.fixture
def reserved(monkeypatch):
    monkeypatch.setattr(growth, "_LARGE_BYTES", 1_000)
    monkeypatch.setattr(growth.Room, "reserved", 1 << 20)


@pytest.mark.usefixtures("reserved")
@pytest.mark.parametrize("dtype", [np.bool_, np.int32, RECORD])
@pytest.mark.parametrize("shape", [(1_000,), (500, 3)])
def test_with_room_reserved_large_ones_grow_where_they_are(dtype, shape):
    array = before = longer(filled(dtype, shape), shape[0] + 1)
    for _ in range(10):
        kept = array.tobytes()
        array = longer(array, len(array) + 1)
        assert array.ctypes.data == before.ctypes.data
        assert array[: len(kept) // array[:1].nbytes].tobytes() == kept
        assert not any(array.tobytes()[len(kept) :])
        array.reshape(-1).view(np.uint8)[:] = 7
    assert before.tobytes() == array[: len(before)].tobytes()


@pytest.mark.usefixtures("reserved")
def test_beyond_the_room_they_move():
    array = longer(filled(np.int64, (10_000,)), 10_001)
    after = longer(array, 1 << 18)
    assert after.ctypes.data != array.ctypes.data
    assert after[: len(array)].tolist() == array.tolist()
    assert not after[len(array) :].any()


@pytest.mark.usefixtures("reserved")
def test_without_address_space_they_move(monkeypatch):
    def refused(*_arguments, **_options):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(growth.Room, "make", staticmethod(refused))
    array = longer(filled(np.int64, (10_000,)), 10_001)
    assert array[:10_000].tolist() == filled(np.int64, (10_000,)).tolist()


@pytest.mark.usefixtures("reserved")
def test_unreferenced_memory_is_freed():
    array = longer(filled(np.int64, (10_000,)), 10_001)
    room = weakref.ref(array.base.base)
    array = longer(array, len(array) + 1)
    assert room() is not None
    del array
    assert room() is None


@pytest.mark.parametrize("overcommit", ["0", "1", "2", None])
@pytest.mark.parametrize("limit", [resource.RLIM_INFINITY, 1 << 34])
def test_room_is_reserved_where_address_space_is_plenty(monkeypatch, tmp_path, overcommit, limit):
    setting = tmp_path / "overcommit_memory"
    if overcommit is not None:
        setting.write_text(f"{overcommit}\n")
    monkeypatch.setattr(growth, "_OVERCOMMIT", setting)
    monkeypatch.setattr(growth.Room, "reserved", 0)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, resource.RLIM_INFINITY))
    growth.reserve()
    is_plenty = overcommit in {"0", "1"} and limit == resource.RLIM_INFINITY
    assert (growth.Room.reserved > 1 << 24) is is_plenty


@pytest.mark.parametrize("seed", range(12))
def test_all_lists_are_exact_while_everything_grows_where_it_is(monkeypatch, seed):
    monkeypatch.setattr(growth, "_LARGE_BYTES", 1)
    monkeypatch.setattr(growth.Room, "reserved", 1 << 20)
    assert test_exactness.run("few", seed)
