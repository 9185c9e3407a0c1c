"""Rebuilding subtrees: small ones at once, large ones beside the old subtree, in slices.

The old subtree stays in use. It keeps its shape meanwhile: leaves grow, parts are added. Its clauses are
collected leaf by leaf; insertions and removals meanwhile are applied to both subtrees (`change_kernels`).
Marks identify the clauses that the new subtree has, generations those that have left.
"""

from __future__ import annotations

from index.published.ap_tree import layout as L
from index.published.ap_tree.chunk_kernels import add_pending, add_to_chain, lacks_chunks
from index.published.ap_tree.drift_kernels import is_barred, is_in_job
from index.published.ap_tree.layout import Build, Numbers, Row, Tree
from index.published.ap_tree.leaf_kernels import release_run, weigh
from index.published.ap_tree.node_kernels import (
    clear_node,
    copy_terms,
    free_node,
    free_parts,
    is_in_region,
    lacks_nodes,
    lacks_stack,
    take_node,
)
from safe_region.jit import kernel, leaf

IS_IN_TREE = 0
IS_IN_JOB = 1
STAYS = 2


@kernel
def whereabouts(tree: Tree, job: Build, node: int) -> int:
    """Return IS_IN_TREE or IS_IN_JOB for a node to be rebuilt; STAYS if it must stay as it is."""
    if tree.nodes[node]["kind"] > L.PENDING or is_barred(tree, node):
        return STAYS
    if not is_in_job(tree, node):
        return IS_IN_TREE
    is_filled = job.state[L.PHASE] == L.FILL and job.state[L.NODE] == node
    return STAYS if is_filled or tree.nodes[node]["kind"] != L.LEAF else IS_IN_JOB


@leaf
def _begins_here(tree: Tree, root: Row, top: Row, row: Row, slot: int) -> bool:
    """Return whether the lower left corner of a clause, clipped to `top`, is in a leaf's region.

    This is true for exactly one of the leaves that have the clause.
    """
    clause = tree.clauses[slot]
    return is_in_region(root, row, max(clause["x1_m"], top["x1_m"]), max(clause["y1_m"], top["y1_m"]))


@leaf
def _push(build: Build, node: int) -> None:
    build.walk_nodes[build.state[L.WALK_COUNT]] = node
    build.walk_places[build.state[L.WALK_COUNT]] = L.NOTHING
    build.state[L.WALK_COUNT] += 1


@leaf
def _push_children(tree: Tree, build: Build, node: int) -> bool:
    """Push the children of a node; return false, with nothing pushed, if space is lacking."""
    row = tree.nodes[node]
    start, count = int(row["start"]), int(row["count"])
    if lacks_stack(tree, build.walk_nodes, int(build.state[L.WALK_COUNT]), count):
        return False
    for part in range(start, start + count):
        if tree.parts[part]["child"] != L.NOTHING:
            _push(build, int(tree.parts[part]["child"]))
    return True


@leaf
def _gather(tree: Tree, build: Build, root: int, node: int) -> tuple[int, int]:
    """Chain the clauses of a subtree, each once; return the first chunk, and their number."""
    head, found = L.NOTHING, 0
    _push(build, node)
    while build.state[L.WALK_COUNT] > 0:
        build.state[L.WALK_COUNT] -= 1
        here = int(build.walk_nodes[build.state[L.WALK_COUNT]])
        row = tree.nodes[here]
        if row["kind"] != L.LEAF:
            _push_children(tree, build, here)
            continue
        start = int(row["start"])
        for entry in range(start, start + int(row["count"])):
            slot = int(tree.runs.records[entry]["slot"])
            if _begins_here(tree, tree.nodes[root], tree.nodes[node], row, slot):
                generation = int(tree.clauses[slot]["generation"])
                head = add_to_chain(build.chunks, head, slot, generation)
                found += 1
    return head, found


