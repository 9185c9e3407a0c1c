"""Draw the workload of the suite ap-plus: ap-tree.txt section 5.2.1 and Table 3."""

from __future__ import annotations

import numpy as np

from bench.ap_plus.drives import Drives
from bench.ap_plus.experiments import PERIOD_S, ApPlusParameters
from bench.datasets import Dataset, sample_keywords
from bench.parts import keyword_rows
from index.batches import Boxes, Ints, KeywordLists, ObjectBatch

_STEP_M = 100.0
"""Standard deviation of the distance of an object from a node of the roads."""


class ApPlusWorkload:
    """Clauses, numbered from 1, that drive around, and objects that are published and expire.

    Parameters
    ----------
    data
        Data set of the keywords.
    drives
        Paths of the ranges; objects lie near the nodes of the roads.
    parameters
        Numbers of subscriptions and objects, and their rates.
    """

    def __init__(self, data: Dataset, drives: Drives, parameters: ApPlusParameters) -> None:
        self.name = f"{data.name}-{drives.name}"
        self.square = drives.square
        self.parameters = parameters
        self._drives = drives
        self._chance = chance = np.random.default_rng([parameters.seed, 23])
        count = parameters.subscriptions
        self.ids = np.arange(1, count + 1, dtype=np.int64)
        self._drive = chance.integers(0, len(drives.x_m), count)
        self._phase = chance.integers(0, 2 * parameters.seconds, count)
        side = np.sqrt(parameters.area) / 2.0
        self._half_x_m, self._half_y_m = side * drives.width_m, side * drives.height_m
        words = keyword_rows(data.keywords, chance.integers(0, len(data), count))
        wanted = chance.integers(parameters.keywords_min, parameters.keywords_max + 1, count)
        self.required = sample_keywords(words, np.minimum(wanted, np.diff(words.offsets)), chance)
        self.objects = self._draw_objects(data)
        self.expiry_ms = self._draw_expiries()

    def _draw_objects(self, data: Dataset) -> ObjectBatch:
        parameters, chance, drives = self.parameters, self._chance, self._drives
        count = parameters.objects + parameters.steps * parameters.arrivals
        nodes = chance.integers(0, len(drives.node_x_m), count)
        steps = chance.normal(0.0, _STEP_M, (2, count))
        return ObjectBatch(
            np.arange(1, count + 1, dtype=np.int64),
            drives.node_x_m[nodes] + steps[0],
            drives.node_y_m[nodes] + steps[1],
            keyword_rows(data.keywords, chance.integers(0, len(data), count)),
        )

    def _draw_expiries(self) -> Ints:
        """Return the expiry times of objects.

        Lifetimes are exponential, also those that remain to the first objects.
        """
        parameters = self.parameters
        born = np.zeros(len(self.objects))
        born[parameters.objects :] = np.repeat(np.arange(parameters.steps), parameters.arrivals) + 1
        lives = self._chance.exponential(parameters.lifetime, len(born))
        found: Ints = np.ceil(1000.0 * PERIOD_S * (born + lives)).astype(np.int64)
        return found

    def arriving(self, timestamp: int) -> slice:
        """Return the objects that are published at a timestamp; at 0, the first objects."""
        parameters = self.parameters
        if timestamp == 0:
            return slice(0, parameters.objects)
        start = parameters.objects + (timestamp - 1) * parameters.arrivals
        return slice(start, start + parameters.arrivals)

    def moving(self, timestamp: int) -> Ints:
        """Return the rows of the clauses that move at a timestamp."""
        parameters = self.parameters
        chance = np.random.default_rng([parameters.seed, 29, timestamp])
        count = round(parameters.subscriptions * parameters.mobility)
        return chance.permutation(parameters.subscriptions)[:count]

    def boxes(self, rows: Ints, timestamp: int) -> Boxes:
        """Return the ranges of clauses around the positions of their devices."""
        elapsed = round(timestamp * PERIOD_S * self.parameters.velocity)
        x_m, y_m = self._drives.at(self._drive[rows], self._phase[rows] + elapsed)
        half_x_m, half_y_m = self._half_x_m, self._half_y_m
        return Boxes(x_m - half_x_m, y_m - half_y_m, x_m + half_x_m, y_m + half_y_m)

    def words(self, rows: Ints) -> KeywordLists:
        """Return the keywords that clauses require."""
        return keyword_rows(self.required, rows)


class ApPlusAudit:
    """Compare the reported matches of some clauses with the definition, in plain Python.

    Parameters
    ----------
    workload
        The workload of the run.
    """

    def __init__(self, workload: ApPlusWorkload) -> None:
        self.lists = 0
        self.mismatches = 0
        self._workload = workload
        count = min(workload.parameters.audited, workload.parameters.subscriptions)
        chance = np.random.default_rng([workload.parameters.seed, 31])
        self.rows = np.sort(chance.permutation(workload.parameters.subscriptions)[:count])
        self._words = [frozenset(workload.required.row(row).tolist()) for row in self.rows.tolist()]
        self._reported: dict[int, set[int]] = {row + 1: set() for row in self.rows.tolist()}
        self._boxes: dict[int, tuple[float, ...]] = {}

    def place(self, rows: Ints, boxes: Boxes) -> None:
        """Record the ranges of clauses."""
        for i in np.flatnonzero(np.isin(rows, self.rows)).tolist():
            corners = (boxes.x1_m[i], boxes.y1_m[i], boxes.x2_m[i], boxes.y2_m[i])
            self._boxes[int(rows[i]) + 1] = tuple(map(float, corners))

    def matched(self, offsets: Ints, clause_ids: Ints, object_ids: Ints) -> None:
        """Record the clauses that match published objects."""
        found = np.flatnonzero(np.isin(clause_ids, self.rows + 1))
        owners = np.searchsorted(offsets, found, side="right") - 1
        for place, owner in zip(found.tolist(), owners.tolist(), strict=True):
            self._reported[int(clause_ids[place])].add(int(object_ids[owner]))

    def moved(self, rows: Ints, offsets: Ints, object_ids: Ints, *, is_left: bool) -> None:
        """Record the objects that clauses start or cease to match."""
        for i in np.flatnonzero(np.isin(rows, self.rows)).tolist():
            some = set(object_ids[offsets[i] : offsets[i + 1]].tolist())
            reported = self._reported[int(rows[i]) + 1]
            if is_left:
                self.mismatches += not some <= reported
                reported -= some
            else:
                self.mismatches += not some.isdisjoint(reported)
                reported |= some

    def compare(self, timestamp: int) -> None:
        """Compare the reported matches of clauses with the live objects that match by the definition."""
        workload = self._workload
        now_ms = 1000 * PERIOD_S * timestamp
        end = workload.arriving(timestamp).stop
        objects = workload.objects
        alive = np.flatnonzero(workload.expiry_ms[:end] > now_ms)
        living = set(objects.ids[alive].tolist())
        having: dict[int, list[int]] = {}
        for row in alive.tolist():
            for word in objects.keywords.row(row).tolist():
                having.setdefault(word, []).append(row)
        for clause, words in zip((self.rows + 1).tolist(), self._words, strict=True):
            x1_m, y1_m, x2_m, y2_m = self._boxes[clause]
            rows = min((having.get(word, []) for word in words), key=len)
            expected = {
                int(objects.ids[row])
                for row in rows
                if x1_m <= float(objects.x_m[row]) <= x2_m
                and y1_m <= float(objects.y_m[row]) <= y2_m
                and words <= set(objects.keywords.row(row).tolist())
            }
            self.lists += 1
            self.mismatches += (self._reported[clause] & living) != expected
