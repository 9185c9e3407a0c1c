"""Clauses and objects with areas, from the definition, and random batches of them.

Coordinates are small integers, so that edges touch and objects lie on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from index.batches import Boxes, ObjectBatch
from tests.index.brute import Dice, ids, keyword_lists

FAR = 40.0
"""Beyond everything that an index may take for the area."""


@dataclass(frozen=True)
class Box:
    x1_m: float
    y1_m: float
    x2_m: float
    y2_m: float

    def meets(self, other: Box) -> bool:
        return (
            self.x1_m <= other.x2_m
            and other.x1_m <= self.x2_m
            and self.y1_m <= other.y2_m
            and other.y1_m <= self.y2_m
        )


@dataclass(frozen=True)
class AreaObject:
    object_id: int
    x_m: float
    y_m: float
    box: Box
    keywords: frozenset[int]


@dataclass(frozen=True)
class Clause:
    clause_id: int
    box: Box
    required: frozenset[int]

    def is_matched_by(self, one: AreaObject) -> bool:
        return self.required <= one.keywords and self.box.meets(one.box)


class BoxDice(Dice):
    """Random clauses and objects from one seed."""

    def box(self) -> Box:
        kind = self.random.random()
        if kind < 0.1:  # all there is
            return Box(-FAR, -FAR, FAR, FAR)
        x_m, y_m = self.coordinate(), self.coordinate()
        if kind < 0.2:  # across the border
            return Box(x_m, y_m, x_m + FAR, y_m + FAR)
        width, height = (float(self.random.choice((0, 0, 1, 2, 5))) for _ in range(2))
        return Box(x_m, y_m, x_m + width, y_m + height)

    def clause(self, clause_id: int, vocabulary: int | None = None) -> Clause:
        words = self.words(self.random.choice((1, 2, 2, 4))) if vocabulary is None else None
        return Clause(clause_id, self.box(), words or self.words(3, vocabulary or 1))

    def area_object(self, object_id: int) -> AreaObject:
        x_m, y_m = self.coordinate(), self.coordinate()
        if self.random.random() < 0.7:
            box = Box(x_m, y_m, x_m, y_m)
        else:
            west, south, east, north = (float(self.random.choice((0, 1, 3, 20))) for _ in range(4))
            box = Box(x_m - west, y_m - south, x_m + east, y_m + north)
        return AreaObject(object_id, x_m, y_m, box, self.words(6))


def boxes_of(boxes: list[Box]) -> Boxes:
    table = np.array([(one.x1_m, one.y1_m, one.x2_m, one.y2_m) for one in boxes], dtype=np.float64)
    x1_m, y1_m, x2_m, y2_m = np.ascontiguousarray(table.reshape(-1, 4).T)
    return Boxes(x1_m, y1_m, x2_m, y2_m)


def area_batch(objects: list[AreaObject]) -> ObjectBatch:
    """Pack objects; a batch of points alone has no boxes."""
    is_plain = all(one.box == Box(one.x_m, one.y_m, one.x_m, one.y_m) for one in objects)
    return ObjectBatch(
        ids(one.object_id for one in objects),
        np.array([one.x_m for one in objects], dtype=np.float64),
        np.array([one.y_m for one in objects], dtype=np.float64),
        keyword_lists([one.keywords for one in objects]),
        None if is_plain else boxes_of([one.box for one in objects]),
    )


def point(object_id: int, x_m: float, y_m: float, keywords: Iterable[int]) -> AreaObject:
    """Return an object without an area."""
    return AreaObject(object_id, x_m, y_m, Box(x_m, y_m, x_m, y_m), frozenset(keywords))


def insert(index, clauses: list[Clause]) -> None:
    index.insert(
        ids(one.clause_id for one in clauses),
        boxes_of([one.box for one in clauses]),
        keyword_lists([one.required for one in clauses]),
    )


def move(index, clauses: list[Clause]) -> None:
    index.move(ids(one.clause_id for one in clauses), boxes_of([one.box for one in clauses]))


def matched(index, objects: list[AreaObject]) -> list[list[int]]:
    """What an index says, as one sorted list for each object, duplicates included."""
    found = index.match(area_batch(objects))
    return [sorted(found.row(i).tolist()) for i in range(len(objects))]


def expected(clauses: dict[int, Clause], objects: list[AreaObject]) -> list[list[int]]:
    return [
        sorted(one.clause_id for one in clauses.values() if one.is_matched_by(item)) for item in objects
    ]
