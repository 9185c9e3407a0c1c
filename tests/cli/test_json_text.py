"""The JSON that commands print: what JSON itself lacks becomes texts."""

from __future__ import annotations

import json

import pytest

from cli.json_text import json_text

INFINITE = float("inf")


def test_numbers_that_json_lacks_are_texts():
    text = json_text({"a": [INFINITE, -INFINITE, float("nan"), 1.5], "b": (True, None, 7, "x")})
    found = json.loads(text, parse_constant=pytest.fail)
    assert found == {"a": ["Infinity", "-Infinity", "NaN", 1.5], "b": [True, None, 7, "x"]}
