"""Scanning entries for an object: their boxes first, then the clauses with their keywords.

A clause with entries in several cells that an object with an area intersects is found in the cell that
contains the lower left corner of the intersection of the two boxes. Cells of one clause are disjoint and
cover its box.

Operations: scan O(entries), and O(keywords) for each whose box intersects the object.
"""

from __future__ import annotations

from typing import NamedTuple

from index.batches import Floats, Ints, KeywordIds, ObjectBatch
from index.published.clause_cells.cell_kernels import CANDIDATES, meets
from index.published.clause_cells.layout import Cells
from index.published.clause_cells.workload_kernels import NO_WORD, see_place, word_of
from index.tables.within_kernels import has_all, keep
from safe_region.jit import array_leaf, leaf


class Published(NamedTuple):
    """Objects: a row for each."""

    x_m: Floats
    y_m: Floats
    x1_m: Floats  # the box about it
    y1_m: Floats
    x2_m: Floats
    y2_m: Floats
    keyword_offsets: Ints
    keyword_ids: KeywordIds


def published_of(objects: ObjectBatch) -> Published:
    """Return the arrays of a batch of objects, as kernels take them."""
    extents = objects.extents()
    return Published(
        objects.x_m,
        objects.y_m,
        extents.x1_m,
        extents.y1_m,
        extents.x2_m,
        extents.y2_m,
        objects.keywords.offsets,
        objects.keywords.ids,
    )


class Item(NamedTuple):
    """One object."""

    x_m: float
    y_m: float
    x1_m: float
    y1_m: float
    x2_m: float
    y2_m: float
    words: KeywordIds


@array_leaf
def item_of(published: Published, i: int) -> Item:
    """Return an object of a batch."""
    words = published.keyword_ids[published.keyword_offsets[i] : published.keyword_offsets[i + 1]]
    return Item(
        published.x_m[i],
        published.y_m[i],
        published.x1_m[i],
        published.y1_m[i],
        published.x2_m[i],
        published.y2_m[i],
        words,
    )


@leaf
def most_keywords(published: Published) -> int:
    """Return the maximum number of keywords of an object of a batch."""
    most = 0
    for i in range(published.x_m.shape[0]):
        most = max(most, int(published.keyword_offsets[i + 1] - published.keyword_offsets[i]))
    return most


@leaf
def known_words(cells: Cells, item: Item, known: Ints) -> int:
    """Write the rows of an object's keywords that clauses require; return their number."""
    count = 0
    for keyword in item.words:
        number = word_of(cells, int(keyword))
        if number != NO_WORD:
            known[count] = number
            count += 1
    return count


@leaf
def close(cells: Cells, item: Item, known: Ints, known_count: int, candidates: int) -> None:
    """Count an object that was matched, and the clauses that were verified for it."""
    cells.meta[CANDIDATES] += candidates
    see_place(cells, item.x_m, item.y_m)
    for i in range(known_count):
        cells.words[known[i]]["seen_count"] += 1


@leaf
def scan(cells: Cells, number: int, cell: int, item: Item, found: Ints, total: int) -> int:
    """Keep the clauses of a cell's list that match an object; return the new number of results."""
    is_area = item.x1_m < item.x2_m or item.y1_m < item.y2_m
    start = int(cells.lists[number]["start"])
    for place in range(start, start + int(cells.lists[number]["count"])):
        entry = cells.entries.records[place]
        if (
            item.x1_m > entry["x2_m"]
            or item.x2_m < entry["x1_m"]
            or item.y1_m > entry["y2_m"]
            or item.y2_m < entry["y1_m"]
        ):
            continue
        clause = cells.clauses[entry["slot"]]
        if (
            item.x1_m > clause["x2_m"]
            or item.x2_m < clause["x1_m"]
            or item.y1_m > clause["y2_m"]
            or item.y2_m < clause["y1_m"]
        ):
            continue
        if is_area and clause["home_count"] > 1:
            x_m = max(item.x1_m, clause["x1_m"])
            y_m = max(item.y1_m, clause["y1_m"])
            if not meets(cells, cell, x_m, y_m, x_m, y_m):
                continue
        first = int(clause["keyword_start"])
        required = cells.pool[first : first + int(clause["keyword_count"])]
        if has_all(required, item.words, 0, item.words.shape[0]):
            total = keep(found, total, clause["id"])
    return total
