"""The invariants of an AP-Tree, from the definitions. For tests; slow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from index.batches import Floats
from index.contracts import InconsistentIndexError
from index.published.ap_tree import layout as L
from index.published.ap_tree.layout import Build, Numbers, Row, Tree
from index.tables.run_kernels import NO_RUN
from index.tables.runs import check_runs
from index.tables.signature_kernels import signature_of

_BOX = ("x1_m", "y1_m", "x2_m", "y2_m")

Corner = Floats
_NOWHERE = np.full(2, -np.inf)
_EVERYWHERE = np.full(2, np.inf)


def check_tree(tree: Tree, job: Build, used: Numbers, *, is_moving: bool = False) -> None:
    """Verify every invariant of a tree, of a build in progress, and of its arrays.

    If clauses move, an entry may have an older box, which is equal within the region of its leaf.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    meta = tree.meta
    if meta[L.STACK_COUNT] or meta[L.DUE_COUNT] or tree.limits[L.POPULATION] != len(used):
        raise InconsistentIndexError("scratch data of the last change remains")
    _check_order(tree, tree.order, used)
    root, new, old = (int(meta[place]) for place in (L.ROOT, L.JOB_NEW, L.JOB_OLD))
    nodes = list(_below(tree, root))
    _check_nodes(tree, job, nodes, is_served=True)
    _check_places(tree, tree.order, root, used, is_moving=is_moving)
    replaced: list[int] = []
    if new != L.NOTHING:
        _check_order(tree, tree.job_order, used)
        beside = list(_below(tree, new))
        _check_nodes(tree, job, beside, is_served=False)
        _check_job(tree, job, old, new, used)
        nodes += beside
    else:
        for top in job.walk_nodes[: job.state[L.WALK_COUNT]].tolist():
            replaced += _below(tree, top)
    _check_room(tree, nodes + replaced)


def _check_order(tree: Tree, order: Numbers, used: Numbers) -> None:
    codes = np.sort(order[1:][order[1:] > 0])
    if not np.array_equal(codes, np.arange(1, order[0] + 1)):
        raise InconsistentIndexError("the order of keywords has gaps or ties")
    for slot in used.tolist():
        if (order[_words(tree, slot) + 1] == 0).any():
            raise InconsistentIndexError(f"a keyword of clause {slot} is missing in the order")


def _words(tree: Tree, slot: int) -> Numbers:
    start = int(tree.clauses[slot]["keyword_start"])
    return tree.pool[start : start + int(tree.clauses[slot]["keyword_count"])]


def _children(tree: Tree, row: Row) -> list[int]:
    if row["kind"] not in (L.KEYWORDS, L.SPACE):
        return []
    start = int(row["start"])
    found: list[int] = tree.parts["child"][start : start + int(row["count"])].tolist()
    return [child for child in found if child != L.NOTHING]


def _below(tree: Tree, top: int) -> Iterator[int]:
    """Yield a node and all below."""
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        for child in _children(tree, tree.nodes[node]):
            if tree.nodes[child]["parent"] != node:
                raise InconsistentIndexError(f"node {child} has a parent other than {node}")
            stack.append(child)


def _check_nodes(tree: Tree, job: Build, nodes: list[int], *, is_served: bool) -> None:
    filled = int(job.state[L.NODE]) if job.state[L.PHASE] == L.FILL and not is_served else L.NOTHING
    unweighed = set()
    while filled != L.NOTHING:  # the weights of ancestors are updated at the end of filling
        unweighed.add(filled)
        filled = int(tree.nodes[filled]["parent"])
    for node in nodes:
        row = tree.nodes[node]
        if row["kind"] == L.LEAF:
            weight = int(row["count"])
        elif row["kind"] in (L.KEYWORDS, L.SPACE):
            weight = int(tree.nodes["weight"][_children(tree, row)].sum())
            _check_parts(tree, node)
        elif row["kind"] == L.PENDING and not is_served:
            weight = 0
        else:
            raise InconsistentIndexError(f"node {node} is neither a leaf nor partitioned")
        if row["weight"] != weight and node not in unweighed:
            raise InconsistentIndexError(f"node {node} has a wrong count of entries")


