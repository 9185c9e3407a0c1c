"""Inverted files: the summary in a node of the texts below it.

All files are one hash, keyed by the number of the file and the keyword. A posting has the least number of
keywords, and the least norm, of the objects below that have its keyword. They bound the keyword's
component of a unit vector, for any similarity.

Operations: note O(keywords), make O(keywords of all objects below). `make_pending` stops when space is
lacking and may be called again.
"""

from __future__ import annotations

from index.published.ir_tree.box_kernels import tighten
from index.published.ir_tree.layout import (
    FILE_END,
    KEY_COUNT,
    NOTHING,
    PENDING_COUNT,
    Tree,
)
from index.tables.buckets.layout import Objects
from index.tables.id_map_kernels import LOAD_MAX, NO_KEY, find_cell
from index.tables.norm_kernels import code_of_norm
from safe_region.jit import leaf

DONE = 0
KEYS_FULL = 1
FILES_FULL = 2
NODES_FULL = 3

KEYWORD_BITS = 32
KEYWORD_MASK = (1 << KEYWORD_BITS) - 1
COUNT_MAX = 255
_COUNT_BITS = 8


@leaf
def key_of(file: int, keyword: int) -> int:
    """Return the key of a posting."""
    return (int(file) << KEYWORD_BITS) | int(keyword)


@leaf
def posting(count: int, code: int) -> int:
    """Return a posting."""
    return (int(code) << _COUNT_BITS) | min(int(count), COUNT_MAX)


@leaf
def count_of(value: int) -> int:
    """Return the least number of keywords, COUNT_MAX for more."""
    return int(value) & COUNT_MAX


@leaf
def code_of(value: int) -> int:
    """Return the least code of a norm."""
    return int(value) >> _COUNT_BITS


@leaf
def has_room(tree: Tree, count: int) -> bool:
    """Return whether there is space for this many more postings."""
    return bool(tree.meta[KEY_COUNT] + count <= LOAD_MAX * tree.keys.shape[0])


@leaf
def note(tree: Tree, file: int, objects: Objects, slot: int) -> None:
    """Add an object to a file. The caller has verified the capacity."""
    row = objects.rows[slot]
    code = code_of_norm(float(row["norm2"]))
    start = int(row["keyword_start"])
    for place in range(start, start + int(row["keyword_count"])):
        key = key_of(file, int(objects.pool[place]))
        cell = find_cell(tree.keys, key)
        if tree.keys[cell] == NO_KEY:
            tree.keys[cell] = key
            tree.values[cell] = posting(int(row["keyword_count"]), code)
            tree.meta[KEY_COUNT] += 1
        else:
            before = tree.values[cell]
            count = min(count_of(before), int(row["keyword_count"]))
            tree.values[cell] = posting(count, min(code_of(before), code))


@leaf
def _note_all(tree: Tree, node: int, objects: Objects) -> int:
    """Add all objects below a node to its file; return a status."""
    file = int(tree.nodes[node]["file"])
    tree.stack[0] = node
    size = 1
    while size > 0:
        size -= 1
        here = int(tree.stack[size])
        for i in range(tree.nodes[here]["count"]):
            child = int(tree.children[here, i])
            if not tree.nodes[here]["is_leaf"]:
                tree.stack[size] = child
                size += 1
                continue
            if not has_room(tree, int(objects.rows[child]["keyword_count"])):
                return KEYS_FULL
            note(tree, file, objects, child)
    return DONE


@leaf
def retire(tree: Tree, node: int) -> None:
    """Mark the file of a node as unused."""
    file = tree.nodes[node]["file"]
    if file != NOTHING:
        tree.owners[file] = NOTHING
        tree.nodes[node]["file"] = NOTHING


@leaf
def make_pending(tree: Tree, objects: Objects) -> int:
    """Build the pending files of nodes that still exist; return a status."""
    while tree.meta[PENDING_COUNT] > 0:
        node = int(tree.pending[tree.meta[PENDING_COUNT] - 1])
        if tree.meta[FILE_END] >= tree.owners.shape[0]:
            return FILES_FULL
        if tree.nodes[node]["live"] > 0:
            retire(tree, node)
            tighten(tree, node, objects)
            tree.nodes[node]["file"] = tree.meta[FILE_END]
            tree.nodes[node]["gone"] = 0
            tree.owners[tree.meta[FILE_END]] = node
            tree.meta[FILE_END] += 1
            status = _note_all(tree, node, objects)
            if status != DONE:
                return status
        tree.meta[PENDING_COUNT] -= 1
    return DONE


@leaf
def expect(tree: Tree, node: int) -> None:
    """Record a file as pending."""
    tree.pending[tree.meta[PENDING_COUNT]] = node
    tree.meta[PENDING_COUNT] += 1
