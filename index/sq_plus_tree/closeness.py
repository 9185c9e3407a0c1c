"""Closeness, one minus the text distance, for keywords of equal weight: tables for kernels.

`closeness_kernels` compiles the functions that are in the subset for it, and explains the use of
closeness.
"""

from __future__ import annotations

import functools

import numpy as np

from index.sq_plus_tree.layout import CLASS_OFFSETS, CLASSES, COMBINED_MAX, SIZE_MAX, Singles
from safe_region.scoring.formulas import SET_SIMILARITIES, text_distance

_SIMILARITIES = len(SET_SIMILARITIES)
KINDS = 2 * _SIMILARITIES * SIZE_MAX
"""The number of kinds: similarities and sizes of subscriptions, of loose entries and others."""

_UP = 2.0**-23
"""Twice the relative error of float32."""
TINY = 1e-30
"""More than the absolute error of float32."""


def outward(value: float) -> np.float32:
    """Return a float32 that is not less, by three times its rounding at most."""
    return np.float32(value + abs(value) * _UP + TINY)


def kind_of(similarity: int, size: int, loose: bool) -> int:  # noqa: FBT001 - kernels know no keywords
    """Return the kind of a subscription."""
    above = _SIMILARITIES if loose else 0
    return (above + int(similarity) - 1) * SIZE_MAX + min(int(size), SIZE_MAX) - 1


@functools.cache
def closeness_table() -> Singles:
    """Return an array of shape (SIZE_MAX + 1, COMBINED_MAX + 1, KINDS), rounded up.

    The element [count, common, kind] is the closeness of an object of `count` keywords to a subscription
    of a kind if they share exactly `common`. If the kind is loose, it is the greatest possible closeness
    for any number of shared keywords. The table is computed once, in a tenth of a second, and is
    read-only.
    """
    table = np.zeros((SIZE_MAX + 1, COMBINED_MAX + 1, KINDS), dtype=np.float32)
    for similarity in SET_SIMILARITIES:
        for size in range(1, SIZE_MAX + 1):
            combined, loose = (kind_of(similarity, size, is_loose) for is_loose in (False, True))
            for count in range(1, SIZE_MAX + 1):
                most = min(size, count)
                table[count, :, loose] = _closeness(similarity, most, size, count)
                for common in range(1, min(most, COMBINED_MAX) + 1):
                    table[count, common, combined] = _closeness(similarity, common, size, count)
    return table


def _closeness(similarity: int, common: int, size: int, count: int) -> np.float32:
    return outward(1.0 - text_distance(similarity, common, size, count))


def class_closeness(table: Singles) -> Singles:
    """Return the largest closeness in each class, shape (COMBINED_MAX + 1, KINDS, CLASSES).

    The element [common, kind, class] is computed from the table that `closeness_table` returns.
    """
    found = np.zeros((COMBINED_MAX + 1, KINDS, CLASSES), dtype=np.float32)
    ends = (*CLASS_OFFSETS[1:], SIZE_MAX)
    for common in range(1, COMBINED_MAX + 1):
        for number in range(CLASSES):
            first = common + CLASS_OFFSETS[number]
            last = min(common + ends[number] - 1, SIZE_MAX)
            found[common, :, number] = table[first : last + 1, common].max(axis=0)
    return found
