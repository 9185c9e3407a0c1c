"""The Python SDK passes the vectors, and they are the ones that it writes."""

from __future__ import annotations

import json

import pytest

from tests.vectors.notation import double, lines, read_double, text
from tests.vectors.subjects import FOLDER, SUBJECTS, document, played

BYTES_MAX = 1_000_000


def test_every_file_has_a_subject():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(SUBJECTS)


def test_the_files_are_small():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < BYTES_MAX


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_sdk_passes(name):
    found = json.loads((FOLDER / f"{name}.json").read_text())
    for case in found["cases"]:
        for step, again in zip(case["steps"], played(SUBJECTS[name], case)["steps"], strict=True):
            assert is_same(again, step, found["relative_error"]), f"{case['name']}: {step}"


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_file_is_what_the_sdk_writes(name):
    found = json.loads((FOLDER / f"{name}.json").read_text())
    assert is_same(document(name), found, found["relative_error"]), "run `make vectors` and commit"
    assert (FOLDER / f"{name}.json").read_text() == "\n".join(lines(found)) + "\n"


def test_a_difference_of_one_double_is_one():
    for one, other in ((0.1 + 0.2, 0.3), (0.0, -0.0), (1.0, 1), ("1", 1), ([1.0], [1.0, 2.0])):
        assert not is_same({"a": one}, {"a": other}, 0.0)
    assert is_same({"a": 0.1 + 0.2}, {"a": 0.3}, 1e-12)
    assert not is_same({"a": 0.31}, {"a": 0.3}, 1e-12)
    assert not is_same({"a": double(float("inf"))}, {"a": 0.3}, 1e-12)


def is_same(one, other, relative_error):
    """Compare two values: as texts, in which 0.0 differs from -0.0 and a number from a text."""
    if not relative_error:
        return text(one) == text(other)
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(
                is_same(one[key], other[key], relative_error) for key in one
            )
        case list(), list():
            pairs = zip(one, other, strict=False)
            return len(one) == len(other) and all(is_same(a, b, relative_error) for a, b in pairs)
        case float(), float():
            return read_double(one) == pytest.approx(other, rel=relative_error, abs=1e-9)
    return text(one) == text(other)


@pytest.mark.parametrize("name", SUBJECTS)
def test_no_number_of_64_bits_is_a_double(name):
    def check(value):
        match value:
            case dict():
                for one in value.values():
                    check(one)
            case list():
                for one in value:
                    check(one)
            case bool():
                pass
            case int():
                assert abs(value) < 2**53

    check(json.loads((FOLDER / f"{name}.json").read_text()))
