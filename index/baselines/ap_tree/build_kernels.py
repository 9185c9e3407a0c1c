"""What is built: pending nodes become leaves or are parted, until none is left (Algorithm 4).

The work is done in steps that can be interrupted after each few clauses; what arrives meanwhile is added
to nodes as they are. A step that wants for room has changed nothing.
"""

from __future__ import annotations

from index.baselines.ap_tree.chunk_kernels import drop_chunk
from index.baselines.ap_tree.decide_kernels import (
    add_next_layer,
    choice,
    keywords_cost,
    sort_touched,
    space_cost,
    write_keyword_units,
)
from index.baselines.ap_tree.distribute_kernels import (
    LACKING,
    begin_distribution,
    distribute,
    write_cells,
    write_cuts,
)
from index.baselines.ap_tree.layout import (
    ALIVE,
    BARE,
    CHUNK,
    CHUNK_LENGTH,
    CUT_COUNT,
    DECIDE,
    DISTRIBUTE,
    FANOUT,
    FILL,
    FILLED,
    FINISHED,
    IDLE,
    KEYWORDS,
    LAYER,
    LAYERS,
    LEAF,
    LEAF_MAX,
    MORE,
    NODE,
    NOTHING,
    OFFSET,
    OPTIMAL,
    OUT_OF_ROOM,
    PHASE,
    PLACE,
    TALLY,
    TASK_COUNT,
    TOUCHED_COUNT,
    VARIANT,
    Build,
    Tree,
)
from index.baselines.ap_tree.leaf_kernels import add_entry, lacks_entries, make_room, weigh
from index.baselines.ap_tree.node_kernels import clear_node, lacks_new_parts, part_class
from index.baselines.ap_tree.order_kernels import clause_codes, code_of
from safe_region.jit import kernel, leaf


@kernel
def advance(tree: Tree, build: Build, budget: int) -> int:
    """Build on, for about so many looks at clauses; return FINISHED, MORE, or OUT_OF_ROOM."""
    state = build.state
    while budget > 0:
        phase = state[PHASE]
        if phase == IDLE:
            if state[TASK_COUNT] == 0:
                return FINISHED
            spent = _begin_task(tree, build)
        elif phase == TALLY:
            spent = _tally(tree, build, budget)
        elif phase == LAYERS:
            spent = add_next_layer(build)
            if state[LAYER] > state[CUT_COUNT]:
                state[PHASE] = DECIDE
        elif phase == DECIDE:
            spent = _decide(tree, build)
        elif phase == DISTRIBUTE:
            spent = distribute(tree, build, budget)
        else:
            spent = _fill(tree, build, budget)
        if spent == LACKING:
            return OUT_OF_ROOM
        budget -= spent
    return MORE


@leaf
def _begin_task(tree: Tree, build: Build) -> int:
    state = build.state
    state[TASK_COUNT] -= 1
    node = int(build.tasks[state[TASK_COUNT]])
    row = tree.nodes[node]
    state[NODE] = node
    state[OFFSET] = row["offset"]
    state[TOUCHED_COUNT] = 0
    state[ALIVE] = row["count"]
    state[BARE] = 0
    if row["count"] <= tree.limits[LEAF_MAX] or not (row["has_keywords"] or row["has_space"]):
        _begin_fill(tree, build)
    elif row["has_keywords"]:
        _begin_tally(tree, build)
    else:
        state[PHASE] = DECIDE
    return 1


@leaf
def _begin_tally(tree: Tree, build: Build) -> None:
    state = build.state
    state[PHASE] = TALLY
    state[CHUNK] = tree.nodes[state[NODE]]["start"]
    state[PLACE] = 0
    state[ALIVE] = 0
    state[BARE] = 0


@leaf
def _tally(tree: Tree, build: Build, budget: int) -> int:
    """Count keywords at the offset, chunk by chunk; when all is counted, go on."""
    state, chunks = build.state, build.chunks
    offset = state[OFFSET]
    chunk, spent = int(state[CHUNK]), 0
    while chunk != NOTHING and spent < budget:
        first = chunk * CHUNK_LENGTH
        for at in range(first, first + int(chunks.sizes[chunk])):
            slot = int(chunks.slots[at])
            clause = tree.clauses[slot]
            if clause["generation"] != chunks.generations[at]:
                continue
            state[ALIVE] += 1
            if clause["keyword_count"] <= offset:
                state[BARE] += 1
                continue
            clause_codes(tree, build.order, slot)
            _count_code(tree, build, slot, int(tree.codes[offset]))
        chunk = int(chunks.links[chunk])
        spent += CHUNK_LENGTH
    state[CHUNK] = chunk
    if chunk == NOTHING:
        sort_touched(build)
        write_keyword_units(tree, build)
        spent += int(state[TOUCHED_COUNT])
        has_layers = tree.limits[VARIANT] == OPTIMAL and state[TOUCHED_COUNT] > 0
        state[PHASE] = LAYERS if has_layers else DECIDE
    return spent + 1


