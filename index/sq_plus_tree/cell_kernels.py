"""Quadtrees of groups: where entries lie, and how they come and go.

All quadtrees divide the same square; what lies beyond belongs to the cells at its border.
"""

from __future__ import annotations

import math

from index.sq_plus_tree.layout import (
    CELL_END,
    CHILDREN,
    DEPTH_MAX,
    FREE_CELLS,
    LEAF_MAX,
    NOTHING,
    SMALL_MAX,
    Forest,
)
from index.sq_plus_tree.stretch_kernels import give_back_stretch, grown, move_entry, take_stretch
from index.sq_plus_tree.threshold_kernels import (
    clear_cell,
    is_extreme,
    lower_path,
    raise_cell,
    raise_path,
)
from index.sq_plus_tree.trie_kernels import drop_group
from safe_region.jit import leaf


@leaf
def distance_to(forest: Forest, cell: int, x_m: float, y_m: float) -> float:
    """Distance from a position in the root's square to a cell.

    It bounds the distance of what belongs to the cell from below also where that, or the object whose
    position was drawn into the square, lies beyond: drawing into a square brings nothing farther apart.
    """
    row = forest.cells[cell]
    dx = max(0.0, abs(x_m - row["x_m"]) - row["half_m"])
    dy = max(0.0, abs(y_m - row["y_m"]) - row["half_m"])
    return math.sqrt(dx * dx + dy * dy)


@leaf
def _new_cells(forest: Forest) -> int:
    """Return the first of four free cells."""
    first = forest.meta[FREE_CELLS]
    if first == NOTHING:
        first = forest.meta[CELL_END]
        forest.meta[CELL_END] += CHILDREN
    else:
        forest.meta[FREE_CELLS] = forest.cells[first]["parent"]
    return int(first)


@leaf
def _init_cell(
    forest: Forest, cell: int, parent: int, group: int, x_m: float, y_m: float, half_m: float
) -> None:
    row = forest.cells[cell]
    row["x_m"] = x_m
    row["y_m"] = y_m
    row["half_m"] = half_m
    row["parent"] = parent
    row["first_child"] = NOTHING
    row["group"] = group
    row["start"] = NOTHING
    row["count"] = 0
    row["room"] = 0
    row["depth"] = 0 if parent == NOTHING else forest.cells[parent]["depth"] + 1
    clear_cell(forest, cell)


@leaf
def small_owner(group: int) -> int:
    """Owner of the entries of a small group."""
    return -2 - group


@leaf
def _quarter(forest: Forest, cell: int, x_m: float, y_m: float) -> int:
    row = forest.cells[cell]
    return (1 if x_m >= row["x_m"] else 0) + (2 if y_m >= row["y_m"] else 0)


@leaf
def _append(forest: Forest, cell: int, source: int) -> None:
    """Move an entry from elsewhere to the end of a leaf."""
    row = forest.cells[cell]
    if row["count"] == 0:
        row["room"] = 0
        row["start"] = take_stretch(forest, 0)
    elif row["count"] == 1 << int(row["room"]):
        row["start"] = grown(forest, row["start"], row["count"], row["room"], cell)
        row["room"] += 1
    move_entry(forest, source, row["start"] + row["count"], cell)
    row["count"] += 1


@leaf
def split(forest: Forest, cell: int) -> None:
    """Divide a leaf among four children."""
    first = _new_cells(forest)
    row = forest.cells[cell]
    half = row["half_m"] / 2.0
    for quarter in range(CHILDREN):
        x_m = row["x_m"] + (half if quarter & 1 else -half)
        y_m = row["y_m"] + (half if quarter & 2 else -half)
        _init_cell(forest, first + quarter, cell, row["group"], x_m, y_m, half)
    for entry in range(row["start"], row["start"] + row["count"]):
        x_m, y_m = float(forest.entries[entry]["x_m"]), float(forest.entries[entry]["y_m"])
        child = first + _quarter(forest, cell, x_m, y_m)
        _append(forest, child, entry)
        last = forest.cells[child]["start"] + forest.cells[child]["count"] - 1
        raise_cell(forest, child, last, row["group"])
    give_back_stretch(forest, row["start"], row["room"])
    row["start"] = NOTHING
    row["count"] = 0
    row["first_child"] = first


@leaf
def grow_cells(forest: Forest, group: int) -> None:
    """Give a small group a quadtree."""
    cell = _new_cells(forest)
    row = forest.groups[group]
    _init_cell(forest, cell, NOTHING, group, forest.root[0], forest.root[1], forest.root[2])
    forest.cells[cell]["start"] = row["start"]
    forest.cells[cell]["count"] = row["count"]
    forest.cells[cell]["room"] = row["room"]
    for entry in range(row["start"], row["start"] + row["count"]):
        forest.entries[entry]["owner"] = cell
        raise_cell(forest, cell, entry, group)
    row["cell"] = cell
    row["start"] = NOTHING


