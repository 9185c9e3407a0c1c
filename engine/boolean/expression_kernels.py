"""Match an object against all clauses of an expression at once, in one pass over its keywords.

A subscription has at most 64 clauses, so a set of them is a number of 64 bits. A table has, for each
keyword of the expression, the set of clauses that require it and the set that exclude it. A pass over an
object's keywords counts for each clause how many of its required keywords the object has. The bits of the
counters lie in seven numbers, with all counters side by side. Clauses require fewer than 128 keywords,
and all of them together have fewer than 8,192.

Cost: O(keywords of the clauses) to fill a table, O(1) a keyword of an object, however many clauses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.boolean.layout import NOTHING
from engine.polygons import RingPool
from index.batches import KeywordIds
from safe_region.jit import array_leaf, kernel, leaf

Rows = npt.NDArray[Any]
Slots = npt.NDArray[np.int32]
Sets = npt.NDArray[np.uint64]

TABLE_SIZE = 8192
"""Places of a table: a power of two, four times the keywords that 64 clauses of 16 and 16 may have."""
_SHIFT = 32 - 13
_MULTIPLIER = 2654435769
"""2**32 divided by the golden ratio (Knuth): neighbours get places far apart."""
_EMPTY = -1
_BITS = 7
"""The bits of a counter."""


class Clauses(NamedTuple):
    """Arrays of subscriptions and their clauses."""

    subscriptions: Rows
    clauses: Rows
    pool: KeywordIds
    excluded: Rows
    excluded_pool: KeywordIds
    rings: RingPool


class Table(NamedTuple):
    """The clauses that require and exclude each keyword."""

    keywords: KeywordIds
    """Places of keywords, by their hash."""
    required: Sets
    excluded: Sets
    used: Slots
    """Occupied places, the first `meta[0]`."""
    needed: Sets
    """Bits of the number of keywords that each clause requires; and, last, all clauses."""
    meta: Slots


@array_leaf
def new_table(size: int) -> Table:
    """Return an empty table of TABLE_SIZE places; one of size 0 is never filled."""
    return Table(
        np.full(size, _EMPTY, dtype=np.int32),
        np.zeros(size, dtype=np.uint64),
        np.zeros(size, dtype=np.uint64),
        np.zeros(size, dtype=np.int32),
        np.zeros(_BITS + 1, dtype=np.uint64),
        np.zeros(1, dtype=np.int32),
    )


@leaf
def fill_table(table: Table, clauses: Clauses, slots: Slots) -> None:
    """Replace the contents of a table by the clauses of an expression."""
    for i in range(table.meta[0]):
        table.keywords[table.used[i]] = _EMPTY
    table.meta[0] = 0
    table.needed[:] = np.uint64(0)
    for number in range(slots.shape[0]):
        clause = np.uint64(1) << np.uint64(number)
        row = clauses.clauses[slots[number]]
        table.needed[_BITS] |= clause
        for bit in range(_BITS):
            if row["keyword_count"] >> bit & 1:
                table.needed[bit] |= clause
        start = row["keyword_start"]
        for i in range(start, start + row["keyword_count"]):
            table.required[_place(table, clauses.pool[i])] |= clause
        if row["excluded"] != NOTHING:
            excluded = clauses.excluded[row["excluded"]]
            start = excluded["keyword_start"]
            for i in range(start, start + excluded["keyword_count"]):
                table.excluded[_place(table, clauses.excluded_pool[i])] |= clause


@leaf
def _found(table: Table, keyword: int) -> int:
    """Return the place of a keyword, or the place where it would be."""
    place = (int(keyword) * _MULTIPLIER & 0xFFFFFFFF) >> _SHIFT
    while table.keywords[place] != keyword and table.keywords[place] != _EMPTY:
        place = (place + 1) & (TABLE_SIZE - 1)
    return place


@leaf
def _place(table: Table, keyword: int) -> int:
    """Return the place of a keyword, which is inserted if it is missing."""
    place = _found(table, keyword)
    if table.keywords[place] == _EMPTY:
        table.keywords[place] = keyword
        table.required[place] = table.excluded[place] = np.uint64(0)
        table.used[table.meta[0]] = place
        table.meta[0] += 1
    return place


@leaf
def matches_clause(table: Table, words: KeywordIds) -> bool:
    """Return whether an object with these keywords matches a clause."""
    b0 = b1 = b2 = b3 = b4 = b5 = b6 = out = np.uint64(0)
    for i in range(words.shape[0]):
        place = _found(table, words[i])
        if table.keywords[place] == _EMPTY:
            continue
        out |= table.excluded[place]
        carry = table.required[place]
        b0, carry = b0 ^ carry, b0 & carry
        b1, carry = b1 ^ carry, b1 & carry
        b2, carry = b2 ^ carry, b2 & carry
        b3, carry = b3 ^ carry, b3 & carry
        b4, carry = b4 ^ carry, b4 & carry
        b5, carry = b5 ^ carry, b5 & carry
        b6 ^= carry
    needed = table.needed
    lacks = (b0 ^ needed[0]) | (b1 ^ needed[1]) | (b2 ^ needed[2]) | (b3 ^ needed[3])
    lacks |= (b4 ^ needed[4]) | (b5 ^ needed[5]) | (b6 ^ needed[6])
    return bool((needed[_BITS] & ~(lacks | out)) != np.uint64(0))


@kernel
def mark_covered(
    offsets: npt.NDArray[np.int64],
    keyword_offsets: npt.NDArray[np.int64],
    keywords: KeywordIds,
    covered: Rows,
) -> None:
    """Mark the clauses that require all keywords that another clause of the expression requires.

    The other clause finds every object that they match. Of two clauses that require the same the first
    covers the second.

    Parameters
    ----------
    offsets
        Expression i has the clauses `offsets[i] : offsets[i + 1]`.
    keyword_offsets, keywords
        The required keywords of clauses.
    covered
        Output: 1 or 0 for each clause.
    """
    for row in range(offsets.shape[0] - 1):
        for one in range(offsets[row], offsets[row + 1]):
            covered[one] = 0
            for other in range(offsets[row], offsets[row + 1]):
                if other == one or covered[one]:
                    continue
                more = keyword_offsets[one + 1] - keyword_offsets[one]
                less = keyword_offsets[other + 1] - keyword_offsets[other]
                if (less < more or (less == more and other < one)) and _has_all(
                    keywords[keyword_offsets[other] : keyword_offsets[other + 1]],
                    keywords[keyword_offsets[one] : keyword_offsets[one + 1]],
                ):
                    covered[one] = 1


@leaf
def _has_all(few: KeywordIds, many: KeywordIds) -> bool:
    """Return whether all keywords of `few` are in `many`; both are increasing."""
    place = 0
    for i in range(few.shape[0]):
        while place < many.shape[0] and many[place] < few[i]:
            place += 1
        if place == many.shape[0] or many[place] != few[i]:
            return False
    return True
