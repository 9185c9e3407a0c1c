"""The least text distance of a class of objects, as a table for kernels."""

from __future__ import annotations

import numpy as np

from index.batches import Floats
from index.sq_plus_tree.layout import CLASS_OFFSETS, CLASSES, COMBINED_MAX
from safe_region.scoring import Similarity, text_distance

SIZE_MAX = 64
"""Subscriptions of more keywords are treated as if every object were as like as can be."""


def text_distances() -> Floats:
    """Return an array of shape (similarities + 1, SIZE_MAX + 1, COMBINED_MAX + 1, CLASSES).

    At [similarity, size, common, class]: the text distance between a subscription of `size` keywords and
    the best object of a class that has exactly `common` of them; at common = 0, with any number of them.
    """
    table = np.zeros((len(Similarity) + 1, SIZE_MAX + 1, COMBINED_MAX + 1, CLASSES))
    for similarity in Similarity:
        for size in range(1, SIZE_MAX + 1):
            for common in range(1, min(size, COMBINED_MAX) + 1):
                for number, offset in enumerate(CLASS_OFFSETS):
                    # With the common keywords given, every further one of the object only hurts.
                    table[similarity, size, common, number] = text_distance(
                        similarity, common, size, common + offset
                    )
            for number, offset in enumerate(CLASS_OFFSETS):
                end = CLASS_OFFSETS[number + 1] if number + 1 < CLASSES else SIZE_MAX
                counts = range(1 + offset, max(1 + end, 2 + offset))
                table[similarity, size, 0, number] = min(
                    text_distance(similarity, min(count, size), size, count) for count in counts
                )
            # The last class has no end: as soon as all keywords may be common, nothing is ruled out.
            table[similarity, size, 0, CLASSES - 1] = min(
                table[similarity, size, 0, CLASSES - 1],
                text_distance(similarity, size, size, max(size, 1 + CLASS_OFFSETS[-1])),
            )
    return table
