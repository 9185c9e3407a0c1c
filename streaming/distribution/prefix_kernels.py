"""Kernels of the loose prefix: the keywords of which a message must have one to affect a subscription."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from safe_region.jit import kernel
from safe_region.scoring.formulas import Similarity

Flags = npt.NDArray[np.bool_]

_JACCARD = int(Similarity.JACCARD)
_DICE = int(Similarity.DICE)
_SLACK = 1e-9
"""Bounds are rounded outwards by more than their error."""


@kernel
def find_prefixes(
    offsets: Ints,
    words: KeywordIds,
    squares: Floats,
    similarity: npt.NDArray[np.int8],
    weight_m: Floats,
    reach_m: Floats,
    rank: KeywordIds,
    found: Flags,
) -> None:
    """Write for each keyword whether it is in its subscription's loose prefix.

    Parameters
    ----------
    offsets, words, squares
        Keyword lists, and the squared weight of each keyword: 1 except for tf-idf.
    similarity, weight_m, reach_m
        Of subscriptions.
    rank
        Rarity, by keyword.
    found
        A row for each of `words`.
    """
    for i in range(similarity.shape[0]):
        start, end = offsets[i], offsets[i + 1]
        total = 0.0
        for at in range(start, end):
            total += squares[at]
        # A message affects a subscription only if the similarity of their texts is at least this.
        least = 1.0 - reach_m[i] / weight_m[i] if weight_m[i] > 0.0 else -1.0
        for at in range(start, end):
            # Rarer keywords are before this one; a message may share only this one and those behind it.
            left, count = 0.0, 0
            for other in range(start, end):
                rarer = rank[words[other]] < rank[words[at]]
                if not (rarer or (rank[words[other]] == rank[words[at]] and other < at)):
                    left += squares[other]
                    count += 1
            if similarity[i] == _JACCARD:
                most = count / (end - start)
            elif similarity[i] == _DICE:
                most = 2.0 * count / (end - start + count)
            else:
                most = np.sqrt(left / total)
            # A keyword is in the prefix if it and all keywords behind it would be similar enough.
            found[at] = most >= least - _SLACK
