"""Insertion, removal and moves of clauses, and their matches with stored objects: Algorithms 6 and 7.

A clause that moves descends once, with its old and its new box. At a node that both boxes reach, and
within whose region they are equal, nothing is done (case 1). A leaf that only the old box reaches loses
the clause (case 2). In a leaf that both reach the entry is rewritten (case 3). A leaf that only the new
box reaches gets the clause (case 4). An object is reported if it is in the new box and not in the old, or
the reverse: differences of boxes are not boxes. During a rebuild in slices, case 1 descends as well, so
that entries have the generation of their clauses.
"""

from __future__ import annotations

from index.batches import Floats, Ints
from index.published.ap_plus_tree import layout as L
from index.published.ap_plus_tree.layout import Lists
from index.published.ap_plus_tree.object_kernels import box_of
from index.published.ap_plus_tree.part_kernels import (
    give_child,
    lacks_chunks_below,
    lacks_open_cut,
    open_cut,
)
from index.published.ap_plus_tree.scan_kernels import (
    changes_in_both,
    is_same_within,
    lacks_results,
    old_box,
    scan_list,
)
from index.published.ap_tree import layout as T
from index.published.ap_tree.change_kernels import enter_leaf, note_due
from index.published.ap_tree.chunk_kernels import add_pending, lacks_chunks
from index.published.ap_tree.drift_kernels import update_above
from index.published.ap_tree.layout import Build, Numbers, Row, Tree
from index.published.ap_tree.leaf_kernels import find_entry, remove_entry, write_entry
from index.published.ap_tree.node_kernels import column_at, find_cut, lacks_nodes, lacks_stack, line_at
from index.published.ap_tree.order_kernels import clause_codes, enrol
from safe_region.jit import kernel, leaf

_BEGIN = 0
_TREE = 1
_LEAVE_JOB = 2
_ENTER_JOB = 3

_Box = tuple[float, float, float, float]


@leaf
def _push(tree: Tree, node: int, mode: int) -> None:
    tree.stack[tree.meta[T.STACK_COUNT]] = 4 * node + mode
    tree.meta[T.STACK_COUNT] += 1


@leaf
def _push_part(
    tree: Tree, job: Build, lists: Lists, order: Numbers, node: int, number: int, mode: int
) -> None:
    """Push the child of a part, created if it is required and missing."""
    child = int(tree.parts[int(tree.nodes[node]["start"]) + number]["child"])
    if child == T.NOTHING:
        if not mode & L.NEW:
            return
        child = give_child(tree, job, lists, order, node, number)
    _push(tree, child, mode)


@leaf
def _descend_by_keywords(
    tree: Tree, job: Build, lists: Lists, order: Numbers, node: int, slot: int, mode: int
) -> bool:
    row = tree.nodes[node]
    number = T.DUMMY
    if mode == L.NEW and (lacks_nodes(tree, 1) or lacks_chunks_below(lists, node, 1)):
        return False
    if clause_codes(tree, order, slot) > row["offset"]:
        code = int(tree.codes[row["offset"]])
        if mode != L.NEW:
            number = find_cut(tree, row, code, 1)
        elif lacks_open_cut(tree, lists, node, code):
            return False
        else:
            number = open_cut(tree, lists, order, node, code)
    tree.meta[T.STACK_COUNT] -= 1
    _push_part(tree, job, lists, order, node, number, mode)
    return True


@leaf
def _contains(row: Row, box: _Box) -> bool:
    """Return whether a box contains the region of a node."""
    return bool(
        box[0] <= row["x1_m"]
        and box[1] <= row["y1_m"]
        and box[2] >= row["x2_m"]
        and box[3] >= row["y2_m"]
    )


@leaf
def _cells_of(
    tree: Tree,
    row: Row,
    box: _Box,
    is_wanted: bool,  # noqa: FBT001
) -> tuple[int, int, int, int]:
    """Return the first and last column, and row, of cells that a box is in; none if in the dummy."""
    if not is_wanted or _contains(row, box):
        return 0, -1, 0, -1
    return (
        column_at(tree, row, box[0]),
        column_at(tree, row, box[2]),
        line_at(tree, row, box[1]),
        line_at(tree, row, box[3]),
    )


@leaf
def _size(cells: tuple[int, int, int, int]) -> int:
    return (cells[1] - cells[0] + 1) * (cells[3] - cells[2] + 1)


