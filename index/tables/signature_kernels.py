"""Signatures: a keyword set as 62 bits, to exclude common keywords without fetching the set.

A keyword sets one bit. A bit that is not set proves that the keyword is absent; one that is set proves
nothing. 62 bits, so that signatures are positive int64 with and without the JIT.
"""

from __future__ import annotations

from index.batches import KeywordIds
from safe_region.jit import leaf

_BIT_COUNT = 62
_SHORT_BIT_COUNT = 31
_FACTOR = 0x9E3779B1  # times a keyword id, below 2**31, this stays below 2**63


@leaf
def bit_of(keyword: int) -> int:
    """Return the position of a keyword's bit."""
    return ((int(keyword) * _FACTOR) >> 13) % _BIT_COUNT


@leaf
def signature_of(keywords: KeywordIds) -> int:
    """Return the bits of all keywords. O(keywords)."""
    signature = 0
    for i in range(keywords.shape[0]):
        signature |= 1 << bit_of(keywords[i])
    return signature


@leaf
def short_signature_of(keywords: KeywordIds) -> int:
    """Return the bits of all keywords, 31 of them, for entries that have to be small. O(keywords)."""
    signature = 0
    for i in range(keywords.shape[0]):
        signature |= 1 << (bit_of(keywords[i]) % _SHORT_BIT_COUNT)
    return signature
