"""Cells of grids that a box intersects; a keyword without a grid has a single, unbounded cell.

Operations: each O(1).
"""

from __future__ import annotations

from index.published.postings import layout as L
from index.published.postings.layout import Files
from index.published.postings.place_kernels import Span, span_of
from safe_region.jit import leaf


@leaf
def has_grid(files: Files, word: int) -> bool:
    """Return whether a keyword's entries are divided by place."""
    is_list = files.meta[L.SHAPE] == L.LISTS_OF_GRIDS and files.words[word]["directory"] == L.NO_DIRECTORY
    return bool(not is_list)


@leaf
def is_long(files: Files, word: int) -> bool:
    """Return whether a keyword should get a grid before one more entry."""
    if has_grid(files, word):
        return False
    number = int(files.words[word]["list"])
    return bool(number != L.NO_LIST and files.lists[number]["count"] >= files.meta[L.LONG])


@leaf
def span_in(files: Files, word: int, x1_m: float, y1_m: float, x2_m: float, y2_m: float) -> Span:
    """Return the cells of a keyword's grid that a box intersects."""
    if has_grid(files, word):
        return span_of(files, x1_m, y1_m, x2_m, y2_m)
    return Span(0, 0, 0, 0)


@leaf
def cell_count(span: Span) -> int:
    """Return the number of cells of a span."""
    return (span.column_2 - span.column_1 + 1) * (span.row_2 - span.row_1 + 1)


@leaf
def cell_in(files: Files, span: Span, step: int) -> int:
    """Return one of the cells of a span."""
    width = span.column_2 - span.column_1 + 1
    return int((span.row_1 + step // width) * files.meta[L.SIDE] + span.column_1 + step % width)
