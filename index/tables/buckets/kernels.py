"""Bucket quadtrees: entries in leaves, leaves as blocks of fixed capacity.

A full leaf splits; at DEPTH_MAX it chains blocks instead. All blocks of a leaf except the first are full,
so a leaf's count determines the position of its last entry. An entry is found by its *place*, block *
BLOCK_CAPACITY + offset. The place is kept beside the keyword pool for each (object, ordinal) and is
updated when the entry moves.

Operations: descend, append and take_out O(depth); split O(BLOCK_CAPACITY), collapse O(MERGE_MAX). Callers
check the capacity (`has_room`) before they insert; removal needs none.

`keyword_min` of an inner node is the least of its children's. In a leaf of one block it is exact. In a
leaf of several, at the depth limit, the object that it was computed from may have been removed: then it
is a lower bound.
"""

from __future__ import annotations

from index.tables.buckets.layout import Objects, Trees
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.quad_kernels import (
    NO_NODE,
    child_of,
    free_group,
    group_room,
    set_children,
    set_root,
    take_group,
)
from safe_region.jit import leaf

NO_BLOCK = -1

BLOCK_CAPACITY = 32
"""Entries of a block: 1 KiB."""

MERGE_MAX = 16
"""Children with no more entries than this together collapse into their parent: half a block, so that a
leaf does not split and merge alternately."""

DEPTH_MAX = 16
"""A cell at this depth is 65,536 times smaller than the root's square: a metre of a city."""

GROUPS_SPARE = DEPTH_MAX + 2
"""One entry may split every cell on its path, and the root may be new."""

BLOCKS_SPARE = 7
"""A split that leaves the new entry's child full moves one block; the last one fills at most four."""

KEYWORDS_MANY = 1 << 30
"""`keyword_min` of a node without entries."""

BLOCK_END = 3
"""In meta: every block from here on is unused."""
BLOCK_FREE = 4
"""In meta: the first free block, NO_BLOCK if there is none."""
BLOCK_FREE_COUNT = 5
META_COUNT = 6


@leaf
def _has_groups(trees: Trees) -> bool:
    """Return whether there are nodes for one insertion and one new root, however deep it splits."""
    return group_room(trees.nodes, trees.meta) >= GROUPS_SPARE


@leaf
def _has_blocks(trees: Trees) -> bool:
    """Return whether there are blocks for one insertion."""
    free_count = trees.meta[BLOCK_FREE_COUNT] + trees.blocks.shape[0] - trees.meta[BLOCK_END]
    return bool(free_count >= BLOCKS_SPARE)


@leaf
def has_room(trees: Trees) -> bool:
    """Return whether there is capacity for one insertion and one new root."""
    return _has_groups(trees) and _has_blocks(trees)


@leaf
def _take_block(trees: Trees, node: int) -> int:
    meta = trees.meta
    if meta[BLOCK_FREE] != NO_BLOCK:
        meta[BLOCK_FREE_COUNT] -= 1
    block = take_rows(trees.blocks["next"], meta, BLOCK_FREE, meta, BLOCK_END, 1)
    trees.blocks[block]["node"] = node
    trees.blocks[block]["next"] = trees.nodes[node]["block"]
    trees.nodes[node]["block"] = block
    return block


@leaf
def free_block(trees: Trees, block: int) -> None:
    """Free a block."""
    trees.blocks[block]["node"] = NO_NODE
    give_back_rows(trees.blocks["next"], trees.meta, BLOCK_FREE, block)
    trees.meta[BLOCK_FREE_COUNT] += 1


@leaf
def _set_empty(trees: Trees, node: int) -> None:
    row = trees.nodes[node]
    row["block"] = NO_BLOCK
    row["count"] = 0
    row["keyword_min"] = KEYWORDS_MANY


@leaf
def plant(trees: Trees, x_m: float, y_m: float, half_m: float) -> int:
    """Create a tree; return its root."""
    root = take_group(trees.nodes, trees.meta)
    set_root(trees.nodes, root, x_m, y_m, half_m)
    _set_empty(trees, root)
    return root


@leaf
def include(trees: Trees, node: int, keyword_count: int) -> None:
    """Count one more entry below a node."""
    row = trees.nodes[node]
    row["count"] += 1
    row["keyword_min"] = min(row["keyword_min"], keyword_count)


@leaf
def is_full(trees: Trees, node: int) -> bool:
    """Return whether a leaf must split before the next insertion."""
    row = trees.nodes[node]
    return bool(row["count"] >= BLOCK_CAPACITY and row["depth"] < DEPTH_MAX)


@leaf
def _next_place(trees: Trees, node: int) -> int:
    """Return the place of the next entry of a leaf, which its count does not include yet."""
    offset = trees.nodes[node]["count"] % BLOCK_CAPACITY
    block = _take_block(trees, node) if offset == 0 else trees.nodes[node]["block"]
    return int(block * BLOCK_CAPACITY + offset)


@leaf
def set_entry(
    trees: Trees, objects: Objects, place: int, slot: int, signature: int, ordinal: int
) -> None:
    """Write an object's entry."""
    entry = trees.entries[place]
    row = objects.rows[slot]
    entry["x_m"] = row["x_m"]
    entry["y_m"] = row["y_m"]
    entry["signature"] = signature
    entry["slot"] = slot
    entry["keyword_count"] = row["keyword_count"]
    entry["ordinal"] = ordinal
    objects.places[row["keyword_start"] + ordinal] = place