@leaf
def _count_below(tree: Tree, build: Build, node: int) -> int:
    """Count the nodes of a subtree; return NOTHING if space is lacking."""
    count = 0
    _push(build, node)
    while build.state[L.WALK_COUNT] > 0:
        build.state[L.WALK_COUNT] -= 1
        here = int(build.walk_nodes[build.state[L.WALK_COUNT]])
        count += 1
        if tree.nodes[here]["kind"] != L.LEAF and not _push_children(tree, build, here):
            build.state[L.WALK_COUNT] = 0
            return L.NOTHING
    return count


@leaf
def _release_below(tree: Tree, build: Build, budget: int) -> int:
    """Free about `budget` pushed nodes and their descendants; return the remaining budget."""
    while build.state[L.WALK_COUNT] > 0 and budget > 0:
        here = int(build.walk_nodes[build.state[L.WALK_COUNT] - 1])
        row = tree.nodes[here]
        used = int(build.state[L.WALK_COUNT])
        if row["kind"] == L.LEAF:
            release_run(tree, row)
        else:
            if lacks_stack(tree, build.walk_nodes, used, int(row["count"])):
                return L.NOTHING
            build.state[L.WALK_COUNT] = used - 1
            _push_children(tree, build, here)
            free_parts(tree, here)
            budget -= int(row["count"])
            free_node(tree, here)
            continue
        build.state[L.WALK_COUNT] = used - 1
        free_node(tree, here)
        budget -= 2
    return max(budget, 0)


@leaf
def _reset_terms(tree: Tree, row: Row) -> None:
    """Reset a node to the terms of its first construction."""
    parent = int(row["parent"])
    row["spread"] = tree.nodes[parent]["spread"] if parent != L.NOTHING else 1.0
    if parent == L.NOTHING:
        row["offset"] = 0
        return
    # The offset of a k-node may be some places beyond the one that it started with.
    above = tree.nodes[parent]
    row["offset"] = above["offset"]
    if above["kind"] == L.KEYWORDS and row["has_keywords"]:
        row["offset"] += 1


