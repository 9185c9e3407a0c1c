"""Values in their plain form: the same again, with what they share; and forms that are none."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from engine.options import CostModel, StationaryPolicy
from index.catalogue import OBJECT_INDEXES
from index.entry import Entry
from index.square import Square
from streaming.partition.window import WindowSize
from streaming.tasks.plain import PlainError, decoded, encoded


def again(value: object) -> Any:
    """Return a value from its form, as text."""
    kept: list[bytearray] = []

    def put(data: memoryview) -> int:
        kept.append(bytearray(data))
        return len(kept) - 1

    form = json.loads(json.dumps(encoded(value, put)))
    return decoded(form, lambda place, _: memoryview(kept[place]))


@pytest.mark.parametrize(
    "value",
    [
        None,
        -(2**70),
        0.1,
        "\ud800é",
        [1, [2.5, None], (True, {"a": 1, 7: [2]}), {3, (4, "x")}],
        Square(1.0, -2.0, 3.0),
        CostModel(report=0.1 + 0.2),
        StationaryPolicy.KMAX,
        WindowSize(3, 4),
        Square,
    ],
)
def test_a_rebuilt_value_is_the_same(value: object) -> None:
    found = again(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(5),
        np.zeros((0, 3)),
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24)[::2].reshape(3, 4)[:, 1:],
        np.array([np.nan, -0.0, np.inf]),
        np.array(7, dtype=np.int8),
        np.array([True, False]),
        np.array([(1, (2.0, 3.0))], dtype=[("a", "i4"), ("b", "f8", (2,))]),
        np.zeros(2, dtype=np.dtype([("a", "i1"), ("b", "f8")], align=True)),
    ],
)
def test_an_array_is_made_again(array: np.ndarray[Any, Any]) -> None:
    found = again(array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()
    assert found.flags.writeable


def test_shared_values_stay_shared_and_cycles_stay_cycles() -> None:
    array = np.zeros(3)
    ring: list[Any] = [array, array]
    ring.append(ring)
    found = again(ring)
    assert found[0] is found[1]
    assert found[2] is found


def _nothing(_place: object, _count: int) -> memoryview:
    return memoryview(b"")


@pytest.mark.parametrize(
    "form",
    [
        None,
        {"root": [0]},
        {"root": [0], "nodes": []},
        {"root": [0], "nodes": [["object", "os:system", {}]]},
        {"root": [0], "nodes": [["object", "builtins:list", {}]]},
        {"root": [0], "nodes": [["class", "streaming.tasks.shared_arrays:SharedArrays.take"]]},
        {"root": [0], "nodes": [["class", "streaming.tasks.shared_arrays:os"]]},
        {"root": [0], "nodes": [["class", "streaming.nowhere:X"]]},
        {"root": [0], "nodes": [["object", "streaming.tasks.plain:_Decoder", {"__class__": 1}]]},
        {"root": [0], "nodes": [["named", "index.square:Square", [1]]]},
        {"root": [0], "nodes": [["init__", 1]]},
        {"root": [0], "nodes": [["put", "x"]]},
        {"root": [0], "nodes": [["array", "|O", [1], False, 0, True]]},
        {"root": [0], "nodes": [["array", "<f8", [1], False, 0, True]]},
        {"root": [0], "nodes": [["tuple", [[0]]]]},
    ],
)
def test_a_form_that_is_none_is_refused_and_runs_nothing(form: Any) -> None:
    with pytest.raises(PlainError):
        decoded(form, _nothing)


def test_an_entry_of_the_catalogue_in_a_form_runs_nothing_else() -> None:
    entry: Entry[Any] = Entry("os:system", options=(("command", "true"),), takes_square=False)
    with pytest.raises(TypeError, match="os:system is not a class of index"):
        again(entry)()
    assert len(again(OBJECT_INDEXES["naive"])()) == 0


@pytest.mark.parametrize("value", [object(), print, np.array([None]), lambda: 1, 1j, pytest])
def test_a_value_without_a_plain_form_is_refused(value: object) -> None:
    with pytest.raises(PlainError):
        encoded(value, len)