@leaf
def _has(cells: tuple[int, int, int, int], column: int, line: int) -> bool:
    return cells[0] <= column <= cells[1] and cells[2] <= line <= cells[3]


@leaf
def _descend_by_place(
    tree: Tree, job: Build, lists: Lists, order: Numbers, node: int, slot: int, mode: int
) -> bool:
    row = tree.nodes[node]
    old, new = old_box(lists), box_of(tree.clauses[slot])
    was_within = mode & L.OLD != 0 and _contains(row, old)
    is_within = mode & L.NEW != 0 and _contains(row, new)
    before, now = (
        _cells_of(tree, row, old, mode & L.OLD != 0),
        _cells_of(tree, row, new, mode & L.NEW != 0),
    )
    needed = _size(now) + int(is_within)
    used = int(tree.meta[T.STACK_COUNT])
    if (
        lacks_stack(tree, tree.stack, used, _size(before) + needed + 1)
        or (needed > 0 and lacks_nodes(tree, needed))
        or lacks_chunks_below(lists, node, needed)
    ):
        return False
    tree.meta[T.STACK_COUNT] = used - 1
    if was_within or is_within:
        dummy_mode = (L.OLD if was_within else 0) | (L.NEW if is_within else 0)
        _push_part(tree, job, lists, order, node, T.DUMMY, dummy_mode)
    columns = int(row["x_count"])
    for line in range(before[2], before[3] + 1):
        for column in range(before[0], before[1] + 1):
            here = L.BOTH if _has(now, column, line) else L.OLD
            _push_part(tree, job, lists, order, node, 1 + line * columns + column, here)
    for line in range(now[2], now[3] + 1):
        for column in range(now[0], now[1] + 1):
            if not _has(before, column, line):
                _push_part(tree, job, lists, order, node, 1 + line * columns + column, L.NEW)
    return True


@leaf
def _pass_leaf(tree: Tree, job: Build, node: int, slot: int, mode: int) -> bool:
    """Insert, remove or update a clause in the leaf on top; return false if space is lacking."""
    kind = tree.nodes[node]["kind"]
    if mode == L.NEW:
        if kind == T.PENDING:
            if lacks_chunks(tree, job.chunks, 1):
                return False
            add_pending(tree, job, node, slot)
        elif not enter_leaf(tree, node, slot):
            return False
    elif kind == T.LEAF:
        if mode == L.BOTH:
            write_entry(tree, find_entry(tree, node, slot), slot)
        elif remove_entry(tree, node, slot):
            note_due(tree, update_above(tree, node, -1))
    tree.meta[T.STACK_COUNT] -= 1
    return True


@leaf
def _pass_node(
    tree: Tree, job: Build, lists: Lists, order: Numbers, node: int, slot: int, mode: int
) -> bool:
    """Descend below the node on top, or change it if it is a leaf; return false if space is lacking."""
    kind = tree.nodes[node]["kind"]
    if kind == T.KEYWORDS:
        return _descend_by_keywords(tree, job, lists, order, node, slot, mode)
    if kind == T.SPACE:
        return _descend_by_place(tree, job, lists, order, node, slot, mode)
    return _pass_leaf(tree, job, node, slot, mode)


@leaf
def _walk(
    tree: Tree,
    job: Build,
    lists: Lists,
    order: Numbers,
    slot: int,
    kind: int,
    reports: bool,  # noqa: FBT001
    found: Ints,
    left: Ints,
) -> bool:
    """Process the stack; return false, to be called again, if space is lacking."""
    meta = tree.meta
    while meta[T.STACK_COUNT] > 0:
        top = int(tree.stack[meta[T.STACK_COUNT] - 1])
        node, mode = top // 4, top % 4
        row = tree.nodes[node]
        if node == meta[T.JOB_OLD]:
            meta[T.MEETS_JOB] |= mode
        scans = reports and kind != L.LEAVE and lists.counts[L.LISTS * node + L.KEPT] > 0
        if mode == L.BOTH:
            root = tree.nodes[meta[T.ROOT]]
            is_same = is_same_within(root, row, old_box(lists), box_of(tree.clauses[slot]))
            if is_same and not changes_in_both(lists):
                scans = False
                if meta[T.JOB_OLD] == T.NOTHING:
                    meta[T.STACK_COUNT] -= 1
                    continue
        if scans and lacks_results(lists, node, found, left):
            return False
        if not _pass_node(tree, job, lists, order, node, slot, mode):
            return False
        if scans:
            scan_list(tree, lists, node, slot, mode, kind != L.ENTER, found, left)
    return True


