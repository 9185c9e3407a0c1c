"""Inserting clauses into their cells, and removing them: the batch operations of both structures.

A function that runs out of space returns a negative status, and is called again with the same arguments
and more space; a cursor has the progress.
"""

from __future__ import annotations

from index.batches import Ints
from index.published.clause_cells.cell_kernels import (
    CELLS_FULL,
    KEYWORD_FIRST,
    ROOT,
    divide,
    fell,
    has_root,
    plant,
    root_of,
)
from index.published.clause_cells.layout import Cells
from index.published.clause_cells.list_kernels import enter, leave
from index.published.clause_cells.placing_kernels import choose
from index.published.clause_cells.workload_kernels import (
    DONE,
    least_frequent,
    release_word,
    require_word,
    see_place,
    word_of,
)
from index.tables.quad_kernels import NO_NODE
from index.tables.run_kernels import class_of, free_run, has_run, take_run
from index.tables.slots import Slots
from safe_region.jit import kernel, leaf

HOMES_FULL = -7

CURSOR_ROW = 0
"""In a cursor: rows of the batch that are done."""
CURSOR_STEP = 1
"""In a cursor: steps of the next row that are done."""
CURSOR_SIZE = 2


@kernel
def see_clauses(cells: Cells, slots: Slots) -> None:
    """Count clauses as objects in the centre of their boxes."""
    for slot in slots:
        clause = cells.clauses[slot]
        x_m = clause["x1_m"] / 2 + clause["x2_m"] / 2
        see_place(cells, x_m, clause["y1_m"] / 2 + clause["y2_m"] / 2)


@kernel
def require(cells: Cells, slots: Slots, cursor: Ints) -> int:
    """Count the keywords of clauses; return a status."""
    for i in range(cursor[CURSOR_ROW], slots.shape[0]):
        clause = cells.clauses[slots[i]]
        while cursor[CURSOR_STEP] < clause["keyword_count"]:
            keyword = int(cells.pool[clause["keyword_start"] + cursor[CURSOR_STEP]])
            status = require_word(cells, keyword)
            if status != DONE:
                cursor[CURSOR_ROW] = i
                return status
            cursor[CURSOR_STEP] += 1
        cursor[CURSOR_STEP] = 0
    cursor[CURSOR_ROW] = 0
    return DONE


@kernel
def release(cells: Cells, slots: Slots) -> None:
    """Subtract the keywords of clauses from the counts."""
    for slot in slots:
        clause = cells.clauses[slot]
        start = int(clause["keyword_start"])
        for i in range(start, start + int(clause["keyword_count"])):
            release_word(cells, int(cells.pool[i]))


@leaf
def _settle(cells: Cells, slot: int, keyword: int, count: int) -> int:
    """Ensure space for the cells of a clause, and a tree for its key, if necessary; return a status."""
    clause = cells.clauses[slot]
    if clause["home_count"] > 0:
        return DONE
    if root_of(cells, keyword) == NO_NODE:
        if not has_root(cells):
            return CELLS_FULL
        cells.words[word_of(cells, keyword)]["root"] = plant(cells)
    if count > 1:
        size_class = class_of(count)
        if not has_run(cells.homes, size_class):
            return HOMES_FULL
        clause["home"] = take_run(cells.homes, size_class)
    clause["home_count"] = count
    clause["word"] = keyword
    return DONE


@leaf
def _enter_at(cells: Cells, slot: int, cell: int, step: int, cursor: Ints) -> int:
    """Insert a clause into the cell that is its home number `step`, unless done; return a status."""
    clause = cells.clauses[slot]
    if step < cursor[CURSOR_STEP]:
        return DONE
    status = enter(cells, cell, int(clause["word"]), slot)
    if status != DONE:
        return status
    if clause["home_count"] == 1:
        clause["home"] = cell
    else:
        cells.homes.records[clause["home"] + step]["slot"] = cell
    cursor[CURSOR_STEP] += 1
    return DONE


@leaf
def _place(cells: Cells, slot: int, cursor: Ints) -> int:
    """Insert a clause into the best cells for it; return a status."""
    keyword = least_frequent(cells, slot)
    end, count = choose(cells, slot, keyword)
    status = _settle(cells, slot, keyword, count)
    if status != DONE:
        return status
    drafts = cells.drafts
    drafts[0]["cell"] = root_of(cells, keyword)
    step = 0
    for draft in range(end):
        row = drafts[draft]
        if not row["is_met"]:
            continue
        cell = int(row["cell"])
        first = int(row["first_child"])
        if first == NO_NODE:
            status = _enter_at(cells, slot, cell, step, cursor)
            if status != DONE:
                return status
            step += 1
            continue
        if not divide(cells, cell):
            return CELLS_FULL
        for i in range(4):
            drafts[first + i]["cell"] = cells.cells[cell]["first_child"] + i
    cells.words[word_of(cells, keyword)]["key_count"] += 1
    return DONE


@kernel
def place(cells: Cells, slots: Slots, cursor: Ints) -> int:
    """Insert clauses into cells; return a status."""
    for i in range(cursor[CURSOR_ROW], slots.shape[0]):
        status = _place(cells, slots[i], cursor)
        if status != DONE:
            cursor[CURSOR_ROW] = i
            return status
        cursor[CURSOR_STEP] = 0
    return DONE


@leaf
def home_of(cells: Cells, slot: int, step: int) -> int:
    """Return one of the cells with an entry of a clause."""
    clause = cells.clauses[slot]
    if clause["home_count"] == 1:
        return int(clause["home"])
    return int(cells.homes.records[clause["home"] + step]["slot"])


@kernel
def take_out(cells: Cells, slots: Slots) -> None:
    """Remove clauses from their cells."""
    for slot in slots:
        clause = cells.clauses[slot]
        keyword = int(clause["word"])
        count = int(clause["home_count"])
        for step in range(count):
            leave(cells, home_of(cells, slot, step), keyword, slot)
        if count > 1:
            free_run(cells.homes, int(clause["home"]), class_of(count))
        clause["home_count"] = 0
        word = cells.words[word_of(cells, keyword)]
        word["key_count"] -= 1
        if word["key_count"] == 0 and cells.meta[KEYWORD_FIRST]:
            fell(cells, keyword)


@kernel
def plant_one(cells: Cells) -> None:
    """Create the one tree of all clauses."""
    cells.meta[ROOT] = plant(cells)
