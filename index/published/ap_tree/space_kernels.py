"""Dividing the region of a node into cells (section 3.3.3): each axis separately, by a sample.

Candidate edges are the edges of clauses. Hit probabilities are those of sampled objects in the region,
plus a few that are evenly distributed, and the latter alone if none were sampled.
"""

from __future__ import annotations

import numpy as np

from index.batches import Floats
from index.published.ap_tree import layout as L
from index.published.ap_tree.cut_kernels import cut_heuristically
from index.published.ap_tree.layout import Build, Row, Tree
from index.published.ap_tree.node_kernels import has_within
from safe_region.jit import leaf

_SPREAD = 8.0
"""This many evenly distributed objects are added to the sampled ones of a region."""
_SORT = 4
"""The first of two rows of `boxes` in which coordinates are sorted."""


@leaf
def _sort(numbers: Floats, count: int) -> None:
    """Sort the first numbers in place: Shell's sort, gaps in thirds."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            one = numbers[i]
            place = i
            while place >= gap and numbers[place - gap] > one:
                numbers[place] = numbers[place - gap]
                place -= gap
            numbers[place] = one
        gap //= 3


@leaf
def sample_boxes(tree: Tree, build: Build, head: int, count: int) -> tuple[int, int]:
    """Sample the boxes of a chain; return their number, and that of boxes that contain the region."""
    row = tree.nodes[build.state[L.NODE]]
    stride = 1 + (count - 1) // L.SAMPLE_MAX
    chunks = build.chunks
    taken, within = 0, 0
    chunk, place = head, 0
    while chunk != L.NOTHING and taken < L.SAMPLE_MAX:
        size = int(chunks.sizes[chunk])
        while place < size and taken < L.SAMPLE_MAX:
            at = chunk * L.CHUNK_LENGTH + place
            place += stride
            clause = tree.clauses[chunks.slots[at]]
            if clause["generation"] != chunks.generations[at]:
                continue
            if has_within(row, clause):
                within += 1
                continue
            build.boxes[0, taken] = clause["x1_m"]
            build.boxes[1, taken] = clause["y1_m"]
            build.boxes[2, taken] = clause["x2_m"]
            build.boxes[3, taken] = clause["y2_m"]
            taken += 1
        place -= size
        while chunk != L.NOTHING and place >= 0:
            chunk = int(chunks.links[chunk])
            if chunk == L.NOTHING or place < chunks.sizes[chunk]:
                break
            place -= int(chunks.sizes[chunk])
    return taken, within


@leaf
def sample_positions(tree: Tree, build: Build, row: Row) -> int:
    """Copy the positions of sampled objects that lie in a region; return their number."""
    count = 0
    for i in range(min(tree.meta[L.POSITION_COUNT], L.POSITIONS_MAX)):
        x_m, y_m = tree.positions[2 * i], tree.positions[2 * i + 1]
        if row["x1_m"] <= x_m < row["x2_m"] and row["y1_m"] <= y_m < row["y2_m"]:
            build.positions[0, count] = x_m
            build.positions[1, count] = y_m
            count += 1
    return count


@leaf
def _write_units(build: Build, axis: int, taken: int, seen: int, begin_m: float, end_m: float) -> int:
    """Write candidate edges of an axis, weights and probabilities between them; return their number."""
    edges, units = build.edges, build.units
    lows, highs = build.boxes[_SORT], build.boxes[_SORT + 1]
    count = 0
    for i in range(taken):
        lows[i] = build.boxes[axis, i]
        highs[i] = build.boxes[axis + 2, i]
        for edge in (lows[i], np.nextafter(highs[i], np.inf)):
            if begin_m < edge < end_m:
                edges[count] = edge
                count += 1
    _sort(edges, count)
    _sort(lows, taken)
    _sort(highs, taken)
    places = build.positions[2]
    for i in range(seen):
        places[i] = build.positions[axis, i]
    _sort(places, seen)
    edges[count] = end_m
    found, i_low, i_high, i_seen = 0, 0, 0, 0
    previous = begin_m
    units.low[0] = 0.0
    units.high[0] = 0.0
    units.hit[0] = 0.0
    for i in range(count + 1):
        edge = edges[i]
        if edge == previous:
            continue
        previous = edge
        while i_low < taken and lows[i_low] < edge:
            i_low += 1
        while i_high < taken and highs[i_high] < edge:
            i_high += 1
        while i_seen < seen and places[i_seen] < edge:
            i_seen += 1
        edges[found] = edge
        found += 1
        units.low[found] = i_low
        units.high[found] = i_high
        evenly = _SPREAD * (edge - begin_m) / (end_m - begin_m)
        units.hit[found] = (i_seen + evenly) / (seen + _SPREAD)
    units.low[found] = taken  # clauses beyond the border belong to the cells there
    return found


@leaf
def divide_axis(
    tree: Tree, build: Build, axis: int, taken: int, seen: int, most: int, chosen: Floats
) -> int:
    """Divide an axis into at most `most` intervals; write their starts, return their number."""
    row = tree.nodes[build.state[L.NODE]]
    begin_m = row["x1_m"] if axis == 0 else row["y1_m"]
    end_m = row["x2_m"] if axis == 0 else row["y2_m"]
    chosen[0] = begin_m
    if tree.limits[L.VARIANT] == L.TRIE_QUADTREE:
        chosen[1] = begin_m + (end_m - begin_m) / 2.0
        return 2 if begin_m < chosen[1] < end_m else 1
    unit_count = _write_units(build, axis, taken, seen, begin_m, end_m)
    count = min(most, unit_count)
    cut_heuristically(build.units, unit_count, count, build.bounds)
    for i in range(1, count):
        chosen[i] = build.edges[build.bounds[i] - 1]
    return count


@leaf
def _span_of(begins: Floats, count: int, coordinate: float) -> int:
    low, high = 0, count - 1
    while low < high:
        middle = (low + high + 1) // 2
        if begins[middle] <= coordinate:
            low = middle
        else:
            high = middle - 1
    return low


@leaf
def weigh_cells(tree: Tree, build: Build, taken: int, seen: int, x_count: int, y_count: int) -> float:
    """Write the hit probability of each cell and its sampled clauses; return the sum of the latter."""
    row = tree.nodes[build.state[L.NODE]]
    cells, columns, lines = build.cells, build.columns, build.lines
    width, height = row["x2_m"] - row["x1_m"], row["y2_m"] - row["y1_m"]
    for j in range(y_count):
        top = lines[j + 1] if j + 1 < y_count else row["y2_m"]
        for i in range(x_count):
            right = columns[i + 1] if i + 1 < x_count else row["x2_m"]
            share = (right - columns[i]) / width * ((top - lines[j]) / height)
            cells[0, j * x_count + i] = _SPREAD * share
            cells[1, j * x_count + i] = 0.0
    for i in range(seen):
        column = _span_of(columns, x_count, build.positions[0, i])
        cells[0, _span_of(lines, y_count, build.positions[1, i]) * x_count + column] += 1.0
    entries = 0.0
    for i in range(taken):
        first = _span_of(columns, x_count, build.boxes[0, i])
        last = _span_of(columns, x_count, build.boxes[2, i])
        low = _span_of(lines, y_count, build.boxes[1, i])
        high = _span_of(lines, y_count, build.boxes[3, i])
        entries += (last - first + 1) * (high - low + 1)
        for line in range(low, high + 1):
            for column in range(first, last + 1):
                cells[1, line * x_count + column] += 1.0
    for cell in range(x_count * y_count):
        cells[0, cell] /= seen + _SPREAD
    return entries
