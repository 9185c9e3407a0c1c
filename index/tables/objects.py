"""Objects in a table, found by a structure that holds their slots: the common part of object indexes.

Operations: those of the structure, and O(keywords) for a row of the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from index.batches import Boxes, Floats, InterestBatch, Ints, KeywordLists, Matches, ObjectBatch, Ranking
from index.tables import within_kernels
from index.tables.buckets import question_kernels
from index.tables.buckets.rankings import Answers, queries_of, validate
from index.tables.matches import box_queries, collected
from index.tables.slots import Slots, SlotTable


class PlaceTable(ABC):
    """The common part of the implementations of `index.contracts.PlaceIndex`.

    Parameters
    ----------
    table
        For the objects, empty. In addition to the fields of a table it has `x_m`, `y_m`, and `norm2` if
        that is needed.
    """

    def __init__(self, table: SlotTable) -> None:
        self._table = table
        self._has_norms = "norm2" in (table.rows.dtype.names or ())

    def __len__(self) -> int:
        return len(self._table)

    def insert(self, objects: ObjectBatch) -> None:
        """Add objects.

        Raises
        ------
        KeyError
            If an id is already present, or twice in the batch. Nothing is inserted.
        ValueError
            If an object has no or too many keywords, a negative keyword or no finite position. Nothing is
            inserted.
        """
        validate(objects)
        columns = {"x_m": objects.x_m, "y_m": objects.y_m}
        if self._has_norms:
            columns["norm2"] = objects.norms()
        self._enter(self._table.append(objects.ids, objects.keywords, columns))

    def within(self, required: KeywordLists, boxes: Boxes) -> Matches:
        """Return, for each row, the objects in its box that have all its keywords."""
        queries = box_queries(required, boxes)
        return collected(
            len(boxes), lambda row, offsets, found: self._fill_within(queries, row, offsets, found)
        )

    @abstractmethod
    def _enter(self, slots: Slots) -> None:
        """Insert new rows of the table into the structure."""

    @abstractmethod
    def _fill_within(
        self, queries: within_kernels.BoxQueries, row: int, offsets: Ints, found: Ints
    ) -> int:
        """Write the objects in boxes, from a row on; see `index.tables.matches.Fill`."""


class ObjectTable(PlaceTable):
    """The common part of the implementations of `index.contracts.ObjectIndex`; see `PlaceTable`."""

    def remove(self, ids: Ints) -> None:
        """Remove objects.

        Raises
        ------
        KeyError
            If an id is absent, or twice in the batch. Nothing is removed.
        """
        slots = self._table.take(ids)
        self._leave(slots)
        self._table.discard(slots)
        self._settle()

    def best(
        self,
        interests: InterestBatch,
        x_m: Floats,
        y_m: Floats,
        count: Ints,
        bound_m: Floats,
        first_id: Ints | None = None,
    ) -> Ranking:
        """Return, for each interest at its position, the `count` objects of least (length, id)."""
        answers = Answers(np.minimum(count, len(self)), self._node_end())
        self._fill_best(queries_of(interests, x_m, y_m, bound_m, first_id), answers)
        return answers.ranking()

    @abstractmethod
    def _leave(self, slots: Slots) -> None:
        """Remove rows from the structure that are still in the table."""

    @abstractmethod
    def _fill_best(self, queries: question_kernels.Queries, answers: Answers) -> None:
        """Write the best objects of each query."""

    @abstractmethod
    def _node_end(self) -> int:
        """Return the maximum number of nodes that a search can visit."""

    def _settle(self) -> None:
        """Adapt the structure to the remaining objects."""
