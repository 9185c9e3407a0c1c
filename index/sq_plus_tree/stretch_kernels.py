"""Entries lie in stretches of a power of two, reused by size; who points at an entry follows it."""

from __future__ import annotations

from index.sq_plus_tree.layout import ENTRY_END, NOTHING, ROOM_MAX, Forest
from safe_region.jit import leaf


@leaf
def take_stretch(forest: Forest, room: int) -> int:
    """Return the first entry of a free stretch of 2**room."""
    start = forest.free_stretches[room]
    if start != NOTHING:
        forest.free_stretches[room] = forest.entries[start]["slot"]
        return int(start)
    start = forest.meta[ENTRY_END]
    forest.meta[ENTRY_END] += 1 << int(room)
    forest.meta[ROOM_MAX] = max(forest.meta[ROOM_MAX], room)
    return int(start)


@leaf
def give_back_stretch(forest: Forest, start: int, room: int) -> None:
    """Chain a stretch as free."""
    forest.entries[start]["slot"] = forest.free_stretches[room]
    forest.free_stretches[room] = start


@leaf
def move_entry(forest: Forest, source: int, target: int, owner: int) -> None:
    """Copy an entry; its subscription points at the copy."""
    entry = forest.entries[source]
    copy = forest.entries[target]
    copy["x_m"] = entry["x_m"]
    copy["y_m"] = entry["y_m"]
    copy["reach_m"] = entry["reach_m"]
    copy["weight_m"] = entry["weight_m"]
    copy["slot"] = entry["slot"]
    copy["place"] = entry["place"]
    copy["owner"] = owner
    forest.places[forest.subscriptions[entry["slot"]]["place_start"] + entry["place"]] = target


@leaf
def grown(forest: Forest, start: int, count: int, room: int, owner: int) -> int:
    """Return a stretch of twice the room with the same entries; the old one is given back."""
    wider = take_stretch(forest, room + 1)
    for i in range(count):
        move_entry(forest, start + i, wider + i, owner)
    give_back_stretch(forest, start, room)
    return wider
