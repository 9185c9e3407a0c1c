"""Row layout of the inverted file."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Ints

Rows = npt.NDArray[Any]

LIST_DTYPE = np.dtype(
    [
        ("start", np.int64),  # of its run; in a free row: the next free row
        ("count", np.int32),  # entries in the run
        ("size_class", np.int32),  # of the run, which has room for RUN_LEAST << size_class; NO_RUN
        ("keyword", np.int32),  # NO_KEYWORD in a free row
        (
            "root",
            np.int32,
        ),  # of the quadtree of a frequent keyword, which then holds all entries; NO_NODE
    ],
    align=True,
)


class Files(NamedTuple):
    """Arrays of the inverted file."""

    lists: Rows  # a posting list for each keyword that an object has
    keys: Ints  # keyword to row of `lists`: an id map
    values: npt.NDArray[np.int32]
    runs: Rows  # ENTRY_DTYPE; each list without a quadtree is a contiguous run
    free_runs: Ints  # first free run of each size class, NO_RUN if there is none; `slot` has the next
    meta: Ints  # counters, named in `list_kernels`
