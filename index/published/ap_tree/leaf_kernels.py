"""Leaves: writing, finding and removing entries; and the weights of the nodes above."""

from __future__ import annotations

from index.batches import KeywordIds
from index.published.ap_tree.layout import ENTRIES_NEEDED, NOTHING, Row, Tree
from index.tables.float32_kernels import lower, upper
from index.tables.run_kernels import (
    NO_RUN,
    RUN_END,
    RUN_LEAST,
    class_of,
    free_run,
    has_run,
    is_wasteful,
    moved_run,
)
from index.tables.signature_kernels import signature_of
from safe_region.jit import leaf


@leaf
def write_entry(tree: Tree, entry: int, slot: int) -> None:
    """Write the fields of a clause's entry."""
    row = tree.runs.records[entry]
    clause = tree.clauses[slot]
    start = int(clause["keyword_start"])
    words: KeywordIds = tree.pool[start : start + int(clause["keyword_count"])]
    row["signature"] = signature_of(words)
    row["slot"] = slot
    row["generation"] = clause["generation"]
    row["x1_m"] = lower(clause["x1_m"])
    row["y1_m"] = lower(clause["y1_m"])
    row["x2_m"] = upper(clause["x2_m"])
    row["y2_m"] = upper(clause["y2_m"])


@leaf
def lacks_entries(tree: Tree, node: int, count: int) -> bool:
    """Return whether no run for this many entries can be allocated to a leaf."""
    size_class = class_of(count)
    if size_class <= tree.nodes[node]["room"] or has_run(tree.runs, size_class):
        return False
    missing = tree.runs.ends[RUN_END] + (RUN_LEAST << size_class) - tree.runs.records.shape[0]
    tree.meta[ENTRIES_NEEDED] = missing
    return True


@leaf
def make_room(tree: Tree, node: int, count: int) -> None:
    """Allocate a run for this many entries to a leaf, if it has none. Such a run must be free."""
    row = tree.nodes[node]
    room = int(row["room"])
    size_class = class_of(count)
    if size_class <= room:
        return
    row["start"] = moved_run(tree.runs, int(row["start"]), int(row["count"]), room, size_class)
    row["room"] = size_class


@leaf
def add_entry(tree: Tree, node: int, slot: int) -> None:
    """Write an entry of a clause to a leaf, which has space. The caller updates the weights above."""
    row = tree.nodes[node]
    write_entry(tree, int(row["start"]) + int(row["count"]), slot)
    row["count"] += 1
    row["weight"] += 1


@leaf
def find_entry(tree: Tree, node: int, slot: int) -> int:
    """Return the entry of a clause in a leaf, NOTHING if there is none. O(entries)."""
    row = tree.nodes[node]
    start, count = int(row["start"]), int(row["count"])
    for place in range(start, start + count):
        if tree.runs.records[place]["slot"] == slot:
            return place
    return NOTHING


@leaf
def remove_entry(tree: Tree, node: int, slot: int) -> bool:
    """Remove the entry of a clause from a leaf; return whether there was one. O(entries)."""
    row = tree.nodes[node]
    start, count = int(row["start"]), int(row["count"])
    place = find_entry(tree, node, slot)
    if place == NOTHING:
        return False
    count -= 1
    if place != start + count:
        tree.runs.records[place] = tree.runs.records[start + count]
    row["count"] = count
    row["weight"] = count
    room = int(row["room"])
    if count == 0:
        release_run(tree, row)
    elif is_wasteful(tree.runs, count, room):
        row["start"] = moved_run(tree.runs, start, count, room, room - 1)
        row["room"] = room - 1
    return True


@leaf
def release_run(tree: Tree, row: Row) -> None:
    """Free the run of a leaf."""
    if row["room"] != NO_RUN:
        free_run(tree.runs, int(row["start"]), int(row["room"]))
        row["start"] = NO_RUN
        row["room"] = NO_RUN


@leaf
def weigh(tree: Tree, node: int, delta: int) -> None:
    """Add to the weight of all ancestors of a node."""
    above = int(tree.nodes[node]["parent"])
    while above != NOTHING:
        tree.nodes[above]["weight"] += delta
        above = int(tree.nodes[above]["parent"])
