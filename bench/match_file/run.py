"""Find the subscriptions of one file that the objects of another match, and measure the time."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.benchmark import Progress
from bench.errors import BenchError
from bench.match_file.tables import Clauses, Words, read_objects, read_subscriptions
from bench.matching import Timed, timed
from bench.parts import object_part
from bench.peers.clauses import PEERS
from index.batches import Boxes, Ints, KeywordLists, Matches, ObjectBatch
from index.catalogue import CLAUSE_INDEXES
from index.contracts import ClauseIndex
from index.square import Square


def _without_square(make: Callable[[], ClauseIndex]) -> Callable[[Square | None], ClauseIndex]:
    return lambda _square: make()


INDEXES: dict[str, Callable[[Square | None], ClauseIndex]] = {
    **CLAUSE_INDEXES,
    **{name: _without_square(make) for name, make in PEERS.items()},
}
"""Indexes that can match files, by name."""

_TRIAL = 1_000
"""Subscriptions and objects of the run that compiles kernels."""


class Report(NamedTuple):
    """Results of a run."""

    subscriptions: int
    objects: int
    matches: int
    read_s: float
    load_s: float
    single: Timed
    batch: Timed
    index_bytes: int
    peak_mb: float


def match_files(
    subscriptions: Path, objects: Path, name: str, out: Path | None, batch: int, progress: Progress
) -> Report:
    """Match two files; write the pairs, sorted, if a file is given.

    Parameters
    ----------
    subscriptions, objects
        Paths of the files, see `bench.match_file.tables`.
    name
        One of INDEXES.
    out
        File for lines `object<TAB>subscription`, ordered by object and then by subscription.
    batch
        Number of objects in a call when they come in batches.
    progress
        Function that receives the progress.

    Raises
    ------
    BenchError
        If the index is unknown, a file cannot be read or written, or a line of one is invalid.
    """
    if name not in INDEXES:
        raise BenchError(f"--index is {name!r}, must be one of {', '.join(INDEXES)}")
    words = Words()
    began_s = time.perf_counter()
    clauses = read_subscriptions(subscriptions, words, progress)
    items = read_objects(objects, words, progress)
    read_s = time.perf_counter() - began_s
    square = _square(clauses)
    _compile(name, square, clauses, items)
    index = INDEXES[name](square)
    began_s = time.perf_counter()
    index.insert(*clauses)
    index.match(object_part(items, 0, 0))  # an index that cannot be changed is built here
    load_s = time.perf_counter() - began_s
    single = _timed(index, items, 1, progress)
    batched = _timed(index, items, batch, progress)
    if out is not None:
        _write(out, items.ids, batched.matches)
    return Report(
        len(clauses.ids),
        len(items),
        len(batched.matches.ids),
        read_s,
        load_s,
        single,
        batched,
        index.memory_bytes(),
        _peak_mb(),
    )


def _square(clauses: Clauses) -> Square | None:
    """Return the square around all rectangles."""
    boxes = clauses.boxes
    if not len(boxes):
        return None
    west, south, east, north = boxes.x1_m.min(), boxes.y1_m.min(), boxes.x2_m.max(), boxes.y2_m.max()
    half_m = max(east - west, north - south, 1e-9) / 2.0
    return Square(float((west + east) / 2.0), float((south + north) / 2.0), float(half_m))


def _compile(name: str, square: Square | None, clauses: Clauses, items: ObjectBatch) -> None:
    """Compile every kernel, on a part of the rows."""
    count = min(_TRIAL, len(clauses.ids))
    part = slice(0, count)
    boxes, required = clauses.boxes, clauses.required
    index = INDEXES[name](square)
    index.insert(
        clauses.ids[part],
        Boxes(boxes.x1_m[part], boxes.y1_m[part], boxes.x2_m[part], boxes.y2_m[part]),
        KeywordLists(required.offsets[: count + 1], required.ids[: required.offsets[count]]),
    )
    index.match(object_part(items, 0, min(_TRIAL, len(items))))
    index.match(object_part(items, 0, min(1, len(items))))


def _timed(index: ClauseIndex, items: ObjectBatch, batch: int, progress: Progress) -> Timed:
    """Match all objects, `batch` a call."""
    stage = "one at a time" if batch == 1 else f"in batches of {batch}"
    progress(stage, 0, len(items))
    found = timed(index, items, batch)
    progress(stage, len(items), len(items))
    return found


def _write(out: Path, object_ids: Ints, found: Matches) -> None:
    """Write pairs, ordered by object and then by subscription."""
    owners = np.repeat(object_ids, np.diff(found.offsets))
    order = np.lexsort((found.ids, owners))
    try:
        with out.open("w", encoding="ascii") as file:
            file.writelines(
                f"{item}\t{subscription}\n"
                for item, subscription in zip(
                    owners[order].tolist(), found.ids[order].tolist(), strict=True
                )
            )
    except OSError as error:
        raise BenchError(f"{out} cannot be written: {error}") from None


def _peak_mb() -> float:
    """Return the largest resident memory of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (2**20 if sys.platform == "darwin" else 2**10)
