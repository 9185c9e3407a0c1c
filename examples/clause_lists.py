"""A plug-in: an index of boolean subscriptions that a server uses by name.

Each clause is in the list of one of its keywords, the one with the shortest list at the time. A match
looks through the lists of the object's keywords.

Operations: insert, move and remove O(1) a clause; match O(clauses in the lists of its keywords) an
object. It is plain Python, made to be read: `index/inverted_grid` is nearcast's own.
"""

from __future__ import annotations

import sys
from collections import defaultdict

import numpy as np

from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.contracts import InconsistentIndexError
from index.square import Square
from index.tables.clauses import validate_boxes, validate_clauses

Box = tuple[float, float, float, float]


class ClauseLists:
    """See `index.contracts.ClauseIndex`.

    Parameters
    ----------
    square
        The square that contains most clauses. This index does not divide space, and ignores it.
    """

    def __init__(self, square: Square | None = None) -> None:
        del square
        self.candidate_count = 0
        self._boxes: dict[int, Box] = {}
        self._required: dict[int, frozenset[int]] = {}
        self._list_of: dict[int, int] = {}
        self._lists: defaultdict[int, set[int]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._boxes)

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses. O(keywords) each."""
        validate_clauses(ids, boxes, required)
        _require_distinct(ids)
        for clause in ids.tolist():
            if clause in self._boxes:
                raise KeyError(f"id {clause} is already present")
        for row, clause in enumerate(ids.tolist()):
            keywords = required.row(row).tolist()
            rarest = min(keywords, key=lambda keyword: len(self._lists[keyword]))
            self._boxes[clause] = _box(boxes, row)
            self._required[clause] = frozenset(keywords)
            self._list_of[clause] = rarest
            self._lists[rarest].add(clause)

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Change the boxes of clauses. O(1) each."""
        validate_boxes(ids, boxes)
        self._require_present(ids)
        for row, clause in enumerate(ids.tolist()):
            self._boxes[clause] = _box(boxes, row)

    def remove(self, ids: Ints) -> None:
        """Remove clauses. O(1) each."""
        self._require_present(ids)
        for clause in ids.tolist():
            self._lists[self._list_of.pop(clause)].remove(clause)
            del self._boxes[clause], self._required[clause]

    def match(self, objects: ObjectBatch) -> Matches:
        """Return the clauses that match each object."""
        extents = objects.extents()
        rows = [
            self._matches(frozenset(objects.keywords.row(row).tolist()), _box(extents, row))
            for row in range(len(objects))
        ]
        counts = np.array([len(row) for row in rows], dtype=np.int64)
        return Matches.of(counts, np.array([clause for row in rows for clause in row], dtype=np.int64))

    def _matches(self, keywords: frozenset[int], extent: Box) -> list[int]:
        lists = [self._lists[keyword] for keyword in keywords if keyword in self._lists]
        self.candidate_count += sum(map(len, lists))
        return [
            clause
            for one in lists
            for clause in one
            if self._required[clause] <= keywords and _do_meet(self._boxes[clause], extent)
        ]

    def memory_bytes(self) -> int:
        """Return the size of the dictionaries and lists, without the numbers in them."""
        tables = (self._boxes, self._required, self._list_of, self._lists)
        return sum(map(sys.getsizeof, (*tables, *self._lists.values())))

    def check(self) -> None:
        """Verify that each clause is in the list of one of its keywords, and nowhere else."""
        listed = {clause: keyword for keyword, one in self._lists.items() for clause in one}
        if sum(map(len, self._lists.values())) != len(self) or listed != self._list_of:
            raise InconsistentIndexError("a clause is in no list, or in two")
        for clause, keyword in listed.items():
            if keyword not in self._required[clause]:
                raise InconsistentIndexError(f"clause {clause} does not require {keyword}")

    def _require_present(self, ids: Ints) -> None:
        _require_distinct(ids)
        for clause in ids.tolist():
            if clause not in self._boxes:
                raise KeyError(f"id {clause} is absent")


def _require_distinct(ids: Ints) -> None:
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise KeyError(f"id {values[counts > 1][0]} is twice in the batch")


def _box(boxes: Boxes, row: int) -> Box:
    return (
        float(boxes.x1_m[row]),
        float(boxes.y1_m[row]),
        float(boxes.x2_m[row]),
        float(boxes.y2_m[row]),
    )


def _do_meet(box: Box, other: Box) -> bool:
    """Return whether two closed boxes have a point in common."""
    return box[0] <= other[2] and other[0] <= box[2] and box[1] <= other[3] and other[1] <= box[3]