@leaf
def _begin(tree: Tree, lists: Lists, slot: int, kind: int, boxes: Floats) -> None:
    meta = tree.meta
    clause = tree.clauses[slot]
    lists.same[0], lists.same[1], lists.same[2], lists.same[3] = boxes[4], boxes[5], boxes[6], boxes[7]
    lists.old[0], lists.old[1] = clause["x1_m"], clause["y1_m"]
    lists.old[2], lists.old[3] = clause["x2_m"], clause["y2_m"]
    meta[T.MEETS_JOB] = 0
    if kind == L.LEAVE or meta[T.JOB_OLD] != T.NOTHING:
        clause["generation"] += 1
    if kind != L.LEAVE:
        clause["mark"] = 0
    if kind == L.ENTER:
        start = int(clause["keyword_start"])
        for place in range(start, start + int(clause["keyword_count"])):
            enrol(tree.order, tree.pool[place])
            enrol(tree.job_order, tree.pool[place])
        _push(tree, int(meta[T.ROOT]), L.NEW)
    elif kind == L.LEAVE:
        _push(tree, int(meta[T.ROOT]), L.OLD)
    else:
        clause["x1_m"], clause["y1_m"], clause["x2_m"], clause["y2_m"] = boxes[:4]
        _push(tree, int(meta[T.ROOT]), L.BOTH)


@leaf
def _change(
    tree: Tree, job: Build, lists: Lists, slot: int, kind: int, boxes: Floats, found: Ints, left: Ints
) -> bool:
    """Process one clause; return false, to be called again, if space is lacking."""
    meta = tree.meta
    if meta[T.STAGE] == _BEGIN:
        _begin(tree, lists, slot, kind, boxes)
        meta[T.STAGE] = _TREE
    if meta[T.STAGE] == _TREE:
        if not _walk(tree, job, lists, tree.order, slot, kind, True, found, left):
            return False
        meta[T.STAGE] = _LEAVE_JOB
        if meta[T.MEETS_JOB] & L.OLD:
            _push(tree, int(meta[T.JOB_NEW]), L.OLD)
    if meta[T.STAGE] == _LEAVE_JOB:
        if not _walk(tree, job, lists, tree.job_order, slot, kind, False, found, left):
            return False
        meta[T.STAGE] = _ENTER_JOB
        if meta[T.MEETS_JOB] & L.NEW:
            tree.clauses[slot]["mark"] = meta[T.JOB_NUMBER]
            _push(tree, int(meta[T.JOB_NEW]), L.NEW)
    return _walk(tree, job, lists, tree.job_order, slot, kind, False, found, left)


@kernel
def change_all(
    tree: Tree,
    job: Build,
    lists: Lists,
    slots: Numbers,
    kind: int,
    boxes: Floats,
    found_offsets: Ints,
    found: Ints,
    left_offsets: Ints,
    left: Ints,
) -> int:
    """Insert, remove or move clauses; write the matches that start and end as CSR.

    Continues at `state[DONE]`. Returns FINISHED, OUT_OF_ROOM if an array must be lengthened first, or
    HAS_DUE if nodes are waiting for a rebuild. A row of `boxes` has x1, y1, x2, y2 of the new box of a
    clause, and of the box within which nothing changes; the latter is for moves.
    """
    meta, state = tree.meta, lists.state
    while state[L.DONE] < slots.shape[0]:
        i = state[L.DONE]
        j = i if boxes.shape[0] > 1 else 0
        if meta[T.STAGE] == _BEGIN:
            found_offsets[i] = state[L.FOUND]
            left_offsets[i] = state[L.LEFT]
        if not _change(tree, job, lists, int(slots[i]), kind, boxes[j], found, left):
            return T.OUT_OF_ROOM
        meta[T.STAGE] = _BEGIN
        state[L.DONE] = i + 1
        if kind == L.ENTER:
            tree.limits[T.POPULATION] += 1
        elif kind == L.LEAVE:
            tree.limits[T.POPULATION] -= 1
        if meta[T.DUE_COUNT] > 0:
            return T.HAS_DUE
    found_offsets[slots.shape[0]] = state[L.FOUND]
    left_offsets[slots.shape[0]] = state[L.LEFT]
    return T.FINISHED
