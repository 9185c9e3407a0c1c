"""Runs: contiguous stretches of an arena of records, of a capacity that is a power of two.

A full run moves into one twice as large, one that is a quarter full into one half as large. Runs given
back are kept by size; the first record of a free run says in `slot` where the next free one is.

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
    """Whether a run of a size can be taken."""
    end = runs.ends[RUN_END] + (RUN_LEAST << size_class)
    return bool(runs.free[size_class] != NO_RUN or end <= runs.records.shape[0])


@leaf
def take_run(runs: Runs, size_class: int) -> int:
    """Take a run; return its first record. The caller has made sure that there is one."""
    return take_rows(
        runs.records["slot"], runs.free, size_class, runs.ends, RUN_END, RUN_LEAST << size_class
    )


@leaf
def free_run(runs: Runs, start: int, size_class: int) -> None:
    """Give a run back."""
    give_back_rows(runs.records["slot"], runs.free, size_class, start)


@leaf
def class_of(count: int) -> int:
    """Size class of the smallest run for so many records."""
    size_class = 0
    while RUN_LEAST << size_class < count:
        size_class += 1
    return size_class


@leaf
def moved_run(runs: Runs, start: int, count: int, size_class: int, new_class: int) -> int:
    """Move records to a run of another size, which there is; return its first record.

    The old run, if `size_class` is not NO_RUN, is given back.
    """
    target = take_run(runs, new_class)
    for offset in range(count):
        runs.records[target + offset] = runs.records[start + offset]
    if size_class != NO_RUN:
        free_run(runs, start, size_class)
    return target


@leaf
def is_wasteful(runs: Runs, count: int, size_class: int) -> bool:
    """Whether so many records should move into a run half as large: a quarter full, and there is one."""
    is_sparse = size_class > 0 and count <= (RUN_LEAST << size_class) // 4
    return bool(is_sparse and has_run(runs, size_class - 1))
