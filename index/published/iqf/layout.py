"""Row layout of the inverted file."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.tables.run_kernels import Runs

Rows = npt.NDArray[Any]

LIST_DTYPE = np.dtype(
    [
        ("start", np.int64),  # of its run; in a free row: the next free row
        ("count", np.int32),  # entries in the run
        ("size_class", np.int32),  # of the run, whose capacity is RUN_LEAST << size_class; NO_RUN
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
    runs: Runs  # of ENTRY_DTYPE; each list without a quadtree is one
    meta: Ints  # counters, named in `list_kernels`
