"""Statistics of the workload: the frequencies of keywords among objects, and the positions of objects.

Until objects arrive, clauses represent them: each counts as an object in the centre of its box with its
keywords. Positions are counted in a pyramid of grids, 1, 2 * 2, ... up to 64 * 64 cells over the root's
square; a smaller cell has the fraction of a cell of the last grid that its area is. Positions outside
count at the border, as in the trees.

Operations: each O(1), except `least_frequent`, O(keywords).
"""

from __future__ import annotations

import math

from index.published.clause_cells.layout import Cells
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.id_map_kernels import LOAD_MAX, NO_VALUE, find, pop, put
from index.tables.quad_kernels import NO_NODE
from safe_region.jit import leaf

NO_KEYWORD = -1
NO_WORD = -1

LEVELS = 7
"""Grids of the pyramid."""
SIDE = 1 << (LEVELS - 1)
PYRAMID_SIZE = ((1 << (2 * LEVELS)) - 1) // 3

WORD_END = 3
"""In meta: every row of words from here on is unused."""
WORD_FREE = 4
"""In meta: the first free row, NO_WORD if there is none."""
WORD_COUNT = 5
"""In meta: rows in use."""
SEEN_TOTAL = 6
"""In meta: objects and clauses that were counted."""

DONE = 0
WORDS_FULL = -1
WORD_KEYS_FULL = -2


@leaf
def word_of(cells: Cells, keyword: int) -> int:
    """Return the row of a keyword, or NO_WORD if no clause requires it."""
    found = find(cells.word_keys, cells.word_values, keyword)
    return NO_WORD if found == NO_VALUE else found


@leaf
def require_word(cells: Cells, keyword: int) -> int:
    """Count a clause that requires a keyword; return a status."""
    meta = cells.meta
    number = word_of(cells, keyword)
    if number == NO_WORD:
        if meta[WORD_COUNT] + 1 > cells.word_keys.shape[0] * LOAD_MAX:
            return WORD_KEYS_FULL
        if meta[WORD_FREE] == NO_WORD and meta[WORD_END] >= cells.words.shape[0]:
            return WORDS_FULL
        number = take_rows(cells.words["root"], meta, WORD_FREE, meta, WORD_END, 1)
        meta[WORD_COUNT] += 1
        row = cells.words[number]
        row["keyword"] = keyword
        row["seen_count"] = 0
        row["clause_count"] = 0
        row["key_count"] = 0
        row["root"] = NO_NODE
        put(cells.word_keys, cells.word_values, keyword, number)
    cells.words[number]["clause_count"] += 1
    cells.words[number]["seen_count"] += 1
    return DONE


@leaf
def release_word(cells: Cells, keyword: int) -> None:
    """Discount a clause that requires a keyword; delete the keyword with the last clause."""
    number = word_of(cells, keyword)
    row = cells.words[number]
    row["clause_count"] -= 1
    if row["clause_count"] == 0:
        pop(cells.word_keys, cells.word_values, keyword)
        row["keyword"] = NO_KEYWORD
        give_back_rows(cells.words["root"], cells.meta, WORD_FREE, number)
        cells.meta[WORD_COUNT] -= 1


@leaf
def least_frequent(cells: Cells, slot: int) -> int:
    """Return the keyword of a clause that the fewest clauses require, the first of several."""
    clause = cells.clauses[slot]
    start = int(clause["keyword_start"])
    best = int(cells.pool[start])
    least = int(cells.words[word_of(cells, best)]["clause_count"])
    for i in range(start + 1, start + int(clause["keyword_count"])):
        count = int(cells.words[word_of(cells, int(cells.pool[i]))]["clause_count"])
        if count < least:
            best = int(cells.pool[i])
            least = count
    return best


@leaf
def _along(place_m: float, middle_m: float, half_m: float) -> int:
    """Return the stripe, of SIDE ones, that contains a coordinate."""
    share = (place_m - middle_m) / half_m + 1.0
    return int(min(max(math.floor(min(max(share, 0.0), 2.0) * (SIDE / 2)), 0), SIDE - 1))


@leaf
def see_place(cells: Cells, x_m: float, y_m: float) -> None:
    """Count an object at a position."""
    column = _along(x_m, cells.square[0], cells.square[2])
    row = _along(y_m, cells.square[1], cells.square[2])
    for level in range(LEVELS):
        off = LEVELS - 1 - level
        cells.seen[((1 << (2 * level)) - 1) // 3 + ((row >> off) << level) + (column >> off)] += 1
    cells.meta[SEEN_TOTAL] += 1


@leaf
def share_at(cells: Cells, level: int, column: int, row: int) -> float:
    """Return the fraction of the objects that are in a cell, by its depth and its place in that grid."""
    off = max(0, level - (LEVELS - 1))
    level -= off
    count = cells.seen[((1 << (2 * level)) - 1) // 3 + ((row >> off) << level) + (column >> off)]
    return float(count / max(1, cells.meta[SEEN_TOTAL]) / (1 << (2 * off)))


@leaf
def frequency_of(cells: Cells, keyword: int) -> float:
    """Return the fraction of the objects that have a keyword, which a clause requires."""
    seen = cells.words[word_of(cells, keyword)]["seen_count"]
    return float(min(1.0, seen / max(1, cells.meta[SEEN_TOTAL])))