@leaf
def append(trees: Trees, objects: Objects, node: int, slot: int, signature: int, ordinal: int) -> None:
    """Append an object to a leaf that is not full."""
    set_entry(trees, objects, _next_place(trees, node), slot, signature, ordinal)
    include(trees, node, objects.rows[slot]["keyword_count"])


@leaf
def _move(trees: Trees, objects: Objects, source: int, target: int) -> None:
    """Move an entry to another place."""
    trees.entries[target] = trees.entries[source]
    entry = trees.entries[target]
    objects.places[objects.rows[entry["slot"]]["keyword_start"] + entry["ordinal"]] = target


@leaf
def split(trees: Trees, objects: Objects, node: int) -> None:
    """Split a full leaf into four children and distribute its entries."""
    nodes = trees.nodes
    block = nodes[node]["block"]
    first = take_group(nodes, trees.meta)
    set_children(nodes, node, first)
    for i in range(4):
        _set_empty(trees, first + i)
    for source in range(block * BLOCK_CAPACITY, (block + 1) * BLOCK_CAPACITY):
        entry = trees.entries[source]
        child = child_of(nodes, node, entry["x_m"], entry["y_m"])
        keyword_count = entry["keyword_count"]
        _move(trees, objects, source, _next_place(trees, child))
        include(trees, child, keyword_count)
    nodes[node]["block"] = NO_BLOCK
    free_block(trees, block)


@leaf
def insert(trees: Trees, objects: Objects, root: int, slot: int, signature: int, ordinal: int) -> None:
    """Insert an object into a tree; `has_room` holds."""
    row = objects.rows[slot]
    node = root
    while True:
        if trees.nodes[node]["first_child"] == NO_NODE:
            if not is_full(trees, node):
                append(trees, objects, node, slot, signature, ordinal)
                return
            split(trees, objects, node)
        include(trees, node, row["keyword_count"])
        node = child_of(trees.nodes, node, row["x_m"], row["y_m"])


@leaf
def _summarize(trees: Trees, node: int) -> None:
    """Recompute `keyword_min` of a leaf of one block exactly."""
    row = trees.nodes[node]
    first = row["block"] * BLOCK_CAPACITY
    keyword_min = KEYWORDS_MANY
    for place in range(first, first + row["count"]):
        keyword_min = min(keyword_min, int(trees.entries[place]["keyword_count"]))
    row["keyword_min"] = keyword_min


@leaf
def _summarize_inner(trees: Trees, node: int) -> None:
    first = trees.nodes[node]["first_child"]
    keyword_min = KEYWORDS_MANY
    for child in range(first, first + 4):
        keyword_min = min(keyword_min, int(trees.nodes[child]["keyword_min"]))
    trees.nodes[node]["keyword_min"] = keyword_min


@leaf
def take_out(trees: Trees, objects: Objects, place: int) -> int:
    """Remove an entry from its leaf and decrement the counts up to the root; return the leaf.

    Merges nothing.
    """
    nodes = trees.nodes
    node = int(trees.blocks[place // BLOCK_CAPACITY]["node"])
    row = nodes[node]
    head = row["block"]
    offset = (row["count"] - 1) % BLOCK_CAPACITY
    last = head * BLOCK_CAPACITY + offset
    if last != place:
        _move(trees, objects, last, place)
    row["count"] -= 1
    if offset == 0:
        row["block"] = trees.blocks[head]["next"]
        free_block(trees, head)
    before = row["keyword_min"]
    if row["count"] <= BLOCK_CAPACITY:
        _summarize(trees, node)
    is_changed = row["keyword_min"] != before
    above = row["parent"]
    while above != NO_NODE:
        nodes[above]["count"] -= 1
        if is_changed:
            before = nodes[above]["keyword_min"]
            _summarize_inner(trees, above)
            is_changed = nodes[above]["keyword_min"] != before
        above = nodes[above]["parent"]
    return node


@leaf
def is_sparse(trees: Trees, node: int) -> bool:
    """Return whether an inner node should collapse; its children, sparse before it, are leaves then."""
    return bool(node != NO_NODE and trees.nodes[node]["count"] <= MERGE_MAX)


@leaf
def collapse(trees: Trees, objects: Objects, node: int) -> None:
    """Turn a sparse inner node into a leaf again."""
    nodes = trees.nodes
    first = nodes[node]["first_child"]
    _set_empty(trees, node)
    for child in range(first, first + 4):
        block = nodes[child]["block"]
        count = nodes[child]["count"]
        if count == 0:
            continue
        if nodes[node]["block"] == NO_BLOCK:  # the first block that is not empty becomes the node's
            nodes[node]["block"] = block
            trees.blocks[block]["node"] = node
            nodes[node]["count"] = count
            continue
        for source in range(block * BLOCK_CAPACITY, block * BLOCK_CAPACITY + count):
            _move(trees, objects, source, _next_place(trees, node))
            nodes[node]["count"] += 1
        free_block(trees, block)
    nodes[node]["first_child"] = NO_NODE
    free_group(nodes, trees.meta, first)
    _summarize(trees, node)


@leaf
def remove(trees: Trees, objects: Objects, place: int) -> None:
    """Remove an entry from its tree."""
    node = trees.nodes[take_out(trees, objects, place)]["parent"]
    while is_sparse(trees, node):
        collapse(trees, objects, node)
        node = trees.nodes[node]["parent"]


@leaf
def fell(trees: Trees, root: int) -> None:
    """Free the root of a tree without entries."""
    free_group(trees.nodes, trees.meta, root)
