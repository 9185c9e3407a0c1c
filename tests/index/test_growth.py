"""Arrays that grow keep what they hold, whatever its type; what is new is zero."""

from __future__ import annotations

import numpy as np
import pytest

from index.tables.growth import longer

RECORD = np.dtype([("id", np.int64), ("weight", np.float32), ("flag", np.bool_)], align=True)


def filled(dtype, shape):
    found = np.zeros(shape, dtype=dtype)
    found.reshape(-1).view(np.uint8)[:] = np.arange(found.nbytes) % 251
    return found


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.float64, RECORD])
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (0, 3), (5, 3), (1_000,)])
@pytest.mark.parametrize("step", [1, 4])
def test_what_was_there_stays_and_what_is_new_is_zero(dtype, shape, step):
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
