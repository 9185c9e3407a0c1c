"""How a leaf is parted: by place, by the next keyword, or not at all.

Costs are entries looked at per object that comes to the node. Objects are expected where clauses are, so
samples of the node's clauses stand for both. A copy of an entry costs COPY_PRICE, since memory has a price.

Operations: decide O(samples ** 2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from index.batches import Floats
from index.inverted_grid.cell_kernels import keyword_of, line_of, side_of
from index.inverted_grid.layout import CLAUSES, LEAF, NO_NODE, PLACE, WORD, Grid
from index.inverted_grid.node_kernels import CELLS_MAX, word_depth
from safe_region.jit import array_leaf, leaf

SAMPLES = 64
OBJECTS = 32
"""Of the samples, so many stand for objects."""

PLACE_PRICE = 10.0
"""To go to a cell, in entries."""
WORD_PRICE = 40.0
"""To look up an object's keywords, in entries."""
KEPT_PRICE = 6.0
"""To go to what is kept, in entries."""
COPY_PRICE = 3.0
"""One more entry per clause, or 32 bytes, in entries."""

OBJECT_SHARE = 3.0
"""So many keywords has an object for each that a clause requires."""

SIDE_LOG_MAX = 6
SIZE_CLASS_MAX = 12
_FAR = 1e30
_EDGE_SHARE = 0.04
"""So many of the centres lie beyond the cells on each side, in the outermost ones."""


class Decision(NamedTuple):
    """What to do with a leaf."""

    kind: int
    size_class: int
    x_m: float
    y_m: float
    x_per_m: float
    y_per_m: float


@leaf
def _clip(low: float, high: float, x_m: float) -> float:
    return min(max(x_m, low), high)


@array_leaf
def region_of(grid: Grid, number: int) -> Floats:
    """Return the bounds of a node's place: x1, y1, x2, y2."""
    bounds = np.array([-_FAR, -_FAR, _FAR, _FAR])
    child = number
    parent = int(grid.parents[child])
    while parent != NO_NODE:
        node = grid.nodes[parent]
        if node["kind"] == PLACE and node["kept"] != child:
            side = side_of(node)
            row, column = divmod(child - int(node["first"]), side)
            for axis in range(2):
                line = column if axis == 0 else row
                start_m = np.float64(node["x_m"] if axis == 0 else node["y_m"])
                per_m = np.float64(node["x_per_m"] if axis == 0 else node["y_per_m"])
                if line > 0 and per_m > 0.0:
                    bounds[axis] = max(bounds[axis], start_m + line / per_m)
                if line < side - 1 and per_m > 0.0:
                    bounds[axis + 2] = min(bounds[axis + 2], start_m + (line + 1) / per_m)
        child = parent
        parent = int(grid.parents[child])
    return bounds


