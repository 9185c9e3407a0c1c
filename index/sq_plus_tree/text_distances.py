"""Text distances as tables for kernels."""

from __future__ import annotations

import functools

import numpy as np

from index.sq_plus_tree.layout import CLASS_OFFSETS, CLASSES, COMBINED_MAX, SIZE_MAX, Singles
from safe_region.scoring import SET_SIMILARITIES, text_distance

LOOSE = 0
"""Stands for the number of common keywords where that may be any."""


@functools.cache
def text_distances() -> Singles:
    """Return an array of shape (SIZE_MAX + 1, COMBINED_MAX + 1, similarities + 1, SIZE_MAX + 1).

    At [count, common, similarity, size]: the text distance of an object of `count` keywords and a
    subscription of `size` that share exactly `common`; at common = LOOSE the least of any. Computed once,
    which takes a tenth of a second, and only read.
    """
    table = np.zeros(
        (SIZE_MAX + 1, COMBINED_MAX + 1, len(SET_SIMILARITIES) + 1, SIZE_MAX + 1), dtype=np.float32
    )
    for similarity in SET_SIMILARITIES:
        for size in range(1, SIZE_MAX + 1):
            for count in range(1, SIZE_MAX + 1):
                most = min(size, count)
                table[count, LOOSE, similarity, size] = text_distance(similarity, most, size, count)
                for common in range(1, min(most, COMBINED_MAX) + 1):
                    table[count, common, similarity, size] = text_distance(
                        similarity, common, size, count
                    )
    return table


def class_distances(table: Singles) -> Singles:
    """Return the least text distance in each class, shape (similarities + 1, SIZE_MAX + 1, ..., CLASSES).

    At [similarity, size, common, class], from what `text_distances` returns.
    """
    found = np.zeros((table.shape[2], SIZE_MAX + 1, COMBINED_MAX + 1, CLASSES), dtype=np.float32)
    ends = (*CLASS_OFFSETS[1:], SIZE_MAX)
    for common in range(COMBINED_MAX + 1):
        for number in range(CLASSES):
            # Loose entries belong to single keywords.
            first = max(common, 1) + CLASS_OFFSETS[number]
            last = min(max(common, 1) + ends[number] - 1, SIZE_MAX)
            found[:, :, common, number] = table[first : last + 1, common].min(axis=0)
    return found
