"""Runs: contiguous spans of an arena of records, with a capacity that is a power of two.

A full run moves into one twice as large, a run that is a quarter full into one half as large. Freed runs
are kept by size; the first record of a free run has the start of the next free one in `slot`.

Operations: take and free O(1), move O(records).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from index.batches import Ints
from index.tables.free_kernels import give_back_rows, take_rows
from safe_region.jit import leaf

NO_RUN = -1

RUN_LEAST = 4
"""Records of the smallest run."""

RUN_END = 0
"""In `ends`: every record from here on is unused."""


class Runs(NamedTuple):
    """An arena; its records have a field `slot`."""

    records: npt.NDArray[Any]
    free: Ints  # first free run of each size class, NO_RUN if there is none
    ends: Ints


@leaf
def has_run(runs: Runs, size_class: int) -> bool:
    """Return whether a run of a size can be allocated."""
    end = runs.ends[RUN_END] + (RUN_LEAST << size_class)
    return bool(runs.free[size_class] != NO_RUN or end <= runs.records.shape[0])


@leaf
def take_run(runs: Runs, size_class: int) -> int:
    """Allocate a run; return its first record. The caller has verified that one is available."""
    return take_rows(
        runs.records["slot"], runs.free, size_class, runs.ends, RUN_END, RUN_LEAST << size_class
    )


@leaf
def free_run(runs: Runs, start: int, size_class: int) -> None:
    """Free a run."""
    give_back_rows(runs.records["slot"], runs.free, size_class, start)


@leaf
def class_of(count: int) -> int:
    """Return the size class of the smallest run for this many records."""
    size_class = 0
    while RUN_LEAST << size_class < count:
        size_class += 1
    return size_class


@leaf
def moved_run(runs: Runs, start: int, count: int, size_class: int, new_class: int) -> int:
    """Move records to a run of another size, which must be available; return its first record.

    The old run, if `size_class` is not NO_RUN, is freed.
    """
    target = take_run(runs, new_class)
    for offset in range(count):
        runs.records[target + offset] = runs.records[start + offset]
    if size_class != NO_RUN:
        free_run(runs, start, size_class)
    return target


@leaf
def is_wasteful(runs: Runs, count: int, size_class: int) -> bool:
    """Return whether the run is at most a quarter full, and one half as large is available."""
    is_sparse = size_class > 0 and count <= (RUN_LEAST << size_class) // 4
    return bool(is_sparse and has_run(runs, size_class - 1))
