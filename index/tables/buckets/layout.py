"""Row layouts of bucket quadtrees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Ints, KeywordIds
from index.tables.quad_kernels import QUAD_FIELDS

Rows = npt.NDArray[Any]

OBJECT_DTYPE = np.dtype(
    [
        ("id", np.int64),
        ("x_m", np.float64),
        ("y_m", np.float64),
        ("norm2", np.float64),  # sum of the keywords' squared weights
        ("keyword_start", np.int64),  # first keyword id in the pool
        ("keyword_count", np.int32),
    ],
    align=True,
)

ENTRY_DTYPE = np.dtype(
    [
        ("x_m", np.float64),  # a copy: most entries are excluded without access to the object
        ("y_m", np.float64),
        ("signature", np.int64),  # of the object's keywords
        ("slot", np.int32),  # of the object
        ("keyword_count", np.int16),  # of the object
        ("ordinal", np.int16),  # index of this place among the object's places
    ],
    align=True,
)

NODE_DTYPE = np.dtype(
    [
        *QUAD_FIELDS,
        ("block", np.int32),  # first block of a leaf, the only one that may have space; NO_BLOCK if empty
        ("count", np.int32),  # entries below
        (
            "keyword_min",
            np.int32,
        ),  # least number of keywords of an object below
    ],
    align=True,
)

BLOCK_DTYPE = np.dtype(
    [
        ("node", np.int32),  # the leaf it belongs to
        ("next", np.int32),  # next block of the leaf, or next free block; NO_BLOCK at the end
    ],
    align=True,
)


class Trees(NamedTuple):
    """Arrays of bucket quadtrees; any number of trees share them."""

    nodes: Rows
    blocks: Rows
    entries: Rows  # BLOCK_CAPACITY for each block
    meta: Ints  # counters of the two pools, named in `quad_kernels` and `buckets.kernels`


class Objects(NamedTuple):
    """Arrays of the objects that entries represent."""

    rows: Rows
    pool: KeywordIds
    places: npt.NDArray[np.int32]  # beside the pool: the place of the entry of this object and ordinal
