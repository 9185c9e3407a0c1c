"""The live objects as plain Python values: checks read each of them once for each subscription."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from index.tables import SlotTable


class Item(NamedTuple):
    """A live object."""

    slot: int
    id: int
    x_m: float
    y_m: float
    keywords: frozenset[int]


def items_of(objects: SlotTable) -> list[Item]:
    """Return the objects of a table, by slot. O(keywords)."""
    used = objects.used()
    rows, lists = objects.rows[used], objects.keyword_lists(used)
    ids, ends = lists.ids.tolist(), lists.offsets.tolist()
    keywords = [frozenset(ids[start:end]) for start, end in pairwise(ends)]
    columns = used, rows["id"], rows["x_m"], rows["y_m"]
    values = zip(*(column.tolist() for column in columns), keywords, strict=True)
    return [Item(*one) for one in values]