@array_leaf
def _sampled(grid: Grid, number: int, bounds: Floats) -> Floats:
    """Return boxes and centres of a sample of a leaf's entries, within bounds: x1, y1, x2, y2, x, y."""
    node = grid.nodes[number]
    count = int(node["count"])
    size = min(count, SAMPLES)
    sample = np.empty((size, 6))
    for i in range(size):
        entry = grid.entries.records[int(node["first"]) + i * count // size]
        sample[i, 0] = _clip(bounds[0], bounds[2], np.float64(entry["x1_m"]))
        sample[i, 1] = _clip(bounds[1], bounds[3], np.float64(entry["y1_m"]))
        sample[i, 2] = _clip(bounds[0], bounds[2], np.float64(entry["x2_m"]))
        sample[i, 3] = _clip(bounds[1], bounds[3], np.float64(entry["y2_m"]))
        sample[i, 4] = (sample[i, 0] + sample[i, 2]) / 2.0
        sample[i, 5] = (sample[i, 1] + sample[i, 3]) / 2.0
    return sample


@array_leaf
def _layout_of(sample: Floats) -> Floats:
    """Return where cells begin and end: x1, y1, x2, y2, without the outermost centres."""
    size = sample.shape[0]
    skipped = int(size * _EDGE_SHARE)
    x_m = np.sort(sample[:, 4])
    y_m = np.sort(sample[:, 5])
    return np.array([x_m[skipped], y_m[skipped], x_m[size - 1 - skipped], y_m[size - 1 - skipped]])


@leaf
def _per_m(low: float, high: float, side: int) -> float:
    """Cells per metre, 0 if there is nothing to part."""
    if high - low <= max(abs(low), abs(high)) * 1e-6:
        return 0.0
    return side / (high - low)


@array_leaf
def _place_cost(sample: Floats, frame: Floats, side: int, count: int) -> float:
    """Cost of so many columns and rows of cells."""
    size = sample.shape[0]
    x_per_m, y_per_m = _per_m(frame[0], frame[2], side), _per_m(frame[1], frame[3], side)
    spans = np.empty((size, 4), dtype=np.int64)
    copies = 0
    kept = 0
    for i in range(size):
        for axis in range(4):
            start_m = frame[axis % 2]
            spans[i, axis] = line_of(
                sample[i, axis], start_m, x_per_m if axis % 2 == 0 else y_per_m, side
            )
        cells = (spans[i, 2] - spans[i, 0] + 1) * (spans[i, 3] - spans[i, 1] + 1)
        if cells > min(CELLS_MAX, side * side - 1):
            kept += 1
            spans[i, 0] = side  # nowhere
            copies += 1
        else:
            copies += cells
    met = 0
    objects = min(size, OBJECTS)
    for i in range(objects):
        one = i * size // objects
        column = line_of(sample[one, 4], frame[0], x_per_m, side)
        row = line_of(sample[one, 5], frame[1], y_per_m, side)
        for j in range(size):
            met += (
                (spans[j, 0] <= column)
                & (column <= spans[j, 2])
                & (spans[j, 1] <= row)
                & (row <= spans[j, 3])
            )
    scale = count / size
    load = met / objects * scale + kept * scale
    memory = (copies / size - 1.0) + side * side / count
    return PLACE_PRICE + load + COPY_PRICE * memory + (KEPT_PRICE if kept > 0 else 0.0)


@leaf
def _word_cost(grid: Grid, number: int, depth: int, size_class: int) -> float:
    """Cost of children by the next keyword."""
    node = grid.nodes[number]
    count = int(node["count"])
    size = min(count, SAMPLES)
    load = 0.0
    clauses = max(1, int(grid.meta[CLAUSES]))
    for i in range(size):
        entry = grid.entries.records[int(node["first"]) + i * count // size]
        keyword = keyword_of(grid, int(entry["slot"]), depth)
        if keyword < 0:
            load += 1.0
        else:
            load += min(1.0, OBJECT_SHARE * grid.word_counts[keyword] / clauses)
    scale = count / size
    return WORD_PRICE + load * scale + COPY_PRICE * (1 << size_class) / count


@array_leaf
def decide(grid: Grid, number: int) -> Decision:
    """Return what is best for a leaf."""
    count = int(grid.nodes[number]["count"])
    sample = _sampled(grid, number, region_of(grid, number))
    frame = _layout_of(sample)
    best = Decision(LEAF, 0, 0.0, 0.0, 0.0, 0.0)
    cost = np.float64(count)
    for side_log in range(1, SIDE_LOG_MAX + 1):
        side = 1 << side_log
        if side * side > 2 * count:
            break
        here = _place_cost(sample, frame, side, count)
        if here < cost:
            cost = here
            best = Decision(
                PLACE,
                2 * side_log,
                frame[0],
                frame[1],
                _per_m(frame[0], frame[2], side),
                _per_m(frame[1], frame[3], side),
            )
    depth = word_depth(grid, number)
    size_class = 3
    while size_class < SIZE_CLASS_MAX and 8 << size_class < count:
        size_class += 1
    if _word_cost(grid, number, depth, size_class) < cost:
        best = Decision(WORD, size_class, 0.0, 0.0, 0.0, 0.0)
    return best