@leaf
def _count_code(tree: Tree, build: Build, slot: int, code: int) -> None:
    if build.tally[code] == 0:
        build.touched[build.state[TOUCHED_COUNT]] = code
        build.state[TOUCHED_COUNT] += 1
        start = int(tree.clauses[slot]["keyword_start"])
        while code_of(build.order, tree.pool[start]) != code:
            start += 1
        build.words[code] = tree.pool[start]
    build.tally[code] += 1


@leaf
def _clear_tally(build: Build) -> None:
    for i in range(build.state[TOUCHED_COUNT]):
        build.tally[build.touched[i]] = 0
    build.state[TOUCHED_COUNT] = 0


@leaf
def _decide(tree: Tree, build: Build) -> int:
    """Make the node at hand a leaf, or part it by keywords or by place."""
    state = build.state
    row = tree.nodes[state[NODE]]
    alive = int(state[ALIVE])
    spent = 1 + alive // 4
    if alive <= tree.limits[LEAF_MAX]:
        _clear_tally(build)
        _begin_fill(tree, build)
        return 1
    most = max(int(state[CUT_COUNT]), int(tree.limits[FANOUT]), 4)
    if lacks_new_parts(tree, part_class(1 + most)):
        return LACKING
    by_keywords = keywords_cost(tree, build)
    by_space, x_count, y_count, spread = space_cost(tree, build, int(row["start"]), int(row["count"]))
    kind = choice(tree, alive, by_keywords, by_space)
    if kind == LEAF:
        has_more = state[TOUCHED_COUNT] > 0
        _clear_tally(build)
        if has_more:  # nothing is gained by this keyword: perhaps by the next
            state[OFFSET] += 1
            _begin_tally(tree, build)
        else:
            _begin_fill(tree, build)
        return min(spent, 20_000)
    part_count = 1 + (int(state[CUT_COUNT]) if kind == KEYWORDS else x_count * y_count)
    begin_distribution(tree, build, kind, part_count)
    if kind == KEYWORDS:
        write_cuts(tree, build)
    else:
        write_cells(tree, build, x_count, y_count)
        row["spread"] *= spread
    _clear_tally(build)
    return min(spent, 20_000)


@leaf
def _begin_fill(tree: Tree, build: Build) -> None:
    """Make the node at hand a leaf without entries."""
    state = build.state
    row = tree.nodes[state[NODE]]
    state[PHASE] = FILL
    state[CHUNK] = row["start"]
    state[PLACE] = 0
    state[FILLED] = 0
    state[ALIVE] = row["count"]
    clear_node(row)
    row["kind"] = LEAF


@leaf
def _fill(tree: Tree, build: Build, budget: int) -> int:
    """Write the entries of the leaf at hand."""
    state, chunks = build.state, build.chunks
    node = int(state[NODE])
    row = tree.nodes[node]
    if state[CHUNK] != NOTHING and lacks_entries(tree, node, int(state[ALIVE])):
        return LACKING
    spent = 1
    while state[CHUNK] != NOTHING and spent < budget:
        chunk = int(state[CHUNK])
        at = chunk * CHUNK_LENGTH + int(state[PLACE])
        slot = int(chunks.slots[at])
        if tree.clauses[slot]["generation"] == chunks.generations[at]:
            if lacks_entries(tree, node, int(row["count"]) + 1):
                return LACKING
            make_room(tree, node, max(int(state[ALIVE]), int(row["count"]) + 1))
            add_entry(tree, node, slot)
            state[FILLED] += 1
        spent += 1
        state[PLACE] += 1
        if state[PLACE] == chunks.sizes[chunk]:
            state[CHUNK] = drop_chunk(chunks, chunk)
            state[PLACE] = 0
    if state[CHUNK] == NOTHING:
        weigh(tree, node, int(state[FILLED]))
        if row["count"] > tree.limits[LEAF_MAX]:
            row["patience"] = 2 * row["count"]
        state[PHASE] = IDLE
    return spent
