"""Kernel of Algorithm 4: counts the lists that have a keyword on either side of each line."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from safe_region.jit import kernel

Ranks = npt.NDArray[np.int32]


@kernel
def count_unions(
    ranks: Ranks, owners: Ints, low: int, seen: Ints, mark: int, counts_left: Ints, counts_right: Ints
) -> None:
    """Count the lists that have a keyword below each line, and those that have one above it.

    One pass up the ranks and one down, whatever the number of lines.

    Parameters
    ----------
    ranks, owners
        Keywords of an interval of ranks, by rank: the rank, and the list that has the keyword.
    low
        The first rank of the interval.
    seen
        By list; its values are less than `mark`.
    mark
        The mark of this call; `mark` + 1 is used as well.
    counts_left, counts_right
        Zeros, one more than there are ranks. Written at i: the number of lists with a keyword whose rank
        is below `low` + i, and the number of lists with a keyword whose rank is not.
    """
    count = counts_left.shape[0]
    for i in range(ranks.shape[0]):
        if seen[owners[i]] != mark:
            seen[owners[i]] = mark
            counts_left[ranks[i] - low + 1] += 1
    for i in range(ranks.shape[0] - 1, -1, -1):
        if seen[owners[i]] != mark + 1:
            seen[owners[i]] = mark + 1
            counts_right[ranks[i] - low] += 1
    for i in range(1, count):
        counts_left[i] += counts_left[i - 1]
    for i in range(count - 2, -1, -1):
        counts_right[i] += counts_right[i + 1]
