"""The cost of moving clauses in divisions of space: section 4.3.1.

A timestamp is the mean time between two moves of a clause (T_upd). So the only quantity in the costs that
depends on time is the number of moves of a clause per arriving object, and they are in verifications an
object, like the other costs. If no clause has ever moved they are 0.
"""

from __future__ import annotations

import numpy as np

from index.published.ap_tree import layout as L
from index.published.ap_tree.layout import Build, Row, Tree
from safe_region.jit import leaf

_SAMPLE_MAX = 256
"""Clauses that represent all."""
_TIME_MAX = 64
"""T_max: the number of timestamps of the prediction."""
_SMOOTHING = 1.0
_FAR = 1e9
"""In regions: beyond this distance a position within them has no meaning."""


@leaf
def _sample(tree: Tree, build: Build, head: int, count: int) -> int:
    """Write centres and displacements of clauses of a chain to rows of `boxes`; return their number."""
    chunks, boxes = build.chunks, build.boxes
    stride = 1 + (count - 1) // _SAMPLE_MAX
    taken, place = 0, 0
    chunk = head
    while chunk != L.NOTHING and taken < _SAMPLE_MAX:
        while place < chunks.sizes[chunk] and taken < _SAMPLE_MAX:
            at = chunk * L.CHUNK_LENGTH + place
            slot = int(chunks.slots[at])
            clause = tree.clauses[slot]
            if clause["generation"] == chunks.generations[at]:
                boxes[0, taken] = 0.5 * (clause["x1_m"] + clause["x2_m"])
                boxes[1, taken] = 0.5 * (clause["y1_m"] + clause["y2_m"])
                boxes[2, taken] = build.displacements[slot, 0]
                boxes[3, taken] = build.displacements[slot, 1]
                taken += 1
            place += stride
        place -= int(chunks.sizes[chunk])
        chunk = int(chunks.links[chunk])
        while chunk != L.NOTHING and place >= chunks.sizes[chunk]:
            place -= int(chunks.sizes[chunk])
            chunk = int(chunks.links[chunk])
    return taken


@leaf
def _span_of(offset_m: float, length_m: float, side: int) -> int:
    """Return the interval that contains an offset; intervals repeat beyond the end (Fig. 9)."""
    if abs(offset_m) > _FAR * length_m:
        return 0
    share = offset_m / length_m
    return min(side - 1, int((share - np.floor(share)) * side))


@leaf
def _cell_of(build: Build, row: Row, i: int, time: float, side: int) -> int:
    """Return the cell of an even grid that will contain a clause."""
    x_m = build.boxes[0, i] + time * build.boxes[2, i] - row["x1_m"]
    y_m = build.boxes[1, i] + time * build.boxes[3, i] - row["y1_m"]
    line = _span_of(y_m, row["y2_m"] - row["y1_m"], side)
    return line * side + _span_of(x_m, row["x2_m"] - row["x1_m"], side)


@leaf
def _time_until_rebuilt(tree: Tree, build: Build, row: Row, taken: int, side: int) -> int:
    """Return T_Delta (Algorithm 8), to a power of two: the time until a node is rebuilt for drift.

    As in `drift_kernels`, a fraction of its clauses must have gone elsewhere as well.
    """
    old, new = build.cells[0], build.cells[1]
    count = side * side
    total = taken + _SMOOTHING * count
    time = 1
    while time < _TIME_MAX:
        for cell in range(count):
            old[cell] = _SMOOTHING
            new[cell] = _SMOOTHING
        changed = 0
        for i in range(taken):
            before, after = _cell_of(build, row, i, 0.0, side), _cell_of(build, row, i, float(time), side)
            old[before] += 1.0
            new[after] += 1.0
            changed += int(before != after)
        drift = 0.0
        for cell in range(count):
            drift += old[cell] / total * np.log(old[cell] / new[cell])
        if 2 * changed >= tree.shares[L.CHANGE_SHARE] * taken and drift > tree.shares[L.DRIFT_MAX]:
            return time
        time *= 2
    return _TIME_MAX


@leaf
def motion_cost(tree: Tree, build: Build, head: int, count: int, cell_count: int) -> float:
    """Return C_slu + C_irc of a node with this many cells, in verifications an object."""
    if build.pace[0] == 0.0:
        return 0.0
    node = int(build.state[L.NODE])
    row = tree.nodes[node]
    taken = _sample(tree, build, head, count)
    if taken == 0:
        return 0.0
    width, height = row["x2_m"] - row["x1_m"], row["y2_m"] - row["y1_m"]
    passed = 0.0  # the sum of min(1, zeta_s)
    for i in range(taken):
        passed += min(1.0, abs(build.boxes[2, i]) / width + abs(build.boxes[3, i]) / height)
    if passed == 0.0:
        return 0.0
    path_length = 1
    above = int(tree.nodes[node]["parent"])
    while above != L.NOTHING:
        path_length += 1
        above = int(tree.nodes[above]["parent"])
    alive = float(build.state[L.ALIVE])
    log_fanout = np.log2(float(max(2, cell_count)))
    updates = 2.0 * path_length * log_fanout * alive * passed / taken
    levels = 1.0 + max(0.0, np.log2(alive / tree.limits[L.LEAF_MAX]) / log_fanout)
    keywords = float(build.state[L.TOUCHED_COUNT])
    rebuild = alive * log_fanout + levels * (alive * np.sqrt(float(cell_count)) + cell_count * keywords)
    side = max(2, int(np.sqrt(float(cell_count))))
    rebuild /= _time_until_rebuilt(tree, build, row, taken, side)
    return float(build.pace[0] * (updates + rebuild))
