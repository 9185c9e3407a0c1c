"""Keyword combinations as paths of a trie, and the buckets of combinations with few subscriptions."""

from __future__ import annotations

from index.sq_plus_tree import layout as L
from index.sq_plus_tree.layout import Forest
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.id_map_kernels import find, pop, put
from safe_region.jit import leaf

_KEYWORD_BITS = 32


@leaf
def _key(node: int, keyword: int) -> int:
    """Return the hash key of a combination."""
    return (int(node) << _KEYWORD_BITS) | int(keyword)


@leaf
def child(forest: Forest, node: int, keyword: int) -> int:
    """Return the combination of a node's and one lesser keyword, or NOTHING."""
    return find(forest.node_keys, forest.node_values, _key(node, keyword))


@leaf
def make_child(forest: Forest, node: int, keyword: int) -> int:
    """Return the combination of a node's and one lesser keyword; a new one becomes an empty bucket."""
    found = child(forest, node, keyword)
    if found != L.NOTHING:
        return found
    meta = forest.meta
    found = take_rows(forest.nodes["parent"], meta, L.FREE_NODE, meta, L.NODE_END, 1)
    meta[L.NODE_COUNT] += 1
    row = forest.nodes[found]
    row["parent"] = node
    row["keyword"] = keyword
    row["count"] = 0
    row["start"] = L.NOTHING
    row["entry_count"] = 0
    row["cell"] = L.NOTHING
    row["room"] = 0
    row["depth"] = forest.nodes[node]["depth"] + 1
    row["is_bucket"] = 1
    put(forest.node_keys, forest.node_values, _key(node, keyword), found)
    return found


@leaf
def drop_node(forest: Forest, node: int) -> None:
    """Remove a combination that no subscription has."""
    row = forest.nodes[node]
    pop(forest.node_keys, forest.node_values, _key(row["parent"], row["keyword"]))
    give_back_rows(forest.nodes["parent"], forest.meta, L.FREE_NODE, node)
    forest.meta[L.NODE_COUNT] -= 1


@leaf
def add_member(forest: Forest, node: int, slot: int) -> None:
    """Add a subscription to a bucket; its `count` is the number of members."""
    row = forest.nodes[node]
    count = int(row["count"])
    if count == 0:
        row["room"] = 0
        row["start"] = take_rows(forest.members, forest.free_members, 0, forest.meta, L.MEMBER_END, 1)
    elif count == 1 << int(row["room"]):
        room = int(row["room"])
        start = int(row["start"])
        wider = take_rows(
            forest.members, forest.free_members, room + 1, forest.meta, L.MEMBER_END, 2 << room
        )
        for i in range(count):
            forest.members[wider + i] = forest.members[start + i]
        give_back_rows(forest.members, forest.free_members, room, start)
        row["start"] = wider
        row["room"] = room + 1
    forest.members[row["start"] + count] = slot
    row["count"] += 1


@leaf
def remove_member(forest: Forest, node: int, slot: int) -> None:
    """Remove a subscription from a bucket."""
    row = forest.nodes[node]
    row["count"] -= 1
    last = int(row["start"] + row["count"])
    for place in range(int(row["start"]), last):
        if forest.members[place] == slot:
            forest.members[place] = forest.members[last]
            break
    if row["count"] == 0:
        release_bucket(forest, node)


@leaf
def release_bucket(forest: Forest, node: int) -> None:
    """Free the run of a bucket."""
    row = forest.nodes[node]
    give_back_rows(forest.members, forest.free_members, int(row["room"]), int(row["start"]))
    row["start"] = L.NOTHING
    row["room"] = 0
