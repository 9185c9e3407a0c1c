"""Covering cells: those of a subscription, the required similarity in each, and its postings there."""

from __future__ import annotations

import math

from index.batches import Floats, Ints
from index.published.ciq import layout as L
from index.published.ciq.layout import Cover, Row, Slots
from index.published.ciq.list_kernels import insert_posting, remove_posting
from index.tables.float32_kernels import lower
from index.tables.quad_kernels import child_of, node_distance, set_children, set_root, take_group
from index.tables.vector_kernels import SLACK
from safe_region.jit import kernel, leaf


@kernel
def plant(cover: Cover, x_m: float, y_m: float, half_m: float) -> None:
    """Divide the plane: a root, and below it all cells down to the last level."""
    set_root(cover.cells, take_group(cover.cells, cover.meta), x_m, y_m, half_m)
    begin = L.ROOT
    end = L.ROOT + 1
    for _ in range(cover.levels):
        first = 0
        last = 0
        for cell in range(begin, end):
            last = take_group(cover.cells, cover.meta)
            first = last if cell == begin else first
            set_children(cover.cells, cell, last)
        begin = first
        end = last + L.CHILDREN


@leaf
def cell_at(cover: Cover, x_m: float, y_m: float) -> int:
    """Return the smallest cell that contains a point."""
    cell = L.ROOT
    while cover.cells[cell]["first_child"] != L.NO_CELL:
        cell = child_of(cover.cells, cell, x_m, y_m)
    return cell


@leaf
def text_bound(row: Row, away_m: float) -> float:
    """Return MinT: the least similarity of an object that matters at this distance or more.

    That is lambda_T of Skype's equation 2. It is not above 0 if any similarity suffices, and above 1 if
    none does.
    """
    away = max(0.0, away_m - row["radius_m"])
    reach = row["reach_m"]
    weight = row["weight_m"]
    if math.isinf(reach):
        return -float(reach)
    needed = weight + away - reach
    needed -= SLACK * (weight + away_m + row["radius_m"] + abs(reach))
    if weight == 0.0:
        return math.inf if needed > 0.0 else -math.inf
    return float(lower(needed / weight))


@leaf
def write_bounds(cover: Cover, slot: int) -> None:
    """Write MinT of a subscription in each of its cells."""
    row = cover.subscriptions[slot]
    cell = int(row["cell"])
    for level in range(cover.levels - 1, -1, -1):
        parent = int(cover.cells[cell]["parent"])
        first = int(cover.cells[parent]["first_child"])
        for quarter in range(L.CHILDREN):
            away = node_distance(cover.cells, first + quarter, row["x_m"], row["y_m"])
            cover.bounds[slot, L.CHILDREN * level + quarter] = text_bound(row, away)
        cell = parent


@leaf
def covering_cell(cover: Cover, cell: int, number: int) -> int:
    """Return one of the 1 + 3 * levels cells that cover the plane for the items of a smallest cell."""
    if number == 0:
        return cell
    up = (number - 1) // (L.CHILDREN - 1)
    for _ in range(up):
        cell = int(cover.cells[cell]["parent"])
    first = int(cover.cells[int(cover.cells[cell]["parent"])]["first_child"])
    quarter = (number - 1) % (L.CHILDREN - 1)
    return first + quarter + (1 if first + quarter >= cell else 0)


@leaf
def _cell_count(cover: Cover) -> int:
    return 1 + (L.CHILDREN - 1) * cover.levels


@leaf
def _enter(cover: Cover, slot: int) -> bool:
    """Insert a subscription into its cells, from the step at which space was lacking."""
    row = cover.subscriptions[slot]
    start, count = int(row["keyword_start"]), int(row["keyword_count"])
    step = int(cover.meta[L.DONE_STEPS])
    while step < count * _cell_count(cover):
        cell = covering_cell(cover, int(row["cell"]), step // count)
        word = cover.pool[start + step % count]
        weight = math.sqrt(cover.squares[word] / row["norm2"])
        if not insert_posting(cover, cell, word, slot, weight):
            cover.meta[L.DONE_STEPS] = step
            return False
        step += 1
    cover.meta[L.DONE_STEPS] = 0
    return True


@kernel
def enter_all(cover: Cover, slots: Slots) -> bool:
    """Insert subscriptions that have no cell; return whether all are done, else space is lacking."""
    for i in range(int(cover.meta[L.DONE_ROWS]), slots.shape[0]):
        row = cover.subscriptions[slots[i]]
        if cover.meta[L.DONE_STEPS] == 0:
            if row["cell"] != L.NO_CELL:
                continue
            row["cell"] = cell_at(cover, row["x_m"], row["y_m"])
            write_bounds(cover, slots[i])
        if not _enter(cover, slots[i]):
            if cover.meta[L.DONE_STEPS] == 0:
                row["cell"] = L.NO_CELL
            cover.meta[L.DONE_ROWS] = i
            return False
    cover.meta[L.DONE_ROWS] = 0
    return True


@leaf
def _leave(cover: Cover, slot: int) -> None:
    row = cover.subscriptions[slot]
    start, count = int(row["keyword_start"]), int(row["keyword_count"])
    for step in range(count * _cell_count(cover)):
        cell = covering_cell(cover, int(row["cell"]), step // count)
        remove_posting(cover, cell, cover.pool[start + step % count], slot)
    row["cell"] = L.NO_CELL


@kernel
def leave_all(cover: Cover, slots: Slots) -> None:
    """Remove subscriptions from their cells."""
    for slot in slots:
        _leave(cover, slot)


@kernel
def move_all(
    cover: Cover,
    slots: Slots,
    x_m: Floats,
    y_m: Floats,
    radius_m: Floats,
    reach_m: Floats,
    reach_id: Ints,
) -> None:
    """Change positions and reaches of subscriptions; those that leave their cell have none afterwards."""
    for i in range(slots.shape[0]):
        row = cover.subscriptions[slots[i]]
        row["x_m"] = x_m[i]
        row["y_m"] = y_m[i]
        row["radius_m"] = radius_m[i]
        row["reach_m"] = reach_m[i]
        row["reach_id"] = reach_id[i]
        if row["cell"] == L.NO_CELL:
            continue
        if row["cell"] == cell_at(cover, x_m[i], y_m[i]):
            write_bounds(cover, slots[i])
        else:
            _leave(cover, slots[i])
