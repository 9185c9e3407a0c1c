"""Inserting and removing clauses.

A kernel that is called again with more space continues at `cursor`.

Operations: insert and remove O(nodes on the path + entries of the leaves), amortised, a clause; many
clauses of one keyword are laid out at once, O(depth) each.
"""

from __future__ import annotations

from index.batches import Ints
from index.inverted_grid import layout as L
from index.inverted_grid.cell_kernels import keyword_of
from index.inverted_grid.layout import Grid, Numbers
from index.inverted_grid.node_kernels import (
    add,
    capacity_of,
    fit_run,
    give_back_nodes,
    has_nodes,
    lead,
    make_room,
    set_entry,
    take_nodes,
    take_out,
)
from index.inverted_grid.split_kernels import collapse, is_misfit, settle
from index.tables.run_kernels import NO_RUN, RUN_LEAST, class_of, free_run, has_run
from safe_region.jit import kernel, leaf

_GROUP_MIN = 32
"""The minimum number of clauses of one keyword that are laid out at once."""


@kernel
def count_words(grid: Grid, slots: Numbers, change: int) -> None:
    """Add the required keywords to the counts before clauses are ranked, or subtract them."""
    for slot in slots:
        start = grid.clauses[slot]["keyword_start"]
        for i in range(start, start + grid.clauses[slot]["keyword_count"]):
            grid.word_counts[grid.pool[i]] += change


@kernel
def rank_words(grid: Grid, slots: Numbers, rarest: Numbers) -> None:
    """Rank the keywords of clauses, rarest first, and write the rarest."""
    counts = grid.word_counts
    for row in range(slots.shape[0]):
        start = grid.clauses[slots[row]]["keyword_start"]
        for i in range(grid.clauses[slots[row]]["keyword_count"]):
            at = i
            count = counts[grid.pool[start + i]]
            while at > 0 and counts[grid.pool[start + grid.ranks[start + at - 1]]] > count:
                grid.ranks[start + at] = grid.ranks[start + at - 1]
                at -= 1
            grid.ranks[start + at] = i
        rarest[row] = grid.pool[start + grid.ranks[start]]


@leaf
def _root_for(grid: Grid, word: int) -> int:
    """Return the root of a keyword's list, created if necessary, or a status."""
    if grid.roots[word] == 0:
        if not has_nodes(grid, 0):
            grid.meta[L.NEEDED] = 1
            return L.NODES_FULL
        grid.roots[word] = take_nodes(grid, 0, L.NO_NODE) + 1
    return int(grid.roots[word]) - 1


@leaf
def _wait_for_misfits(grid: Grid, end: int) -> None:
    """Push the highest node in `work` that is a misfit as pending, or all leaves that are."""
    for i in range(end):
        number = int(grid.work[i])
        if is_misfit(grid, number):
            grid.pending[grid.meta[L.PENDING]] = number
            grid.meta[L.PENDING] += 1
            if grid.nodes[number]["kind"] != L.LEAF:
                return


@leaf
def _enter(grid: Grid, slot: int) -> int:
    """Insert a clause; return a status."""
    root = _root_for(grid, keyword_of(grid, slot, 0))
    if root < 0:
        return root
    end = lead(grid, root, slot, may_make=True)
    if end < 0:
        return end
    if end > grid.pending.shape[0]:
        grid.meta[L.NEEDED] = end
        return L.PENDING_FULL
    for i in range(end):
        if grid.nodes[grid.work[i]]["kind"] == L.LEAF:
            status = make_room(grid, int(grid.work[i]))
            if status != L.DONE:
                return status
    for i in range(end):
        if grid.nodes[grid.work[i]]["kind"] == L.LEAF:
            add(grid, int(grid.work[i]), slot)
        else:
            grid.nodes[grid.work[i]]["count"] += 1
    _wait_for_misfits(grid, end)
    return L.DONE


