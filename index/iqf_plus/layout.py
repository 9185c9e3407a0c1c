"""Row layouts of IQF+."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints
from index.tables.id_map_kernels import Values
from index.tables.run_kernels import Runs

Rows = npt.NDArray[Any]

ENTRY_DTYPE = np.dtype(
    [
        ("x_m", np.float32),  # rounded: suitable for bounds, see `Lists.slack_m`
        ("y_m", np.float32),
        ("slot", np.int32),  # of the object
        ("mark", np.int64),  # summary of the object's keywords
    ],
)

NODE_DTYPE = np.dtype(
    [
        ("x_m", np.float64),  # centre of the cell, exact
        ("y_m", np.float64),
        ("half_m", np.float32),  # half its side, a power of two
        ("below", np.int32),  # the first of four children, or the first entry of a leaf's run
        ("count", np.int32),  # entries of a leaf; INNER for a node with children
        ("keyword_min", np.uint8),  # least number of keywords of an object below
        ("norm_min", np.uint8),  # least code of a norm below
        ("size_class", np.int8),  # of a leaf's run; NO_RUN if it is empty
    ],
    align=True,
)

LIST_DTYPE = np.dtype(
    [
        ("key", np.int64),  # the common keywords of its objects: see `list_kernels`
        ("start", np.int32),  # of its run; in a free row: the next free row
        ("run_count", np.int32),  # entries in the run
        ("tree_count", np.int32),  # entries in the tree
        ("root", np.int32),  # of the tree; NO_NODE if there is none
        ("size_class", np.int8),  # of the run; NO_RUN if there is none
    ],
    align=True,
)


class Lists(NamedTuple):
    """Arrays of lists, their runs and their trees."""

    lists: Rows
    keys: Ints  # key to row of `lists`: an id map
    values: Values
    nodes: Rows
    runs: Runs  # of lists and of leaves
    meta: Ints  # counters, named in `tree_kernels` and `list_kernels`
    slack_m: Floats  # one number: the maximum distance of an object from the position in its entries
    stack: npt.NDArray[np.int32]  # scratch for walks in trees


class Objects(NamedTuple):
    """Arrays of the objects that entries represent."""

    rows: Rows
    pool: npt.NDArray[np.int32]
