"""The three queries: they turn the changes of an engine into answers.

Q3, vehicles within a distance of a point: each event within it is an answer. Q4, entry into a region: an
event inside is an answer if the previous event of the same vehicle was not inside. Q7, first passage of
points of interest: the first event of a vehicle near a point is an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bench.berlinmod.answer_kernels import NEVER, entries, first_passages
from bench.berlinmod.experiments import Query
from bench.berlinmod.workload import Events
from engine.contracts import Rows, numbers_of
from index.batches import Ints
from index.tables.order_kernels import order_of

PUBLISHED_PER_S: dict[Query, int] = {"q3": 73_796, "q4": 66_403, "q7": 54_386}
"""Events a second of MobilityFlink, one task on a machine of 16 cores, with one stationary range."""


class Answers(NamedTuple):
    """Events, by row, and the ranges that they are answers for."""

    events: Ints
    ranges: Ints

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """Concatenate the answers of batches."""
        nothing: Ints = np.empty(0, dtype=np.int64)
        return cls(
            np.concatenate([nothing, *(one.events for one in parts)]),
            np.concatenate([nothing, *(one.ranges for one in parts)]),
        )

    def of(self, is_wanted: npt.NDArray[np.bool_]) -> Answers:
        """Return the answers for some ranges, which are marked by number."""
        mine = is_wanted[self.ranges]
        return Answers(self.events[mine], self.ranges[mine])


class Answering:
    """Answer one query over a stream of events.

    Parameters
    ----------
    query
        The query.
    events
        The whole stream.
    vehicle_count, range_count
        Numbers of vehicles and ranges.
    """

    def __init__(self, query: Query, events: Events, vehicle_count: int, range_count: int) -> None:
        self._query = query
        self._events = events
        is_remembered = query != "q3"
        shape = (vehicle_count, range_count if is_remembered else 0)
        self._latest = np.full(shape, NEVER, dtype=np.int32)

    def answers(self, changes: Rows) -> Answers:
        """Return the answers in the changes of a batch of events; batches must come in order."""
        entered = changes[changes["is_drop"] == 0]
        rows: Ints = entered["object_id"] - 1
        range_numbers = numbers_of(entered["handle"])
        if self._query == "q3":
            return Answers(rows, range_numbers)
        order = order_of(rows, np.arange(len(rows)))
        rows, range_numbers = rows[order], range_numbers[order]
        number, vehicle = self._events.number[rows], self._events.vehicle[rows]
        places = np.empty(len(rows), dtype=np.int64)
        find = entries if self._query == "q4" else first_passages
        places = places[: find(number, vehicle, range_numbers, self._latest, places)]
        return Answers(rows[places], range_numbers[places])
