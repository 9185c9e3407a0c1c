"""The division of a node by keywords or by place: the cost model (section 3.3.1).

Without a partition a node costs as many verifications as it has clauses. A partition costs those of its
dummy, and of each part times the probability that an object visits it.
"""

from __future__ import annotations

import numpy as np

from index.published.ap_tree import layout as L
from index.published.ap_tree.cut_kernels import (
    add_layer,
    cut_heuristically,
    part_cost,
    read_choices,
)
from index.published.ap_tree.layout import Build, Tree
from index.published.ap_tree.motion_kernels import motion_cost
from index.published.ap_tree.space_kernels import divide_axis, sample_boxes, sample_positions, weigh_cells
from safe_region.jit import leaf

_SEEN_LEAST = 64
"""From this many sampled objects on, they determine keyword frequencies; before, clauses do."""
_SCAN_SHARE = 16
"""If more than one in this many codes was tallied, all codes are scanned instead of sorting those."""
_PSEUDO = 0.5


@leaf
def sort_touched(build: Build) -> None:
    """Sort the tallied codes."""
    count, known = int(build.state[L.TOUCHED_COUNT]), int(build.order[0])
    touched = build.touched
    if count * _SCAN_SHARE > known:
        found = 0
        for code in range(known):
            if build.tally[code] > 0:
                touched[found] = code
                found += 1
        return
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            one = touched[i]
            place = i
            while place >= gap and touched[place - gap] > one:
                touched[place] = touched[place - gap]
                place -= gap
            touched[place] = one
        gap //= 3


@leaf
def _hit_probability(tree: Tree, build: Build, code: int, whole: float) -> float:
    if tree.seen[0] < _SEEN_LEAST:
        return float(build.tally[code] / whole)
    keyword = int(build.words[code])
    seen = int(tree.seen[keyword + 1]) if keyword + 1 < tree.seen.shape[0] else 0
    return float((seen + _PSEUDO) / (tree.seen[0] + _PSEUDO))


@leaf
def write_keyword_units(tree: Tree, build: Build) -> None:
    """Make units of the tallied keywords, and set the number of cuts. O(keywords)."""
    state, units = build.state, build.units
    count = int(state[L.TOUCHED_COUNT])
    whole = float(state[L.ALIVE] - state[L.BARE])
    least = 0.0
    if tree.limits[L.VARIANT] == L.OPTIMAL and count > L.OPTIMAL_UNITS_MAX:
        least = whole / L.OPTIMAL_UNITS_MAX
    found = 0
    weight, hit, start_weight = 0.0, 0.0, 0.0
    units.low[0] = 0.0
    units.high[0] = 0.0
    units.hit[0] = 0.0
    build.unit_ends[0] = 0
    for i in range(count):
        code = int(build.touched[i])
        weight += build.tally[code]
        hit += _hit_probability(tree, build, code, whole)
        if weight - start_weight < least and i + 1 < count:
            continue
        start_weight = weight
        found += 1
        units.low[found] = weight
        units.high[found] = weight
        units.hit[found] = hit
        build.unit_ends[found] = i + 1
    state[L.UNIT_COUNT] = found
    most = int(min(tree.limits[L.FANOUT], max(2, whole // tree.limits[L.PER_PART])))
    state[L.CUT_COUNT] = found if tree.limits[L.VARIANT] == L.TRIE_QUADTREE else min(found, most)
    state[L.LAYER] = 1


@leaf
def add_next_layer(build: Build) -> int:
    """Do one step of the dynamic program; return its cost, in accesses to clauses."""
    state = build.state
    unit_count, layer = int(state[L.UNIT_COUNT]), int(state[L.LAYER])
    add_layer(build.units, unit_count, layer, build.costs, build.choices)
    state[L.LAYER] = layer + 1
    return 1 + unit_count * unit_count // 128


@leaf
def keywords_cost(tree: Tree, build: Build) -> float:
    """Choose the cuts; return the cost, infinite if there is nothing to divide."""
    state = build.state
    unit_count, count = int(state[L.UNIT_COUNT]), int(state[L.CUT_COUNT])
    if state[L.TOUCHED_COUNT] == 0:
        return np.inf
    variant = tree.limits[L.VARIANT]
    if variant == L.OPTIMAL:
        read_choices(unit_count, count, build.choices, build.bounds)
    elif variant == L.TRIE_QUADTREE:
        for i in range(count + 1):
            build.bounds[i] = i
    else:
        cut_heuristically(build.units, unit_count, count, build.bounds)
    cost = float(state[L.BARE])
    for i in range(count):
        build.cut_ends[i] = build.unit_ends[build.bounds[i + 1]]
        cost += part_cost(build.units, int(build.bounds[i]), int(build.bounds[i + 1]))
    return cost


@leaf
def space_cost(tree: Tree, build: Build, head: int, count: int) -> tuple[float, int, int, float]:
    """Choose the cells; return the cost, columns, rows, and the number of cells of a clause."""
    row = tree.nodes[build.state[L.NODE]]
    if not row["has_space"] or row["depth"] >= L.DEPTH_MAX:
        return np.inf, 0, 0, 1.0
    taken, within = sample_boxes(tree, build, head, count)
    if taken == 0:
        return np.inf, 0, 0, 1.0
    seen = sample_positions(tree, build, row)
    most = min(tree.limits[L.FANOUT], max(4, int(build.state[L.ALIVE]) // tree.limits[L.PER_PART]))
    side = int(np.sqrt(float(most)))
    x_count = divide_axis(tree, build, 0, taken, seen, side, build.columns)
    y_count = divide_axis(tree, build, 1, taken, seen, side, build.lines)
    entries = weigh_cells(tree, build, taken, seen, x_count, y_count)
    share = float(taken + within)
    spread = (entries + within) / share
    if x_count * y_count == 1 or row["spread"] * spread > L.SPREAD_MAX:
        return np.inf, 0, 0, 1.0
    cost = float(within)
    for cell in range(x_count * y_count):
        cost += build.cells[0, cell] * build.cells[1, cell]
    cost *= float(build.state[L.ALIVE]) / share
    return cost + motion_cost(tree, build, head, count, x_count * y_count), x_count, y_count, spread


@leaf
def choice(tree: Tree, alive: float, by_keywords: float, by_space: float) -> int:
    """Return the kind of a node, by the costs of both partitions; LEAF if nothing is gained."""
    variant = tree.limits[L.VARIANT]
    has_cuts, has_gain = by_keywords < np.inf, by_space < alive
    if variant in (L.KEYWORDS_FIRST, L.TRIE_QUADTREE):
        if has_cuts:
            return L.KEYWORDS
        return L.SPACE if has_gain else L.LEAF
    if variant == L.SPACE_FIRST:
        if by_space < np.inf:
            return L.SPACE
        return L.KEYWORDS if has_cuts else L.LEAF
    if by_keywords < min(by_space, alive):
        return L.KEYWORDS
    return L.SPACE if has_gain else L.LEAF
