"""Arenas of runs: their creation, growth and invariants."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from index.contracts import InconsistentIndexError
from index.tables.growth import longer
from index.tables.run_kernels import NO_RUN, RUN_END, RUN_LEAST, Runs

_SIZE_CLASSES = 40


def new_runs(dtype: np.dtype[np.void], count: int) -> Runs:
    """Return an arena with the capacity for this many records."""
    return Runs(
        np.zeros(count, dtype=dtype),
        np.full(_SIZE_CLASSES, NO_RUN, dtype=np.int64),
        np.zeros(RUN_END + 1, dtype=np.int64),
    )


def lengthened(runs: Runs, least: int = 1) -> Runs:
    """Return an arena with the capacity for at least this many additional records."""
    return runs._replace(records=longer(runs.records, len(runs.records) + least))


def check_runs(runs: Runs, used: Iterable[tuple[int, int]]) -> None:
    """Verify that used and free runs together cover the arena, without overlap.

    Parameters
    ----------
    runs
        The arena.
    used
        Start and size class of each run in use.

    Raises
    ------
    InconsistentIndexError
        If they do not.
    """
    found = [(start, RUN_LEAST << size_class) for start, size_class in used]
    for size_class, first in enumerate(runs.free.tolist()):
        start = first
        while start != NO_RUN:
            found.append((start, RUN_LEAST << size_class))
            start = int(runs.records[start]["slot"])
    end = 0
    for start, capacity in sorted(found):
        if start != end:
            raise InconsistentIndexError("runs overlap or leave a gap")
        end = start + capacity
    if end != runs.ends[RUN_END]:
        raise InconsistentIndexError("the arena of runs has a wrong end")