@leaf
def _enter_group(grid: Grid, slots: Numbers, begin: int, end: int) -> int:
    """Insert many clauses of one keyword, whose list is laid out again; return a status."""
    root = _root_for(grid, keyword_of(grid, int(slots[begin]), 0))
    if root < 0:
        return root
    node = grid.nodes[root]
    if node["kind"] != L.LEAF:
        status = collapse(grid, root)
        if status != L.DONE:
            return status
    count = int(node["count"]) + end - begin
    if count > capacity_of(node):
        size_class = class_of(count)
        if not has_run(grid.entries, size_class):
            grid.meta[L.NEEDED] = RUN_LEAST << size_class
            return L.RUNS_FULL
        fit_run(grid, root, size_class)
    for i in range(begin, end):
        set_entry(grid, int(node["first"]) + int(node["count"]), int(slots[i]))
        node["count"] += 1
    grid.pending[0] = root
    grid.meta[L.PENDING] = 1
    return L.DONE


@leaf
def _group_end(grid: Grid, slots: Numbers, begin: int) -> int:
    """Return the end of the clauses with the same keyword."""
    word = keyword_of(grid, int(slots[begin]), 0)
    end = begin + 1
    while end < slots.shape[0] and keyword_of(grid, int(slots[end]), 0) == word:
        end += 1
    return end


@leaf
def _is_large(grid: Grid, slot: int, count: int) -> bool:
    """Return whether the clauses of one keyword are enough to lay out its list again."""
    root = int(grid.roots[keyword_of(grid, slot, 0)]) - 1
    return count >= _GROUP_MIN and (root < 0 or 2 * count >= grid.nodes[root]["count"])


@kernel
def insert(grid: Grid, slots: Numbers, cursor: Ints) -> int:
    """Insert clauses, sorted so that those of one keyword are adjacent; return a status.

    `cursor` has the number of clauses done, and the end of those with the next keyword.
    """
    while True:
        status = settle(grid)
        if status != L.DONE:
            return status
        begin = int(cursor[0])
        if begin == slots.shape[0]:
            return L.DONE
        if begin >= cursor[1]:
            cursor[1] = _group_end(grid, slots, begin)
            cursor[2] = _is_large(grid, int(slots[begin]), int(cursor[1]) - begin)
        if cursor[2]:
            status = _enter_group(grid, slots, begin, int(cursor[1]))
            done = int(cursor[1])
        else:
            status = _enter(grid, int(slots[begin]))
            done = begin + 1
        if status != L.DONE:
            return status
        cursor[0] = done


@leaf
def _drop_empty(grid: Grid, word: int) -> None:
    """Delete the list of a keyword if it is empty."""
    root = int(grid.roots[word]) - 1
    if root < 0 or grid.nodes[root]["count"] > 0 or grid.nodes[root]["kind"] != L.LEAF:
        return
    if grid.nodes[root]["size_class"] != NO_RUN:
        free_run(grid.entries, int(grid.nodes[root]["first"]), int(grid.nodes[root]["size_class"]))
    give_back_nodes(grid, root, 0)
    grid.roots[word] = 0


@leaf
def _leave(grid: Grid, slot: int) -> int:
    """Remove a clause from all leaves that have it; return a status."""
    root = int(grid.roots[keyword_of(grid, slot, 0)]) - 1
    end = lead(grid, root, slot, may_make=False)
    if end < 0:
        return end
    if end > grid.pending.shape[0]:
        grid.meta[L.NEEDED] = end
        return L.PENDING_FULL
    for i in range(end):
        if grid.nodes[grid.work[i]]["kind"] == L.LEAF:
            take_out(grid, int(grid.work[i]), slot)
        else:
            grid.nodes[grid.work[i]]["count"] -= 1
    _wait_for_misfits(grid, end)
    return L.DONE


@kernel
def remove(grid: Grid, slots: Numbers, cursor: Ints) -> int:
    """Remove clauses; return a status. `cursor` has the number of removed ones."""
    while True:
        status = settle(grid)
        if status != L.DONE:
            return status
        done = int(cursor[0])
        if done > 0:
            _drop_empty(grid, keyword_of(grid, int(slots[done - 1]), 0))
        if done == slots.shape[0]:
            return L.DONE
        status = _leave(grid, int(slots[done]))
        if status != L.DONE:
            return status
        cursor[0] = done + 1
