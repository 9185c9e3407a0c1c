"""Build one index of the suite ap-plus, let it learn how clauses move, and measure it on one workload.

The AP+-Tree divides space by the movement of clauses, which it knows only after they have moved. So some
timestamps pass first without being measured, for every index; then a tree is rebuilt with the learnt
movement. The cost of rebuilding nodes that have drifted is counted separately from moves and
publications.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from bench.ap_plus.experiments import PERIOD_S
from bench.ap_plus.workload import ApPlusAudit, ApPlusWorkload
from bench.benchmark import Progress, Row, TooSlowError
from bench.parts import object_part
from index.catalogue import MOVING_INDEXES
from index.contracts import MovingIndex
from index.paired import PairedIndex
from index.published.ap_plus_tree import ApPlusTree
from index.published.ap_tree import ApTree

_FILL = 10_000
"""Objects of one call when the index is filled."""

_Found = TypeVar("_Found")


def index_of(name: str, workload: ApPlusWorkload) -> MovingIndex:
    """Create an empty index."""
    if name == "ap-plus-tree":
        return ApPlusTree(workload.square, copies_max=workload.parameters.copies_max)
    return MOVING_INDEXES[name](workload.square)


def tree_of(index: MovingIndex) -> ApPlusTree | ApTree | None:
    """Return the tree of an index that is rebuilt as its clauses drift; None if the index has none."""
    part = index.clause_index if isinstance(index, PairedIndex) else index
    return part if isinstance(part, ApPlusTree | ApTree) else None


class Times:
    """Record the times of calls: those of batches in total, those of single rows one by one."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self.count = 0
        self._singles_s: list[float] = []
        self._batches_s = 0.0
        self._batched = 0

    def add(self, size: int, spent_s: float, count: int) -> None:
        """Record a call with `count` rows; for a call with a single row, `size` is 1."""
        self.spent_s += spent_s
        self.count += count
        if size == 1:
            self._singles_s.append(spent_s)
        else:
            self._batches_s += spent_s
            self._batched += count

    def single_us(self) -> float:
        """Return the median of the calls with single rows; growing arrays would distort a mean."""
        return round(1e6 * float(np.median(self._singles_s or [0.0])), 3)

    def batch_us(self) -> float:
        """Return the mean time of a row in a batch."""
        return round(1e6 * self._batches_s / max(1, self._batched), 3)


