"""Building: pending nodes become leaves or are divided, until none is left (Algorithm 4).

The work is done in steps that can be interrupted after every few clauses; clauses that arrive meanwhile
are added to the nodes in their current state. A step that lacks space has changed nothing.
"""

from __future__ import annotations

from index.published.ap_tree import layout as L
from index.published.ap_tree.chunk_kernels import drop_chunk
from index.published.ap_tree.decide_kernels import (
    add_next_layer,
    choice,
    keywords_cost,
    sort_touched,
    space_cost,
    write_keyword_units,
)
from index.published.ap_tree.distribute_kernels import (
    LACKING,
    begin_distribution,
    distribute,
    write_cells,
    write_cuts,
)
from index.published.ap_tree.layout import Build, Tree
from index.published.ap_tree.leaf_kernels import add_entry, lacks_entries, make_room, weigh
from index.published.ap_tree.node_kernels import clear_node, lacks_new_parts, part_class
from index.published.ap_tree.order_kernels import clause_codes, code_of
from safe_region.jit import kernel, leaf


@kernel
def advance(tree: Tree, build: Build, budget: int) -> int:
    """Build on, for about `budget` accesses to clauses; return FINISHED, MORE, or OUT_OF_ROOM."""
    state = build.state
    while budget > 0:
        phase = state[L.PHASE]
        if phase == L.IDLE:
            if state[L.TASK_COUNT] == 0:
                return L.FINISHED
            spent = _begin_task(tree, build)
        elif phase == L.TALLY:
            spent = _tally(tree, build, budget)
        elif phase == L.LAYERS:
            spent = add_next_layer(build)
            if state[L.LAYER] > state[L.CUT_COUNT]:
                state[L.PHASE] = L.DECIDE
        elif phase == L.DECIDE:
            spent = _decide(tree, build)
        elif phase == L.DISTRIBUTE:
            spent = distribute(tree, build, budget)
        else:
            spent = _fill(tree, build, budget)
        if spent == LACKING:
            return L.OUT_OF_ROOM
        budget -= spent
    return L.MORE


@leaf
def _begin_task(tree: Tree, build: Build) -> int:
    state = build.state
    state[L.TASK_COUNT] -= 1
    node = int(build.tasks[state[L.TASK_COUNT]])
    row = tree.nodes[node]
    state[L.NODE] = node
    state[L.OFFSET] = row["offset"]
    state[L.TOUCHED_COUNT] = 0
    state[L.ALIVE] = row["count"]
    state[L.BARE] = 0
    if row["count"] <= tree.limits[L.LEAF_MAX] or not (row["has_keywords"] or row["has_space"]):
        _begin_fill(tree, build)
    elif row["has_keywords"]:
        _begin_tally(tree, build)
    else:
        state[L.PHASE] = L.DECIDE
    return 1


@leaf
def _begin_tally(tree: Tree, build: Build) -> None:
    state = build.state
    state[L.PHASE] = L.TALLY
    state[L.CHUNK] = tree.nodes[state[L.NODE]]["start"]
    state[L.PLACE] = 0
    state[L.ALIVE] = 0
    state[L.BARE] = 0


@leaf
def _tally(tree: Tree, build: Build, budget: int) -> int:
    """Count keywords at the offset, chunk by chunk; when all are counted, enter the next phase."""
    state, chunks = build.state, build.chunks
    offset = state[L.OFFSET]
    chunk, spent = int(state[L.CHUNK]), 0
    while chunk != L.NOTHING and spent < budget:
        first = chunk * L.CHUNK_LENGTH
        for at in range(first, first + int(chunks.sizes[chunk])):
            slot = int(chunks.slots[at])
            clause = tree.clauses[slot]
            if clause["generation"] != chunks.generations[at]:
                continue
            state[L.ALIVE] += 1
            if clause["keyword_count"] <= offset:
                state[L.BARE] += 1
                continue
            clause_codes(tree, build.order, slot)
            _count_code(tree, build, slot, int(tree.codes[offset]))
        chunk = int(chunks.links[chunk])
        spent += L.CHUNK_LENGTH
    state[L.CHUNK] = chunk
    if chunk == L.NOTHING:
        sort_touched(build)
        write_keyword_units(tree, build)
        spent += int(state[L.TOUCHED_COUNT])
        has_layers = tree.limits[L.VARIANT] == L.OPTIMAL and state[L.TOUCHED_COUNT] > 0
        state[L.PHASE] = L.LAYERS if has_layers else L.DECIDE
    return spent + 1


