"""The page of limits has all of them."""

from __future__ import annotations

from dataclasses import fields

from docs.generators import limits
from server.limits import Limits


def test_every_limit_has_a_row_and_a_meaning():
    rows = [line.split("|")[1:-1] for line in limits.page().splitlines() if line.startswith("| `")]
    assert [row[0].strip(" `") for row in rows] == [field.name for field in fields(Limits)]
    assert all(row[1].strip() and row[3].strip() for row in rows)
