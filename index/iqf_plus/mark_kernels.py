"""Marks: what an entry says of its object's keywords, in one number.

The low eight bits count them, up to MANY; each keyword sets one of the 54 bits above. A bit that is not
set proves that the keyword is absent.
"""

from __future__ import annotations

from index.batches import KeywordIds
from safe_region.jit import leaf

MANY = 255
"""This count stands for all from here on."""

_COUNT_BITS = 8
_BIT_COUNT = 54
_FACTOR = 0x9E3779B1  # times a keyword id, below 2**31, this stays below 2**63


@leaf
def mark_bit(keyword: int) -> int:
    """Bit of a keyword."""
    return 1 << (_COUNT_BITS + ((int(keyword) * _FACTOR) >> 13) % _BIT_COUNT)


@leaf
def mark_of(keywords: KeywordIds) -> int:
    """Return the mark of an object. O(keywords)."""
    mark = int(min(keywords.shape[0], MANY))
    for i in range(keywords.shape[0]):
        mark |= mark_bit(keywords[i])
    return mark


@leaf
def keyword_count_of(mark: int) -> int:
    """How many keywords the object has, MANY for more."""
    return int(mark) & MANY