@leaf
def leaf_at(forest: Forest, cell: int, x_m: float, y_m: float) -> int:
    """Return the leaf below a cell in which a position lies."""
    while forest.cells[cell]["first_child"] != NOTHING:
        cell = forest.cells[cell]["first_child"] + _quarter(forest, cell, x_m, y_m)
    return int(cell)


@leaf
def insert_entry(forest: Forest, group: int, source: int) -> None:
    """Move an entry from a spare place into a group."""
    row = forest.groups[group]
    if row["cell"] == NOTHING and row["count"] == SMALL_MAX:
        grow_cells(forest, group)
    row["count"] += 1
    if row["cell"] == NOTHING:
        owner = small_owner(group)
        if row["count"] == 1:
            row["room"] = 0
            row["start"] = take_stretch(forest, 0)
        elif row["count"] - 1 == 1 << int(row["room"]):
            row["start"] = grown(forest, row["start"], row["count"] - 1, row["room"], owner)
            row["room"] += 1
        move_entry(forest, source, row["start"] + row["count"] - 1, owner)
        return
    x_m, y_m = float(forest.entries[source]["x_m"]), float(forest.entries[source]["y_m"])
    cell = leaf_at(forest, row["cell"], x_m, y_m)
    _append(forest, cell, source)
    last = forest.cells[cell]["start"] + forest.cells[cell]["count"] - 1
    raise_path(forest, cell, last, group)
    while forest.cells[cell]["count"] > LEAF_MAX and forest.cells[cell]["depth"] < DEPTH_MAX:
        split(forest, cell)
        cell = leaf_at(forest, cell, x_m, y_m)


@leaf
def remove_entry(forest: Forest, entry: int) -> None:
    """Take an entry out of its group; the last of its stretch moves into its place."""
    owner = forest.entries[entry]["owner"]
    if owner < NOTHING:
        group = -2 - owner
        row = forest.groups[group]
        row["count"] -= 1
        last = row["start"] + row["count"]
        if last != entry:
            move_entry(forest, last, entry, owner)
        if row["count"] == 0:
            give_back_stretch(forest, row["start"], row["room"])
            drop_group(forest, group)
        return
    cell = owner
    group = forest.cells[cell]["group"]
    forest.groups[group]["count"] -= 1
    was_extreme = is_extreme(forest, cell, entry, group)
    row = forest.cells[cell]
    row["count"] -= 1
    last = row["start"] + row["count"]
    if last != entry:
        move_entry(forest, last, entry, cell)
    if row["count"] == 0:
        give_back_stretch(forest, row["start"], row["room"])
        row["start"] = NOTHING
    if was_extreme:
        lower_path(forest, cell, group)
    _merge_up(forest, group, forest.cells[cell]["parent"])


@leaf
def _merge_up(forest: Forest, group: int, cell: int) -> None:
    """Make cells whose children have become few a leaf again; a small root a small group."""
    while cell != NOTHING:
        first = forest.cells[cell]["first_child"]
        total = 0
        for child in range(first, first + CHILDREN):
            if forest.cells[child]["first_child"] != NOTHING:
                return
            total += forest.cells[child]["count"]
        if total > LEAF_MAX // 2:
            return
        forest.cells[cell]["first_child"] = NOTHING
        for child in range(first, first + CHILDREN):
            row = forest.cells[child]
            for entry in range(row["start"], row["start"] + row["count"]):
                _append(forest, cell, entry)
            if row["count"] > 0:
                give_back_stretch(forest, row["start"], row["room"])
        forest.cells[first]["parent"] = forest.meta[FREE_CELLS]
        forest.meta[FREE_CELLS] = first
        cell = forest.cells[cell]["parent"]
    _shed_cells(forest, group)


@leaf
def _shed_cells(forest: Forest, group: int) -> None:
    """Make a group small whose root is a leaf with few entries."""
    row = forest.groups[group]
    root = row["cell"]
    count = forest.cells[root]["count"]
    if forest.cells[root]["first_child"] != NOTHING or count > SMALL_MAX // 2:
        return
    row["cell"] = NOTHING
    row["start"] = forest.cells[root]["start"]
    row["room"] = forest.cells[root]["room"]
    for entry in range(row["start"], row["start"] + count):
        forest.entries[entry]["owner"] = small_owner(group)
    forest.cells[root]["parent"] = forest.meta[FREE_CELLS]
    forest.meta[FREE_CELLS] = root
    if count == 0:
        drop_group(forest, group)
