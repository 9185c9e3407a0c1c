"""Finding the subscriptions that a new object affects: document at a time, in each cell of the object."""

from __future__ import annotations

from typing import NamedTuple

from index.batches import Ints
from index.published.ciq.layout import CHILDREN, NO_CELL, NO_LIST, ROOT, Cover, Slots
from index.published.ciq.list_kernels import list_of
from index.tables.heap_kernels import Heap, pop, push
from index.tables.quad_kernels import child_of
from index.tables.vector_kernels import (
    Arrival,
    Arrivals,
    Vector,
    arrival_at,
    is_affected,
    write_vector,
)
from safe_region.jit import kernel, leaf


class Scratch(NamedTuple):
    """Scratch for the lists of an object's keywords in a cell."""

    vector: Vector
    heap: Heap  # the list of each keyword, by its next slot
    places: Slots  # by keyword: its next posting
    ends: Slots


@leaf
def _open_lists(cover: Cover, cell: int, scratch: Scratch, count: int) -> int:
    """Start the lists of an object's keywords in a cell; return their number."""
    size = 0
    for j in range(count):
        number = list_of(cover, cell, scratch.vector.words[j])
        if number == NO_LIST:
            continue
        row = cover.lists[number]
        scratch.places[j] = row["start"]
        scratch.ends[j] = row["start"] + row["count"]
        size = push(scratch.heap, size, cover.postings.records[row["start"]]["slot"], j)
    return size


@leaf
def _match_cell(
    cover: Cover,
    cell: int,
    bound: int,
    arrival: Arrival,
    scratch: Scratch,
    count: int,
    found: Ints,
    total: int,
    seen: Ints,
) -> int:
    """Find the affected subscriptions that a cell covers; `bound` is its column in `bounds`."""
    records = cover.postings.records
    heap = scratch.heap
    size = _open_lists(cover, cell, scratch, count)
    while size > 0:
        slot = int(heap.keys[0])
        similarity = 0.0
        while size > 0 and heap.keys[0] == slot:
            j = int(heap.items[0])
            place = int(scratch.places[j])
            similarity += scratch.vector.weights[j] * records[place]["weight"]
            size = pop(heap, size)
            place += 1
            scratch.places[j] = place
            if place < scratch.ends[j]:
                size = push(heap, size, records[place]["slot"], j)
        if similarity < cover.bounds[slot, bound]:
            continue
        seen[0] += 1
        if is_affected(cover.subscriptions, slot, cover.pool, cover.squares, arrival):
            if total < found.shape[0]:
                found[total] = cover.subscriptions[slot]["id"]
            total += 1
    return total


@kernel
def match(
    cover: Cover, arrivals: Arrivals, scratch: Scratch, row: int, offsets: Ints, found: Ints, seen: Ints
) -> int:
    """Write the matches of objects from a row on, as CSR; return the first that is not done.

    `seen[0]` counts the verified subscriptions of the objects that are done.
    """
    for i in range(row, arrivals.ids.shape[0]):
        arrival = arrival_at(arrivals, i)
        count = write_vector(scratch.vector, arrival.words, cover.squares, cover.uses, arrival.norm2)
        before = seen[0]
        total = int(offsets[i])
        cell = ROOT
        level = 0
        while cover.cells[cell]["first_child"] != NO_CELL:
            first = int(cover.cells[cell]["first_child"])
            cell = child_of(cover.cells, cell, arrival.x_m, arrival.y_m)
            bound = CHILDREN * level + cell - first
            total = _match_cell(cover, cell, bound, arrival, scratch, count, found, total, seen)
            level += 1
        offsets[i + 1] = total
        if total > found.shape[0]:
            seen[0] = before
            return i
    return int(arrivals.ids.shape[0])
