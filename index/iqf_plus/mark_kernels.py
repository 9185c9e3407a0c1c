"""Marks: the summary of an object's keywords in an entry, in one number.

The low five bits count the keywords, up to MANY. The next eight are a lower bound of the sum of their
squared weights, by sixteenths of powers of two. Each keyword sets one of the 50 bits above. A bit that is
not set proves that the keyword is absent.
"""

from __future__ import annotations

from index.batches import KeywordIds
from index.tables.norm_kernels import LARGEST, code_of_norm
from safe_region.jit import leaf

MANY = 31
"""This count represents all from here on."""
_COUNT_BITS = 5
_NORM_BITS = 8
_BIT_COUNT = 50
_FACTOR = 0x9E3779B1  # times a keyword id, below 2**31, this stays below 2**63


@leaf
def mark_bit(keyword: int) -> int:
    """Return the bit of a keyword."""
    return 1 << (_COUNT_BITS + _NORM_BITS + ((int(keyword) * _FACTOR) >> 13) % _BIT_COUNT)


@leaf
def mark_of(keywords: KeywordIds, norm: float) -> int:
    """Return the mark of an object. O(keywords)."""
    mark = int(min(keywords.shape[0], MANY)) | code_of_norm(norm) << _COUNT_BITS
    for i in range(keywords.shape[0]):
        mark |= mark_bit(keywords[i])
    return mark


@leaf
def keyword_count_of(mark: int) -> int:
    """Return the number of the object's keywords, MANY for more."""
    return int(mark) & MANY


@leaf
def norm_code_of(mark: int) -> int:
    """Return the code of the sum of the object's squared weights."""
    return (int(mark) >> _COUNT_BITS) & LARGEST