def _check_parts(tree: Tree, node: int) -> None:
    """Verify that cuts are disjoint and in order, and that cells fill the region."""
    row = tree.nodes[node]
    first, count = int(row["start"]) + 1, int(row["count"]) - 1
    parts = tree.parts[first : first + count]
    if row["kind"] == L.KEYWORDS:
        ends = np.stack([parts["low"], parts["high"]], axis=1).ravel()
        if (parts["low"] > parts["high"]).any() or (np.diff(ends)[1::2] <= 0).any():
            raise InconsistentIndexError(f"the partitions of node {node} overlap or are out of order")
        return
    columns, lines = int(row["x_count"]), count // int(row["x_count"])
    for begins, low, high in (
        (parts["low"][:columns], row["x1_m"], row["x2_m"]),
        (parts["high"][:lines], row["y1_m"], row["y2_m"]),
    ):
        if begins[0] != low or (np.diff(begins) <= 0).any() or begins[-1] >= high:
            raise InconsistentIndexError(f"the cells of node {node} do not cover its region")
    if columns * lines != count:
        raise InconsistentIndexError(f"the cells of node {node} are not a grid")


def _places_of(tree: Tree, order: Numbers, top: int, slot: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the nodes without parts that a clause belongs to, with the path there."""
    clause = tree.clauses[slot]
    codes = np.sort(order[_words(tree, slot) + 1]) - 1
    stack = [(top, [top])]
    while stack:
        node, way = stack.pop()
        row = tree.nodes[node]
        if row["kind"] not in (L.KEYWORDS, L.SPACE):
            yield node, way
            continue
        start = int(row["start"])
        parts = tree.parts[start : start + int(row["count"])]
        if row["kind"] == L.KEYWORDS:
            numbers = [L.DUMMY]
            if len(codes) > row["offset"]:
                code = codes[row["offset"]]
                numbers = [i for i in range(1, len(parts)) if parts[i]["low"] <= code <= parts[i]["high"]]
        else:
            numbers = _cells_of(row, parts[1:], clause)
        for child in parts["child"][numbers].tolist() if numbers else [L.NOTHING]:
            if child == L.NOTHING:
                yield L.NOTHING, way
            else:
                stack.append((child, [*way, child]))


def _cells_of(row: Row, cells: Row, clause: Row) -> list[int]:
    if (
        clause["x1_m"] <= row["x1_m"]
        and clause["x2_m"] >= row["x2_m"]
        and clause["y1_m"] <= row["y1_m"]
        and clause["y2_m"] >= row["y2_m"]
    ):
        return [L.DUMMY]
    columns = int(row["x_count"])
    met = []
    for begins, low, high in (
        (cells["low"][:columns], clause["x1_m"], clause["x2_m"]),
        (cells["high"][: len(cells) // columns], clause["y1_m"], clause["y2_m"]),
    ):
        first = max(0, int(np.searchsorted(begins, low, side="right")) - 1)
        last = max(0, int(np.searchsorted(begins, high, side="right")) - 1)
        met.append(range(first, last + 1))
    return [1 + line * columns + column for line in met[1] for column in met[0]]


def _entries(tree: Tree, leaf: int, *, is_moving: bool = False) -> list[int]:
    """Return the slots in a leaf; verify that entries agree with their clauses."""
    row = tree.nodes[leaf]
    slots = []
    for entry in range(int(row["start"]), int(row["start"] + row["count"])):
        mine = tree.runs.records[entry]
        slot = int(mine["slot"])
        clause = tree.clauses[slot]
        low, high = _region(tree, row) if is_moving else (_NOWHERE, _EVERYWHERE)
        there, here = _clipped(mine, low, high), _clipped(clause, low, high)
        is_covered = (there[:2] <= here[:2]).all() and (there[2:] >= here[2:]).all()
        is_close = (np.abs(here - there) <= np.spacing(np.abs(here).astype(np.float32))).all()
        if not is_covered or not is_close or mine["signature"] != signature_of(_words(tree, slot)):
            raise InconsistentIndexError(f"entry {entry} contradicts its clause")
        if mine["generation"] != clause["generation"]:
            raise InconsistentIndexError(f"entry {entry} belongs to a removed clause")
        slots.append(slot)
    return slots


def _region(tree: Tree, row: Row) -> tuple[Corner, Corner]:
    """Return the corners of a leaf's region; those at the border of the root are unbounded."""
    root = tree.nodes[tree.meta[L.ROOT]]
    low = [row[name] if row[name] > root[name] else -np.inf for name in _BOX[:2]]
    high = [row[name] if row[name] < root[name] else np.inf for name in _BOX[2:]]
    return np.array(low), np.array(high)


def _clipped(box: Row, low: Corner, high: Corner) -> Corner:
    """Return the intersection of a box and a region."""
    corners = np.array([box[name] for name in _BOX], dtype=np.float64)
    return np.concatenate([np.maximum(corners[:2], low), np.minimum(corners[2:], high)])


def _check_places(tree: Tree, order: Numbers, root: int, used: Numbers, *, is_moving: bool) -> None:
    """Verify that every clause is in exactly its leaves."""
    expected: dict[int, list[int]] = {}
    for slot in used.tolist():
        for node, _ in _places_of(tree, order, root, slot):
            if node == L.NOTHING:
                raise InconsistentIndexError(f"clause {slot} belongs to a part without an owner")
            expected.setdefault(node, []).append(slot)
    for node in _below(tree, root):
        if tree.nodes[node]["kind"] == L.LEAF and sorted(
            _entries(tree, node, is_moving=is_moving)
        ) != expected.get(node, []):
            raise InconsistentIndexError(f"leaf {node} has wrong clauses")


def _chain(tree: Tree, job: Build, chunk: int, place: int = 0) -> set[int]:
    """Return the slots in a chain that have not left since."""
    found: set[int] = set()
    while chunk != L.NOTHING:
        first, end = chunk * L.CHUNK_LENGTH + place, chunk * L.CHUNK_LENGTH + int(job.chunks.sizes[chunk])
        slots = job.chunks.slots[first:end]
        is_alive = tree.clauses["generation"][slots] == job.chunks.generations[first:end]
        found |= set(slots[is_alive].tolist())
        chunk, place = int(job.chunks.links[chunk]), 0
    return found


def _held(tree: Tree, job: Build, new: int) -> dict[int, set[int]]:
    """Return the clauses of the leaves and pending nodes of a build in progress."""
    held: dict[int, set[int]] = {}
    for node in _below(tree, new):
        kind = tree.nodes[node]["kind"]
        if kind == L.LEAF:
            held[node] = set(_entries(tree, node))
        elif kind == L.PENDING:
            held[node] = _chain(tree, job, int(tree.nodes[node]["start"]))
    return held


def _collected(tree: Tree, job: Build, old: int, used: Numbers) -> list[int]:
    """Return the clauses of a build in progress; verify that they are those of the old subtree."""
    found = []
    for slot in used.tolist():
        ways = [way for _, way in _places_of(tree, tree.order, int(tree.meta[L.ROOT]), slot)]
        is_within = any(old in way for way in ways)
        is_marked = tree.clauses[slot]["mark"] == tree.meta[L.JOB_NUMBER]
        if is_marked > is_within or (is_within > is_marked and job.state[L.WALK_COUNT] == 0):
            raise InconsistentIndexError(
                f"clause {slot} is wrongly part of the rebuild, or missing in it"
            )
        if is_marked:
            found.append(slot)
    return found


def _check_job(tree: Tree, job: Build, old: int, new: int, used: Numbers) -> None:
    """Verify that a build in progress has all collected clauses, and none that has left."""
    state = job.state
    left: set[int] = set()
    if state[L.PHASE] in (L.DISTRIBUTE, L.FILL):
        left = _chain(tree, job, int(state[L.CHUNK]), int(state[L.PLACE]))
    held = _held(tree, job, new)
    expected: dict[int, set[int]] = {}
    for slot in _collected(tree, job, old, used):
        for node, way in _places_of(tree, tree.job_order, new, slot):
            is_left = slot in left and int(state[L.NODE]) in way
            if not is_left and (node == L.NOTHING or slot not in held[node]):
                raise InconsistentIndexError(f"clause {slot} is missing in its rebuild")
            expected.setdefault(node, set()).add(slot)
    for node, slots in held.items():
        if not slots <= expected.get(node, set()):
            raise InconsistentIndexError(f"node {node} has clauses of other nodes")


def _check_room(tree: Tree, nodes: list[int]) -> None:
    """Verify that used and free nodes, parts and entries together are all of them, none twice."""
    free = []
    one = int(tree.meta[L.FREE_NODE])
    while one != L.NOTHING:
        free.append(one)
        one = int(tree.nodes[one]["parent"])
    if sorted(nodes + free) != list(range(tree.meta[L.NODE_END])) or len(free) != tree.meta[L.FREE_COUNT]:
        raise InconsistentIndexError("nodes are missing or used twice")
    rows = tree.nodes[nodes]
    leaves = rows[(rows["kind"] == L.LEAF) & (rows["room"] != NO_RUN)]
    check_runs(tree.runs, zip(leaves["start"].tolist(), leaves["room"].tolist(), strict=True))
    parted = rows[(rows["kind"] == L.KEYWORDS) | (rows["kind"] == L.SPACE)]
    found = [(int(row["start"]), 1 << int(row["room"])) for row in parted]
    for size_class, head in enumerate(tree.part_heads.tolist()):
        start = head
        while start != L.NOTHING:
            found.append((start, 1 << size_class))
            start = int(tree.parts[start]["child"])
    end = 0
    for start, count in sorted(found):
        if start != end:
            raise InconsistentIndexError("parts overlap or leave a gap")
        end = start + count
    if end != tree.meta[L.PART_END]:
        raise InconsistentIndexError("the array of parts has a wrong end")
