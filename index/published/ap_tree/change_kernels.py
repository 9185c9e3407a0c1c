"""Insertion, removal and moves of clauses: each descends to the leaves of its keywords and its box.

While a part of the tree is being rebuilt in slices, changes to it are applied to both subtrees. A kernel
that lacks space, or has nodes to be rebuilt, returns a status and continues when it is called again.
"""

from __future__ import annotations

from index.batches import Floats
from index.published.ap_tree import layout as L
from index.published.ap_tree.chunk_kernels import add_pending, lacks_chunks
from index.published.ap_tree.drift_kernels import update_above
from index.published.ap_tree.layout import Build, Numbers, Row, Tree
from index.published.ap_tree.leaf_kernels import add_entry, lacks_entries, make_room, remove_entry
from index.published.ap_tree.node_kernels import (
    column_at,
    find_cut,
    has_within,
    lacks_cut,
    lacks_nodes,
    lacks_stack,
    line_at,
    make_child,
    place_in_cut,
)
from index.published.ap_tree.order_kernels import clause_codes, enrol
from safe_region.jit import kernel, leaf

_BEGIN = 0
_LEAVE = 1
_LEAVE_JOB = 2
_ENTER = 3
_ENTER_JOB = 4
_SETTLE = 5


@leaf
def _push(tree: Tree, node: int) -> None:
    tree.stack[tree.meta[L.STACK_COUNT]] = node
    tree.meta[L.STACK_COUNT] += 1


@leaf
def _push_part(tree: Tree, job: Build, node: int, part: int, makes: bool) -> None:  # noqa: FBT001
    """Push the child of a part, created if it is required and missing."""
    child = int(tree.parts[part]["child"])
    if child == L.NOTHING:
        if not makes:
            return
        is_filled = job.state[L.PHASE] == L.DISTRIBUTE and job.state[L.NODE] == node
        child = make_child(tree, node, part, L.PENDING if is_filled else L.LEAF)
    _push(tree, child)


@leaf
def _cells_of(tree: Tree, row: Row, clause: Row) -> tuple[int, int, int, int]:
    first, last = column_at(tree, row, clause["x1_m"]), column_at(tree, row, clause["x2_m"])
    return first, last, line_at(tree, row, clause["y1_m"]), line_at(tree, row, clause["y2_m"])


@leaf
def _descend_by_keywords(
    tree: Tree,
    job: Build,
    order: Numbers,
    node: int,
    slot: int,
    makes: bool,  # noqa: FBT001
) -> bool:
    row = tree.nodes[node]
    number = L.DUMMY
    if makes and lacks_nodes(tree, 1):
        return False
    if clause_codes(tree, order, slot) > row["offset"]:
        code = int(tree.codes[row["offset"]])
        if not makes:
            number = find_cut(tree, row, code, 1)
        elif lacks_cut(tree, node, code):
            return False
        else:
            number = place_in_cut(tree, node, code)
    tree.meta[L.STACK_COUNT] -= 1
    _push_part(tree, job, node, int(row["start"]) + number, makes)
    return True


@leaf
def _descend_by_place(
    tree: Tree,
    job: Build,
    node: int,
    slot: int,
    makes: bool,  # noqa: FBT001
) -> bool:
    row = tree.nodes[node]
    clause = tree.clauses[slot]
    used, start = int(tree.meta[L.STACK_COUNT]), int(row["start"])
    if has_within(row, clause):
        if makes and lacks_nodes(tree, 1):
            return False
        tree.meta[L.STACK_COUNT] = used - 1
        _push_part(tree, job, node, start + L.DUMMY, makes)
        return True
    first, last, low, high = _cells_of(tree, row, clause)
    count = (last - first + 1) * (high - low + 1)
    if lacks_stack(tree, tree.stack, used, count) or (makes and lacks_nodes(tree, count)):
        return False
    tree.meta[L.STACK_COUNT] = used - 1
    for line in range(low, high + 1):
        for column in range(first, last + 1):
            part = start + 1 + line * int(row["x_count"]) + column
            _push_part(tree, job, node, part, makes)
    return True


@leaf
def _descend(
    tree: Tree,
    job: Build,
    order: Numbers,
    node: int,
    slot: int,
    makes: bool,  # noqa: FBT001
) -> bool:
    """Replace the top of the stack, a node with parts, by its children that a clause belongs to.

    Returns false, with no change, if space is lacking.
    """
    if tree.nodes[node]["kind"] == L.KEYWORDS:
        return _descend_by_keywords(tree, job, order, node, slot, makes)
    return _descend_by_place(tree, job, node, slot, makes)


@leaf
def note_due(tree: Tree, node: int) -> None:
    """Schedule a rebuild of a node after the current clause, unless DUE_MAX are pending."""
    if node == L.NOTHING or tree.meta[L.DUE_COUNT] == L.DUE_MAX:
        return
    for i in range(tree.meta[L.DUE_COUNT]):
        if tree.due[i] == node:
            return
    tree.due[tree.meta[L.DUE_COUNT]] = node
    tree.meta[L.DUE_COUNT] += 1


@leaf
def enter_leaf(tree: Tree, node: int, slot: int) -> bool:
    """Write an entry of a clause to a leaf; return false, with no change, if space is lacking."""
    row = tree.nodes[node]
    count = int(row["count"]) + 1
    if lacks_entries(tree, node, count):
        return False
    make_room(tree, node, count)
    add_entry(tree, node, slot)
    above = update_above(tree, node, 1)
    if count > tree.limits[L.LEAF_MAX] and count > row["patience"]:
        note_due(tree, node)
    note_due(tree, above)
    return True


