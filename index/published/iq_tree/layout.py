"""Arrays of the IQ-tree in addition to those of its quadtree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Ints


class Occurrences(NamedTuple):
    """The number of objects below a node with a keyword: an id map; absent means none."""

    keys: Ints  # node << 32 | keyword
    values: npt.NDArray[np.int32]
    meta: Ints  # counters, named in `iq_tree.kernels`
