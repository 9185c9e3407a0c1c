"""Distributions: how often each size of a quantity occurs, in classes of doubling width.

Operations: recording a value O(1), some 0.1 us, no memory beyond the classes. A value is an integer; its
class is its number of bits, so that there is no search.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_BITS_MAX = 64


class Classes(NamedTuple):
    """A distribution at one moment.

    Parameters
    ----------
    bounds
        Ascending, the last infinite. Values of a class are below its bound, not below the one before.
    counts
        Values in each class.
    total
        Sum of all values.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: int


class Distribution:
    """A distribution of integers from 0 up.

    Parameters
    ----------
    low_bits
        The first class has the values below `2**low_bits`.
    high_bits
        The last one but one ends at `2**high_bits`.
    """

    __slots__ = ("_counts", "_high_bits", "_low_bits", "_total")

    def __init__(self, low_bits: int, high_bits: int) -> None:
        self._low_bits = low_bits
        self._high_bits = high_bits
        self._counts = [0] * (_BITS_MAX + 1)
        self._total = 0

    def note(self, value: int) -> None:
        """Count a value."""
        self._counts[value.bit_length()] += 1
        self._total += value

    def note_all(self, values: Iterable[int]) -> None:
        """Count values."""
        for value in values:
            self.note(value)

    def classes(self) -> Classes:
        """Return the counts so far."""
        low, high = self._low_bits, self._high_bits
        counts = self._counts
        bounds = (*(2.0**bits for bits in range(low, high + 1)), float("inf"))
        found = (sum(counts[: low + 1]), *counts[low + 1 : high + 1], sum(counts[high + 1 :]))
        return Classes(bounds, found, self._total)