@leaf
def _walk(
    tree: Tree,
    job: Build,
    order: Numbers,
    slot: int,
    makes: bool,  # noqa: FBT001
) -> bool:
    """Process the stack: change all leaves below; return false if space is lacking."""
    while tree.meta[L.STACK_COUNT] > 0:
        node = int(tree.stack[tree.meta[L.STACK_COUNT] - 1])
        kind = tree.nodes[node]["kind"]
        if node == tree.meta[L.JOB_OLD]:
            tree.meta[L.MEETS_JOB] = 1
        if kind in (L.KEYWORDS, L.SPACE):
            if not _descend(tree, job, order, node, slot, makes):
                return False
            continue
        if makes:
            if kind == L.PENDING:
                if lacks_chunks(tree, job.chunks, 1):
                    return False
                add_pending(tree, job, node, slot)
            elif not enter_leaf(tree, node, slot):
                return False
        elif kind == L.LEAF and remove_entry(tree, node, slot):
            note_due(tree, update_above(tree, node, -1))
        tree.meta[L.STACK_COUNT] -= 1
    return True


@leaf
def _begin_leaving(tree: Tree, slot: int) -> None:
    tree.clauses[slot]["generation"] += 1
    tree.meta[L.MEETS_JOB] = 0
    _push(tree, int(tree.meta[L.ROOT]))


@leaf
def _begin_entering(tree: Tree, slot: int) -> None:
    clause = tree.clauses[slot]
    clause["mark"] = 0
    start = int(clause["keyword_start"])
    for place in range(start, start + int(clause["keyword_count"])):
        enrol(tree.order, tree.pool[place])
        enrol(tree.job_order, tree.pool[place])
    tree.meta[L.MEETS_JOB] = 0
    _push(tree, int(tree.meta[L.ROOT]))


@leaf
def _leave(tree: Tree, job: Build, slot: int) -> bool:
    meta = tree.meta
    if meta[L.STAGE] == _LEAVE:
        if not _walk(tree, job, tree.order, slot, False):
            return False
        meta[L.STAGE] = _LEAVE_JOB
        if meta[L.MEETS_JOB]:
            _push(tree, int(meta[L.JOB_NEW]))
    return _walk(tree, job, tree.job_order, slot, False)


@leaf
def _enter(tree: Tree, job: Build, slot: int) -> bool:
    meta = tree.meta
    if meta[L.STAGE] == _ENTER:
        if not _walk(tree, job, tree.order, slot, True):
            return False
        meta[L.STAGE] = _ENTER_JOB
        if meta[L.MEETS_JOB]:
            tree.clauses[slot]["mark"] = meta[L.JOB_NUMBER]
            _push(tree, int(meta[L.JOB_NEW]))
    return _walk(tree, job, tree.job_order, slot, True)


@leaf
def _change(
    tree: Tree,
    job: Build,
    slot: int,
    leaves: bool,  # noqa: FBT001
    enters: bool,  # noqa: FBT001
    x1_m: float,
    y1_m: float,
    x2_m: float,
    y2_m: float,
) -> bool:
    meta = tree.meta
    if meta[L.STAGE] == _BEGIN:
        if leaves:
            _begin_leaving(tree, slot)
            meta[L.STAGE] = _LEAVE
        else:
            _begin_entering(tree, slot)
            meta[L.STAGE] = _ENTER
    if meta[L.STAGE] in (_LEAVE, _LEAVE_JOB):
        if not _leave(tree, job, slot):
            return False
        if not enters:
            meta[L.STAGE] = _SETTLE
            return True
        clause = tree.clauses[slot]
        clause["x1_m"], clause["y1_m"], clause["x2_m"], clause["y2_m"] = x1_m, y1_m, x2_m, y2_m
        _begin_entering(tree, slot)
        meta[L.STAGE] = _ENTER
    if meta[L.STAGE] in (_ENTER, _ENTER_JOB):
        if not _enter(tree, job, slot):
            return False
        meta[L.STAGE] = _SETTLE
    return True


@kernel
def change_all(
    tree: Tree,
    job: Build,
    slots: Numbers,
    leaves: bool,  # noqa: FBT001
    enters: bool,  # noqa: FBT001
    x1_m: Floats,
    y1_m: Floats,
    x2_m: Floats,
    y2_m: Floats,
) -> int:
    """Remove clauses from the tree, insert them, or both, with new boxes; continue at `meta[DONE]`.

    Returns FINISHED, OUT_OF_ROOM, or HAS_DUE if nodes are waiting for a rebuild. Boxes are used only if
    clauses are both removed and inserted.
    """
    meta = tree.meta
    while meta[L.DONE] < slots.shape[0]:
        i = meta[L.DONE]
        j = i if leaves and enters else 0
        if not _change(tree, job, int(slots[i]), leaves, enters, x1_m[j], y1_m[j], x2_m[j], y2_m[j]):
            return L.OUT_OF_ROOM
        meta[L.STAGE] = _BEGIN
        meta[L.DONE] = i + 1
        tree.limits[L.POPULATION] += int(enters) - int(leaves)
        if meta[L.DUE_COUNT] > 0:
            return L.HAS_DUE
    return L.FINISHED