@kernel
def take_apart(tree: Tree, build: Build, root: int, node: int) -> int:
    """Make a node pending, with all clauses below it, and the only task; return FINISHED or OUT_OF_ROOM.

    `root` is that of its tree. For nodes of few clauses: it is done at once.
    """
    row = tree.nodes[node]
    weight = int(row["weight"])
    if lacks_chunks(tree, build.chunks, weight // L.CHUNK_LENGTH + 2):
        return L.OUT_OF_ROOM
    if _count_below(tree, build, node) == L.NOTHING:
        return L.OUT_OF_ROOM
    head, count = _gather(tree, build, root, node)
    weigh(tree, node, -weight)
    if row["kind"] == L.LEAF:
        release_run(tree, row)
    else:
        _push_children(tree, build, node)
        free_parts(tree, node)
        _release_below(tree, build, 1 << 40)
    clear_node(row)
    row["kind"] = L.PENDING
    _reset_terms(tree, row)
    row["start"] = head
    row["count"] = count
    build.tasks[0] = node
    build.state[L.TASK_COUNT] = 1
    return L.FINISHED


@kernel
def plant(tree: Tree) -> int:
    """Create the root of an empty tree, a pending node; return it."""
    root = take_node(tree, L.PENDING)
    row = tree.nodes[root]
    row["offset"] = 0
    row["spread"] = 1.0
    row["has_keywords"] = 1
    row["has_space"] = 1
    row["depth"] = 0
    tree.meta[L.ROOT] = root
    return root


@kernel
def chain_all(tree: Tree, build: Build, node: int, slots: Numbers) -> int:
    """Give all clauses to a pending node, and make it the only task; return FINISHED or OUT_OF_ROOM."""
    if lacks_chunks(tree, build.chunks, slots.shape[0] // L.CHUNK_LENGTH + 2):
        return L.OUT_OF_ROOM
    for i in range(slots.shape[0]):
        add_pending(tree, build, node, int(slots[i]))
    build.tasks[0] = node
    build.state[L.TASK_COUNT] = 1
    return L.FINISHED


@kernel
def begin_beside(tree: Tree, build: Build, node: int) -> int:
    """Start a rebuild of a subtree beside the old one; return FINISHED or OUT_OF_ROOM."""
    if lacks_nodes(tree, 1):
        return L.OUT_OF_ROOM
    new_node = take_node(tree, L.PENDING)
    row = tree.nodes[new_node]
    copy_terms(tree.nodes[node], row)
    row["parent"] = tree.nodes[node]["parent"]
    _reset_terms(tree, row)
    row["parent"] = L.NOTHING
    tree.meta[L.JOB_OLD] = node
    tree.meta[L.JOB_NEW] = new_node
    tree.meta[L.JOB_NUMBER] += 1
    _push(build, node)
    return L.FINISHED


@leaf
def _collect_leaf(tree: Tree, build: Build, row: Row, budget: int) -> int:
    """Collect entries of the leaf on top of the walk, last one first; return the remaining budget.

    A removal meanwhile moves the last entry to a lower place, so none is missed.
    """
    top = int(build.state[L.WALK_COUNT]) - 1
    if build.walk_places[top] == L.NOTHING:
        build.walk_places[top] = row["count"]
    place = min(int(build.walk_places[top]), int(row["count"]))
    while place > 0 and budget > 0:
        if lacks_chunks(tree, build.chunks, 1):
            budget = L.NOTHING
            break
        place -= 1
        budget -= 1
        slot = int(tree.runs.records[int(row["start"]) + place]["slot"])
        if tree.clauses[slot]["mark"] != tree.meta[L.JOB_NUMBER]:
            tree.clauses[slot]["mark"] = tree.meta[L.JOB_NUMBER]
            add_pending(tree, build, int(tree.meta[L.JOB_NEW]), slot)
    build.walk_places[top] = place
    if place == 0:
        build.state[L.WALK_COUNT] = top
    return budget


@kernel
def collect(tree: Tree, build: Build, budget: int) -> int:
    """Collect clauses of the subtree to be replaced; return FINISHED, MORE, or OUT_OF_ROOM."""
    state = build.state
    while state[L.WALK_COUNT] > 0:
        if budget <= 0:
            return L.MORE
        top = int(state[L.WALK_COUNT]) - 1
        row = tree.nodes[build.walk_nodes[top]]
        if row["kind"] == L.LEAF:
            budget = _collect_leaf(tree, build, row, budget)
            if budget == L.NOTHING:
                return L.OUT_OF_ROOM
            budget -= 1
            continue
        place = int(build.walk_places[top]) + 1
        if place >= row["count"]:
            state[L.WALK_COUNT] = top
            continue
        if lacks_stack(tree, build.walk_nodes, int(state[L.WALK_COUNT]), 1):
            return L.OUT_OF_ROOM
        build.walk_places[top] = place
        child = int(tree.parts[int(row["start"]) + place]["child"])
        if child != L.NOTHING:
            _push(build, child)
        budget -= 1
    build.tasks[0] = tree.meta[L.JOB_NEW]
    state[L.TASK_COUNT] = 1
    return L.FINISHED


@kernel
def switch_over(tree: Tree, build: Build) -> None:
    """Replace the old subtree, which is to be released, by the new one."""
    old, new = int(tree.meta[L.JOB_OLD]), int(tree.meta[L.JOB_NEW])
    parent = int(tree.nodes[old]["parent"])
    tree.nodes[new]["parent"] = parent
    tree.nodes[old]["parent"] = L.NOTHING
    if parent == L.NOTHING:
        tree.meta[L.ROOT] = new
    else:
        part = int(tree.nodes[parent]["start"])
        while tree.parts[part]["child"] != old:
            part += 1
        tree.parts[part]["child"] = new
        weigh(tree, new, int(tree.nodes[new]["weight"]) - int(tree.nodes[old]["weight"]))
    tree.meta[L.JOB_OLD] = L.NOTHING
    tree.meta[L.JOB_NEW] = L.NOTHING
    _push(build, old)


@kernel
def release(tree: Tree, build: Build, budget: int) -> int:
    """Free the replaced subtree; return FINISHED, MORE, or OUT_OF_ROOM."""
    if _release_below(tree, build, budget) == L.NOTHING:
        return L.OUT_OF_ROOM
    return L.FINISHED if build.state[L.WALK_COUNT] == 0 else L.MORE