@leaf
def _count_code(tree: Tree, build: Build, slot: int, code: int) -> None:
    if build.tally[code] == 0:
        build.touched[build.state[L.TOUCHED_COUNT]] = code
        build.state[L.TOUCHED_COUNT] += 1
        start = int(tree.clauses[slot]["keyword_start"])
        while code_of(build.order, tree.pool[start]) != code:
            start += 1
        build.words[code] = tree.pool[start]
    build.tally[code] += 1


@leaf
def _clear_tally(build: Build) -> None:
    for i in range(build.state[L.TOUCHED_COUNT]):
        build.tally[build.touched[i]] = 0
    build.state[L.TOUCHED_COUNT] = 0


@leaf
def _decide(tree: Tree, build: Build) -> int:
    """Make the current node a leaf, or divide it by keywords or by place."""
    state = build.state
    row = tree.nodes[state[L.NODE]]
    alive = int(state[L.ALIVE])
    spent = 1 + alive // 4
    if alive <= tree.limits[L.LEAF_MAX]:
        _clear_tally(build)
        _begin_fill(tree, build)
        return 1
    most = max(int(state[L.CUT_COUNT]), int(tree.limits[L.FANOUT]), 4)
    if lacks_new_parts(tree, part_class(1 + most)):
        return LACKING
    by_keywords = keywords_cost(tree, build)
    by_space, x_count, y_count, spread = space_cost(tree, build, int(row["start"]), int(row["count"]))
    kind = choice(tree, alive, by_keywords, by_space)
    if kind == L.LEAF:
        has_more = state[L.TOUCHED_COUNT] > 0
        _clear_tally(build)
        if has_more:  # this keyword gains nothing: the next one may
            state[L.OFFSET] += 1
            _begin_tally(tree, build)
        else:
            _begin_fill(tree, build)
        return min(spent, 20_000)
    part_count = 1 + (int(state[L.CUT_COUNT]) if kind == L.KEYWORDS else x_count * y_count)
    begin_distribution(tree, build, kind, part_count)
    if kind == L.KEYWORDS:
        write_cuts(tree, build)
    else:
        write_cells(tree, build, x_count, y_count)
        row["spread"] *= spread
    _clear_tally(build)
    return min(spent, 20_000)


@leaf
def _begin_fill(tree: Tree, build: Build) -> None:
    """Make the current node a leaf without entries."""
    state = build.state
    row = tree.nodes[state[L.NODE]]
    state[L.PHASE] = L.FILL
    state[L.CHUNK] = row["start"]
    state[L.PLACE] = 0
    state[L.FILLED] = 0
    state[L.ALIVE] = row["count"]
    clear_node(row)
    row["kind"] = L.LEAF


@leaf
def _fill(tree: Tree, build: Build, budget: int) -> int:
    """Write the entries of the current leaf."""
    state, chunks = build.state, build.chunks
    node = int(state[L.NODE])
    row = tree.nodes[node]
    if state[L.CHUNK] != L.NOTHING and lacks_entries(tree, node, int(state[L.ALIVE])):
        return LACKING
    spent = 1
    while state[L.CHUNK] != L.NOTHING and spent < budget:
        chunk = int(state[L.CHUNK])
        at = chunk * L.CHUNK_LENGTH + int(state[L.PLACE])
        slot = int(chunks.slots[at])
        if tree.clauses[slot]["generation"] == chunks.generations[at]:
            if lacks_entries(tree, node, int(row["count"]) + 1):
                return LACKING
            make_room(tree, node, max(int(state[L.ALIVE]), int(row["count"]) + 1))
            add_entry(tree, node, slot)
            state[L.FILLED] += 1
        spent += 1
        state[L.PLACE] += 1
        if state[L.PLACE] == chunks.sizes[chunk]:
            state[L.CHUNK] = drop_chunk(chunks, chunk)
            state[L.PLACE] = 0
    if state[L.CHUNK] == L.NOTHING:
        weigh(tree, node, int(state[L.FILLED]))
        if row["count"] > tree.limits[L.LEAF_MAX]:
            row["patience"] = 2 * row["count"]
        state[L.PHASE] = L.IDLE
    return spent
