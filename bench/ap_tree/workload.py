"""Draw the workload of the suite ap-tree: subscriptions as in ap-tree.txt section 5.1.1, and objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bench.ap_tree.experiments import ApTreeParameters
from bench.datasets import Dataset, keyword_sets
from bench.matching import wrong_rows
from index.batches import Boxes, Floats, Ints, KeywordIds, KeywordLists, Matches, ObjectBatch

_HISTORY = 1_000_000_000
"""First id of the objects of the history."""


@dataclass(frozen=True, slots=True)
class ApTreeWorkload:
    """Clauses of subscriptions, numbered from 1, and objects."""

    boxes: Boxes
    required: KeywordLists
    subscriptions: int
    arrivals: ObjectBatch
    history: ObjectBatch

    @property
    def ids(self) -> Ints:
        """Return the numbers of the clauses."""
        return np.arange(1, len(self.required) + 1, dtype=np.int64)

    def part(self, start: int, stop: int) -> tuple[Ints, Boxes, KeywordLists]:
        """Return the ids, boxes and required keywords of consecutive clauses."""
        offsets = self.required.offsets[start : stop + 1]
        ids = self.required.ids[offsets[0] : offsets[-1]]
        required = KeywordLists(offsets - offsets[0], ids)
        return self.ids[start:stop], self.boxes.part(np.arange(start, stop)), required


def draw(data: Dataset, parameters: ApTreeParameters) -> ApTreeWorkload:
    """Draw subscriptions and objects."""
    chance = np.random.default_rng([parameters.seed, 19])
    count = parameters.subscriptions
    sampled = data.objects(count, 1, chance)
    words = _subsets(keyword_sets(sampled.keywords), parameters, chance)
    boxes = _boxes(data, sampled, parameters, chance)
    if parameters.is_general:
        expressions = [_general(row, chance) for row in words]
        owners = np.repeat(np.arange(count), [len(clauses) for clauses in expressions])
        words = [clause for clauses in expressions for clause in clauses]
        boxes = boxes.part(owners)
    return ApTreeWorkload(
        boxes,
        KeywordLists.of([np.array(row, dtype=np.int32) for row in words]),
        count,
        _arrivals(data, parameters, chance),
        data.objects(parameters.history, _HISTORY, chance),
    )


def _arrivals(data: Dataset, parameters: ApTreeParameters, chance: np.random.Generator) -> ObjectBatch:
    """Draw new objects."""
    drawn = data.objects(parameters.objects, 1, chance)
    if parameters.words_max:
        wanted = chance.integers(parameters.words_min, parameters.words_max + 1, len(drawn)).tolist()
        rows = (
            _words(keywords, count, data, chance)
            for keywords, count in zip(keyword_sets(drawn.keywords), wanted, strict=True)
        )
        drawn = replace(drawn, keywords=KeywordLists.of(list(rows)))
    if parameters.object_side:
        half = chance.uniform(0.0, parameters.object_side, (2, len(drawn))) / 2.0
        half_x = half[0] * float(data.x_m.max() - data.x_m.min())
        half_y = half[1] * float(data.y_m.max() - data.y_m.min())
        x_m, y_m = drawn.x_m, drawn.y_m
        drawn = replace(drawn, boxes=Boxes(x_m - half_x, y_m - half_y, x_m + half_x, y_m + half_y))
    return drawn


def _words(
    keywords: KeywordIds, count: int, data: Dataset, chance: np.random.Generator
) -> npt.NDArray[np.int32]:
    """Return `count` keywords: those of an object, and those of others if it has too few."""
    found = set(keywords.tolist())
    for _ in range(count):
        if len(found) >= count:
            break
        found.update(data.keywords.row(int(chance.integers(len(data.keywords)))).tolist())
    return np.sort(np.array(sorted(found), dtype=np.int32)[:count])


def _subsets(
    rows: Sequence[KeywordIds], parameters: ApTreeParameters, chance: np.random.Generator
) -> list[list[int]]:
    """Return some keywords of each row, in increasing order."""
    wanted = chance.integers(parameters.keywords_min, parameters.keywords_max + 1, len(rows)).tolist()
    return [
        np.sort(chance.choice(row, min(count, len(row)), replace=False)).tolist()
        for row, count in zip(rows, wanted, strict=True)
    ]


def _boxes(
    data: Dataset, sampled: ObjectBatch, parameters: ApTreeParameters, chance: np.random.Generator
) -> Boxes:
    """Return a box around each object."""
    width_m = float(data.x_m.max() - data.x_m.min())
    height_m = float(data.y_m.max() - data.y_m.min())
    count = len(sampled)
    across: Floats
    up: Floats
    if parameters.side_max is None:
        across = up = np.sqrt(chance.uniform(parameters.area_min, parameters.area_max, count))
    else:
        across, up = chance.uniform(0.0, parameters.side_max, (2, count))
    half_x, half_y = across * width_m / 2.0, up * height_m / 2.0
    return Boxes(sampled.x_m - half_x, sampled.y_m - half_y, sampled.x_m + half_x, sampled.y_m + half_y)


def _general(words: list[int], chance: np.random.Generator) -> list[list[int]]:
    """Return the clauses of a general expression.

    It joins two parts with AND or OR; each part requires all or any of its words.
    """
    if len(words) == 1:
        return [words]
    cut = int(chance.integers(1, len(words)))
    is_all, *inner = (bool(one) for one in chance.integers(0, 2, 3))
    first, second = (
        [part] if all_of else [[word] for word in part]
        for part, all_of in zip((words[:cut], words[cut:]), inner, strict=True)
    )
    if is_all:
        return [sorted(one + other) for one in first for other in second]
    return first + second


class ApTreeAudit:
    """The true matches of some new objects by the definition, in plain Python.

    Parameters
    ----------
    workload
        The measured workload.
    count
        Number of the first new objects that are compared.
    """

    def __init__(self, workload: ApTreeWorkload, count: int) -> None:
        having: dict[int, list[int]] = {}
        words = [frozenset(row.tolist()) for row in keyword_sets(workload.required)]
        for row, one in enumerate(words):
            having.setdefault(min(one), []).append(row)
        boxes = workload.boxes
        corners = [one.tolist() for one in (boxes.x1_m, boxes.y1_m, boxes.x2_m, boxes.y2_m)]
        self.expected: list[list[int]] = []
        arrivals = workload.arrivals
        there = arrivals.extents()
        extents = (there.x1_m, there.y1_m, there.x2_m, there.y2_m)
        for i in range(min(count, len(arrivals))):
            left, low, right, high = (float(one[i]) for one in extents)
            has = frozenset(arrivals.keywords.row(i).tolist())
            rows = sorted(row for word in has for row in having.get(word, ()) if words[row] <= has)
            x1_m, y1_m, x2_m, y2_m = corners
            self.expected.append(
                [
                    row + 1
                    for row in rows
                    if x1_m[row] <= right and left <= x2_m[row] and y1_m[row] <= high and low <= y2_m[row]
                ]
            )

    def mismatches(self, found: Matches) -> int:
        """Count the objects whose true matches differ from the matches found."""
        return wrong_rows(found, self.expected)
