"""Deciding whether a leaf is divided by place, by the next keyword, or not at all.

Costs are entries scanned per object that reaches the node. Objects are expected where clauses are, so
samples of the node's clauses represent both. A copy of an entry costs COPY_PRICE, for its memory.

Operations: decide O(samples ** 2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from index.batches import Floats
from index.inverted_grid import layout as L
from index.inverted_grid.cell_kernels import keyword_of, line_of, side_of
from index.inverted_grid.layout import Grid
from index.inverted_grid.node_kernels import CELLS_MAX, word_depth
from index.inverted_grid.step_kernels import STEP_MAX, first_of, last_of
from safe_region.geometry.sort_kernels import sort
from safe_region.jit import array_leaf, leaf

SAMPLES = 64
OBJECTS = 32
"""The number of samples that represent objects."""

PLACE_PRICE = 10.0
"""The cost of visiting a cell, in entries."""
WORD_PRICE = 40.0
"""The cost of looking up an object's keywords, in entries."""
KEPT_PRICE = 6.0
"""The cost of visiting the child for kept clauses, in entries."""
COPY_PRICE = 8.0
"""The cost of one more entry per clause, or 32 bytes, in entries. With 3, five million clauses of the
sizes of ap-tree.txt take 498 bytes each and are matched as fast as with 8, where they take 372."""

OBJECT_SHARE = 3.0
"""Keywords of an object for each keyword that a clause requires."""

SIDE_LOG_MAX = 6
SIZE_CLASS_MAX = 12
_EDGE_SHARE = 0.04
"""The fraction of the centres beyond the cells on each side, in the outermost cells."""


class Decision(NamedTuple):
    """The decision on a leaf."""

    kind: int
    size_class: int
    x: int
    y: int
    x_scale: float
    y_scale: float


@leaf
def _clip(low: float, high: float, step: float) -> float:
    return min(max(step, low), high)


@leaf
def _narrow(bounds: Floats, axis: int, start: float, scale: float, line: int, side: int) -> None:
    """Narrow bounds to a line of cells."""
    if scale == 0.0:
        return
    if line > 0:
        bounds[axis] = max(bounds[axis], start + line / scale)
    if line < side - 1:
        bounds[axis + 2] = min(bounds[axis + 2], start + (line + 1) / scale)


@array_leaf
def region_of(grid: Grid, number: int) -> Floats:
    """Return the bounds of a node's region: x1, y1, x2, y2."""
    bounds = np.array([0.0, 0.0, float(STEP_MAX), float(STEP_MAX)])
    child = number
    parent = int(grid.parents[child])
    while parent != L.NO_NODE:
        node = grid.nodes[parent]
        if node["kind"] == L.PLACE and node["kept"] != child:
            side = side_of(node)
            row, column = divmod(child - int(node["first"]), side)
            _narrow(bounds, 0, float(node["x"]), np.float64(node["x_scale"]), column, side)
            _narrow(bounds, 1, float(node["y"]), np.float64(node["y_scale"]), row, side)
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
        sample[i, 0] = _clip(bounds[0], bounds[2], float(first_of(entry["x"])))
        sample[i, 1] = _clip(bounds[1], bounds[3], float(first_of(entry["y"])))
        sample[i, 2] = _clip(bounds[0], bounds[2], float(last_of(entry["x"])))
        sample[i, 3] = _clip(bounds[1], bounds[3], float(last_of(entry["y"])))
        sample[i, 4] = (sample[i, 0] + sample[i, 2]) / 2.0
        sample[i, 5] = (sample[i, 1] + sample[i, 3]) / 2.0
    return sample


@array_leaf
def _layout_of(sample: Floats) -> Floats:
    """Return the bounds of the cells: x1, y1, x2, y2, without the outermost centres."""
    size = sample.shape[0]
    skipped = int(size * _EDGE_SHARE)
    x_m, y_m = sample[:, 4].copy(), sample[:, 5].copy()
    sort(x_m)
    sort(y_m)
    return np.array([x_m[skipped], y_m[skipped], x_m[size - 1 - skipped], y_m[size - 1 - skipped]])


@leaf
def _scale_of(low: float, high: float, side: int) -> float:
    """Return the number of cells per step, 0 if the range is empty."""
    if high - low < side:
        return 0.0
    return np.float64(np.float32(side / (high - low)))


@array_leaf
def _place_cost(sample: Floats, frame: Floats, side: int, count: int) -> float:
    """Return the cost of `side` columns and rows of cells."""
    size = sample.shape[0]
    x_scale, y_scale = _scale_of(frame[0], frame[2], side), _scale_of(frame[1], frame[3], side)
    spans = np.empty((size, 4), dtype=np.int64)
    copies = 0
    kept = 0
    for i in range(size):
        for axis in range(4):
            start = int(frame[axis % 2])
            scale = x_scale if axis % 2 == 0 else y_scale
            spans[i, axis] = line_of(int(sample[i, axis]), start, scale, side)
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
        column = line_of(int(sample[one, 4]), int(frame[0]), x_scale, side)
        row = line_of(int(sample[one, 5]), int(frame[1]), y_scale, side)
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
    return np.float64(PLACE_PRICE + load + COPY_PRICE * memory + (KEPT_PRICE if kept > 0 else 0.0))


@leaf
def _word_cost(grid: Grid, number: int, depth: int, size_class: int) -> float:
    """Return the cost of children by the next keyword."""
    node = grid.nodes[number]
    count = int(node["count"])
    size = min(count, SAMPLES)
    load = 0.0
    clauses = max(1, int(grid.meta[L.CLAUSES]))
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
    """Return the best decision for a leaf."""
    count = int(grid.nodes[number]["count"])
    sample = _sampled(grid, number, region_of(grid, number))
    frame = _layout_of(sample)
    best = Decision(L.LEAF, 0, 0, 0, 0.0, 0.0)
    cost = float(count)
    for side_log in range(1, SIDE_LOG_MAX + 1):
        side = 1 << side_log
        if side * side > 2 * count:
            break
        here = _place_cost(sample, frame, side, count)
        if here < cost:
            cost = here
            best = Decision(
                L.PLACE,
                2 * side_log,
                int(frame[0]),
                int(frame[1]),
                _scale_of(frame[0], frame[2], side),
                _scale_of(frame[1], frame[3], side),
            )
    depth = word_depth(grid, number)
    size_class = 3
    while size_class < SIZE_CLASS_MAX and 8 << size_class < count:
        size_class += 1
    if _word_cost(grid, number, depth, size_class) < cost:
        best = Decision(L.WORD, size_class, 0, 0, 0.0, 0.0)
    return best
