"""Groups: sorted spans of entries, each with bounds from it to the end (section 5.2.2).

Operations: insert, remove and rewrite O(group), since entries in between move; find O(log group).
"""

from __future__ import annotations

import math

from index.published.igpt.bound_kernels import Statistics
from index.published.igpt.layout import ENTRIES_WANTED, ENTRY_END, NOTHING, Tree
from index.tables.float32_kernels import upper
from index.tables.free_kernels import give_back_rows, take_rows
from safe_region.jit import leaf


@leaf
def has_free_span(tree: Tree, room: int) -> bool:
    """Return whether a span of 2**room entries can be allocated; if not, record the missing number."""
    end = int(tree.meta[ENTRY_END]) + (1 << room)
    if tree.free_entries[room] != NOTHING or end <= tree.entries.shape[0]:
        return True
    tree.meta[ENTRIES_WANTED] = 1 << room
    return False


@leaf
def allocate_span(tree: Tree, room: int) -> int:
    """Allocate 2**room entries, which must be available; return the first."""
    return take_rows(tree.entries["slot"], tree.free_entries, room, tree.meta, ENTRY_END, 1 << room)


@leaf
def free_span(tree: Tree, start: int, room: int) -> None:
    """Free entries."""
    give_back_rows(tree.entries["slot"], tree.free_entries, room, start)


@leaf
def place_of(tree: Tree, group: int, kscore: float, slot: int) -> int:
    """Return the first entry of a group that is not before (kscore, slot)."""
    low = int(tree.groups[group]["start"])
    high = low + int(tree.groups[group]["count"])
    while low < high:
        middle = (low + high) // 2
        entry = tree.entries[middle]
        if entry["kscore"] < kscore or (entry["kscore"] == kscore and entry["slot"] < slot):
            low = middle + 1
        else:
            high = middle
    return low


@leaf
def write_later(tree: Tree, group: int, sure: int, last: int) -> None:
    """Compute the bounds to the end of a group for entries up to `last`, and those of the group.

    Entries before `sure` have not changed; if the bounds of one there stay equal, so do those of all
    before it.
    """
    row = tree.groups[group]
    start = int(row["start"])
    end = start + int(row["count"])
    for place in range(last, start - 1, -1):
        entry = tree.entries[place]
        alpha = entry["alpha"]
        weight = entry["weight"]
        if place + 1 < end:
            later = tree.entries[place + 1]
            alpha = max(alpha, later["later_alpha"])
            weight = max(weight, later["later_weight"])
        if place < sure and entry["later_alpha"] == alpha and entry["later_weight"] == weight:
            break
        entry["later_alpha"] = alpha
        entry["later_weight"] = weight
    first = tree.entries[start]
    row["kscore"] = first["kscore"]
    row["alpha"] = first["later_alpha"]
    row["weight"] = first["later_weight"]


@leaf
def widen(tree: Tree, group: int) -> bool:
    """Ensure that a group has space for one more entry; return whether it has."""
    row = tree.groups[group]
    room = int(row["room"])
    if row["count"] < 1 << room:
        return True
    if not has_free_span(tree, room + 1):
        return False
    start = int(row["start"])
    wider = allocate_span(tree, room + 1)
    for i in range(int(row["count"])):
        tree.entries[wider + i] = tree.entries[start + i]
    free_span(tree, start, room)
    row["start"] = wider
    row["room"] = room + 1
    return True


@leaf
def write_entry(tree: Tree, place: int, slot: int, number: int, inner_m: float, own: Statistics) -> None:
    """Write the entry of a subscription, whose vector is in the scratch, for one of its keywords."""
    entry = tree.entries[place]
    entry["slot"] = slot
    entry["place"] = number
    entry["kscore"] = own.kscore
    entry["alpha"] = own.alpha
    entry["inner_m"] = inner_m
    vector = tree.vector
    entry["weight"] = 0.0 if own.is_apart else upper(vector.weights[number])
    entry["next_weight"] = 0.0 if own.is_apart else upper(vector.weights[number + 1])
    entry["rest"] = 0.0 if own.is_apart else upper(vector.sums[number + 1])


@leaf
def open_gap(tree: Tree, group: int, kscore: float, slot: int) -> int:
    """Return the place for one more entry of a group, which has space."""
    gap = place_of(tree, group, kscore, slot)
    row = tree.groups[group]
    for place in range(int(row["start"] + row["count"]), gap, -1):
        tree.entries[place] = tree.entries[place - 1]
    row["count"] += 1
    return gap


@leaf
def close_gap(tree: Tree, group: int, gap: int) -> None:
    """Remove an entry from a group, which has others."""
    row = tree.groups[group]
    row["count"] -= 1
    end = int(row["start"] + row["count"])
    for place in range(gap, end):
        tree.entries[place] = tree.entries[place + 1]
    write_later(tree, group, gap, gap - 1)
    narrow(tree, group)


@leaf
def narrow(tree: Tree, group: int) -> None:
    """Move a group that is a quarter full into half its capacity, if such a span is available."""
    row = tree.groups[group]
    room = int(row["room"])
    if room == 0 or row["count"] > (1 << room) // 4:
        return
    if tree.free_entries[room - 1] == NOTHING:
        return
    start = int(row["start"])
    smaller = allocate_span(tree, room - 1)
    for i in range(int(row["count"])):
        tree.entries[smaller + i] = tree.entries[start + i]
    free_span(tree, start, room)
    row["start"] = smaller
    row["room"] = room - 1


@leaf
def rewrite_entry(
    tree: Tree, group: int, slot: int, before: Statistics, after: Statistics, inner_m: float
) -> None:
    """Change the kScore* of an entry, and move it to its place in the order."""
    old = place_of(tree, group, before.kscore, slot)
    entry = tree.entries[old]
    entry["inner_m"] = inner_m
    if before.kscore == after.kscore:
        return
    number, weight = int(entry["place"]), entry["weight"]
    next_weight, rest = entry["next_weight"], entry["rest"]
    new = place_of(tree, group, after.kscore, slot)
    if new > old:
        new -= 1
    step = 1 if new > old else -1
    for place in range(old, new, step):
        tree.entries[place] = tree.entries[place + step]
    entry = tree.entries[new]
    entry["slot"] = slot
    entry["place"] = number
    entry["kscore"] = after.kscore
    entry["alpha"] = after.alpha
    entry["inner_m"] = inner_m
    entry["weight"] = weight
    entry["next_weight"] = next_weight
    entry["rest"] = rest
    write_later(tree, group, min(old, new), max(old, new))


@leaf
def clear_group(tree: Tree, group: int, key: int, is_apart: int) -> None:
    """Make a row an empty group with space for one entry, which must be available."""
    row = tree.groups[group]
    row["key"] = key
    row["next"] = NOTHING
    row["start"] = allocate_span(tree, 0)
    row["room"] = 0
    row["count"] = 0
    row["list_count"] = 0
    row["planned_count"] = 0
    row["border"] = math.inf
    row["is_apart"] = is_apart