class MovingRun:
    """Run one index on one workload.

    Parameters
    ----------
    name
        Name of the index.
    workload
        The clauses, their moves and the objects.
    deadline_s
        Time at which the run has to be finished, on the clock of `time.perf_counter`.
    progress
        Function that receives the progress.
    """

    def __init__(
        self, name: str, workload: ApPlusWorkload, deadline_s: float, progress: Progress
    ) -> None:
        self.index = index_of(name, workload)
        self.audit = ApPlusAudit(workload)
        self.timestamps = 0
        self._tree = tree_of(self.index)
        self._name = name
        self._workload = workload
        self._deadline_s = deadline_s
        self._progress = progress
        self._begin()
        self.build_s = self._build()

    def _begin(self) -> None:
        """Start to measure."""
        self.published = Times()
        self.moved = Times()
        self.changes = 0
        self.move_candidates = 0
        self._rebuilds_before = self._rebuilds()

    def _rebuilds(self) -> tuple[int, float]:
        """Return the number of nodes rebuilt so far because of drift, and the seconds that this took."""
        return (self._tree.rebuild_count, self._tree.rebuild_s) if self._tree else (0, 0.0)

    def _build(self) -> float:
        workload, rows = self._workload, self._workload.ids - 1
        boxes = workload.boxes(rows, 0)
        self.audit.place(rows, boxes)
        began_s = time.perf_counter()
        self.index.pass_time(0)
        self.index.insert(workload.ids, boxes, workload.required)
        built_s = time.perf_counter() - began_s
        self._publish(0, _FILL)
        return built_s + self.published.spent_s

    def go(self) -> None:
        """Let all timestamps pass; those in which an index learns are not measured."""
        parameters = self._workload.parameters
        first = parameters.learning + 1
        for timestamp in range(1, parameters.steps + 1):
            if timestamp == first:
                if self._tree is not None:
                    self._tree.rebuild()
                self._begin()
            self.index.pass_time(1000 * PERIOD_S * timestamp)
            self._publish(timestamp, parameters.batch, parameters.singles)
            self._move(timestamp)
            self._progress(f"{self._name}: timestamps", timestamp, parameters.steps)
            measured = timestamp - parameters.learning
            self.timestamps = max(0, measured)
            if measured in (1, parameters.timestamps // 2, parameters.timestamps):
                self.audit.compare(timestamp)
        while self._tree is not None and self._tree.maintain():
            self._look_at_the_clock()

    def _chunks(self, count: int, batch: int, singles: int) -> list[tuple[int, int, int]]:
        """Divide a number of rows: some one by one, the others in batches.

        Each chunk is its first row, the row after its last one, and the size of its batch.
        """
        first = min(count // 2, singles)
        found = [(row, row + 1, 1) for row in range(first)]
        return found + [(start, min(start + batch, count), batch) for start in range(first, count, batch)]

    def _timed(self, times: Times, size: int, count: int, call: Callable[[], _Found]) -> _Found:
        """Call an index with `count` rows; record the time without that of rebuilding drifted nodes."""
        rebuilt_s = self._rebuilds()[1]
        began_s = time.perf_counter()
        found = call()
        spent_s = time.perf_counter() - began_s
        times.add(size, spent_s - (self._rebuilds()[1] - rebuilt_s), count)
        self._look_at_the_clock()
        return found

    def _publish(self, timestamp: int, batch: int, singles: int = 0) -> None:
        workload = self._workload
        arriving = workload.arriving(timestamp)
        count = arriving.stop - arriving.start
        for start, stop, size in self._chunks(count, batch, singles):
            part = slice(arriving.start + start, arriving.start + stop)
            objects = object_part(workload.objects, part.start, part.stop)
            expiry_ms = workload.expiry_ms[part]
            found = self._timed(
                self.published, size, len(objects), partial(self.index.publish, objects, expiry_ms)
            )
            self.audit.matched(found.offsets, found.ids, objects.ids)
            if timestamp == 0:
                self._progress(f"{self._name}: built", stop, count)

    def _move(self, timestamp: int) -> None:
        workload = self._workload
        rows = workload.moving(timestamp)
        boxes = workload.boxes(rows, timestamp)
        self.audit.place(rows, boxes)
        parameters = workload.parameters
        for start, stop, size in self._chunks(len(rows), parameters.batch, parameters.singles):
            some, places = rows[start:stop], boxes.part(np.arange(start, stop))
            before = self.index.candidate_count
            entered, left = self._timed(
                self.moved, size, len(some), partial(self.index.move, some + 1, places)
            )
            self.move_candidates += self.index.candidate_count - before
            self.changes += len(entered.ids) + len(left.ids)
            self.audit.moved(some, left.offsets, left.ids, is_left=True)
            self.audit.moved(some, entered.offsets, entered.ids, is_left=False)

    def _look_at_the_clock(self) -> None:
        if time.perf_counter() > self._deadline_s:
            raise TooSlowError

    def figures(self) -> Row:
        """Return the measurements as columns."""
        parameters = self._workload.parameters
        moves = max(1, self.moved.count)
        memory = self.index.memory_bytes()
        rebuilds, rebuilt_s = np.subtract(self._rebuilds(), self._rebuilds_before).tolist()
        rebuilding_us = 1e6 * rebuilt_s / moves
        return {
            "subscriptions": parameters.subscriptions,
            "objects": parameters.objects,
            "timestamps": self.timestamps,
            "us_per_message": self.published.single_us(),
            "us_per_message_batch": self.published.batch_us(),
            "us_per_move": self.moved.single_us(),
            "us_per_move_batch": self.moved.batch_us(),
            "rebuilds": int(rebuilds),
            "us_rebuilding_per_move": round(rebuilding_us, 3),
            "us_per_move_in_all": round(self.moved.batch_us() + rebuilding_us, 3),
            "move_s_per_timestamp": round((self.moved.spent_s + rebuilt_s) / max(1, self.timestamps), 3),
            "changes_per_move": round(self.changes / moves, 3),
            "candidates_per_move": round(self.move_candidates / moves, 3),
            "bytes_per_pair": round(2 * memory / (parameters.subscriptions + parameters.objects), 1),
            "memory_mb": round(memory / 1e6, 1),
            "build_s": round(self.build_s, 3),
            "lists_audited": self.audit.lists,
            "mismatches": self.audit.mismatches,
        }


def parts(name: str, workload: ApPlusWorkload) -> Row:
    """Return the cost of inserting an object without its matching, and of a move that finds nothing.

    The objects of the timestamps in which the index learns are retracted first.
    """
    parameters, rows = workload.parameters, workload.ids - 1
    index = index_of(name, workload)
    index.pass_time(0)
    index.insert(workload.ids, workload.boxes(rows, 0), workload.required)
    for timestamp in range(1, parameters.learning + 1):
        arriving = workload.arriving(timestamp)
        objects = object_part(workload.objects, arriving.start, arriving.stop)
        index.publish(objects, workload.expiry_ms[arriving])
        moving = workload.moving(timestamp)
        index.move(moving + 1, workload.boxes(moving, timestamp))
        index.retract(objects.ids)
    tree = tree_of(index)
    if tree is not None:
        tree.rebuild()
    moving = workload.moving(parameters.learning + 1)
    boxes = workload.boxes(moving, parameters.learning + 1)
    began_s = time.perf_counter()
    for start in range(0, len(moving), parameters.batch):
        stop = min(start + parameters.batch, len(moving))
        index.move(moving[start:stop] + 1, boxes.part(np.arange(start, stop)))
    while tree is not None and tree.maintain():
        pass
    moved_s = time.perf_counter() - began_s
    matched_s, published_s = 0.0, 0.0
    for start in range(0, parameters.objects, parameters.batch):
        stop = min(start + parameters.batch, parameters.objects)
        objects = object_part(workload.objects, start, stop)
        began_s = time.perf_counter()
        index.match(objects)
        matched_s += time.perf_counter() - began_s
        began_s = time.perf_counter()
        index.publish(objects, workload.expiry_ms[start:stop])
        published_s += time.perf_counter() - began_s
    return {
        "us_per_insertion": round(1e6 * (published_s - matched_s) / parameters.objects, 3),
        "us_per_location_update": round(1e6 * moved_s / max(1, len(moving)), 3),
    }
