"""Matching: in each cell that an object intersects, through the lists of its keywords.

A clause with entries in several cells that an object with an area intersects is found in the cell that
contains the lower left corner of the intersection of the two boxes.

Operations: O(keywords * cells) look-ups an object, O(1) an entry, O(keywords) a clause whose box
intersects.
"""

from __future__ import annotations

import numpy as np

from index.batches import Ints
from index.published.clause_cells.scan_kernels import Item, Published, item_of, most_keywords
from index.published.grid_files.cell_kernels import cell_count, cell_in, span_in
from index.published.postings.layout import CANDIDATES, NO_LIST, NO_WORD, Files
from index.published.postings.list_kernels import list_at
from index.published.postings.place_kernels import Span
from index.published.postings.word_kernels import word_of
from index.tables.within_kernels import has_all, keep
from safe_region.jit import kernel, leaf


@leaf
def _scan(files: Files, word: int, cell: int, span: Span, item: Item, found: Ints, total: int) -> int:
    """Keep the clauses of a cell, one of a span that an object intersects; return the new number."""
    is_apart = cell_count(span) > 1
    number = list_at(files, word, cell)
    if number == NO_LIST:
        return total
    start, count = int(files.lists[number]["start"]), int(files.lists[number]["count"])
    files.meta[CANDIDATES] += count
    for place in range(start, start + count):
        entry = files.entries.records[place]
        if (
            item.x1_m > entry["x2_m"]
            or item.x2_m < entry["x1_m"]
            or item.y1_m > entry["y2_m"]
            or item.y2_m < entry["y1_m"]
        ):
            continue
        row = files.rows[entry["slot"]]
        if (
            item.x1_m > row["x2_m"]
            or item.x2_m < row["x1_m"]
            or item.y1_m > row["y2_m"]
            or item.y2_m < row["y1_m"]
        ):
            continue
        if is_apart:
            x_m, y_m = max(item.x1_m, row["x1_m"]), max(item.y1_m, row["y1_m"])
            if cell_in(files, span_in(files, word, x_m, y_m, x_m, y_m), 0) != cell:
                continue
        first = int(row["keyword_start"])
        required = files.pool[first : first + int(row["keyword_count"])]
        if has_all(required, item.words, 0, item.words.shape[0]):
            total = keep(found, total, row["id"])
    return total


@leaf
def _keys_of(files: Files, item: Item, keys: Ints) -> int:
    """Write the keywords of an object that are keys of clauses, as words; return their number."""
    count = 0
    for keyword in item.words:
        word = word_of(files, int(keyword))
        if word != NO_WORD and files.words[word]["key_count"] > 0:
            keys[count] = word
            count += 1
    return count


@kernel
def match(files: Files, published: Published, first_row: int, offsets: Ints, found: Ints) -> int:
    """Match objects, from one on; return the first without space (see `index.tables.matches`)."""
    keys = np.empty(most_keywords(published), dtype=np.int64)
    for i in range(first_row, published.x_m.shape[0]):
        item = item_of(published, i)
        total = int(offsets[i])
        before = files.meta[CANDIDATES]
        for j in range(_keys_of(files, item, keys)):
            word = int(keys[j])
            span = span_in(files, word, item.x1_m, item.y1_m, item.x2_m, item.y2_m)
            for step in range(cell_count(span)):
                total = _scan(files, word, cell_in(files, span, step), span, item, found, total)
        offsets[i + 1] = total
        if total > found.shape[0]:
            files.meta[CANDIDATES] = before
            return i
    return int(published.x_m.shape[0])
