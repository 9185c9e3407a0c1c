"""The batch operations of the IQ-tree: see `index.published.iq_tree.index` for the plan."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.published.iq_tree.layout import Occurrences
from index.tables.buckets.kernels import (
    BLOCK_CAPACITY,
    DEPTH_MAX,
    append,
    collapse,
    has_room,
    include,
    is_full,
    is_sparse,
    split,
    take_out,
)
from index.tables.buckets.layout import Objects, Trees
from index.tables.buckets.question_kernels import (
    Answered,
    Kept,
    Queries,
    Question,
    close,
    kept_of,
    least_share,
    limit_of,
    question_of,
    scratch_for,
    words_of,
)
from index.tables.buckets.scan_kernels import scan_leaf
from index.tables.heap_kernels import Heap, pop, push
from index.tables.id_map_kernels import LOAD_MAX, NO_KEY, NO_VALUE, find, find_cell
from index.tables.id_map_kernels import pop as pop_key
from index.tables.quad_kernels import NO_NODE, child_of, node_distance
from index.tables.signature_kernels import bit_of, signature_of
from safe_region.jit import kernel, leaf

KEY_COUNT = 0
"""In meta: keys in use."""
META_COUNT = 1

KEYS_FULL = -1
TREES_FULL = -2


@leaf
def key_of(node: int, keyword: int) -> int:
    """Return the key of a node and a keyword."""
    return (int(node) << 32) | int(keyword)


@leaf
def _add_keywords(occurrences: Occurrences, objects: Objects, node: int, slot: int) -> None:
    """Count an object's keywords at a node."""
    row = objects.rows[slot]
    for i in range(row["keyword_start"], row["keyword_start"] + row["keyword_count"]):
        key = key_of(node, objects.pool[i])
        cell = find_cell(occurrences.keys, key)
        if occurrences.keys[cell] == NO_KEY:
            occurrences.keys[cell] = key
            occurrences.values[cell] = 0
            occurrences.meta[KEY_COUNT] += 1
        occurrences.values[cell] += 1


@leaf
def _drop_keywords(occurrences: Occurrences, objects: Objects, node: int, slot: int) -> None:
    """Discount an object's keywords at a node."""
    row = objects.rows[slot]
    for i in range(row["keyword_start"], row["keyword_start"] + row["keyword_count"]):
        key = key_of(node, objects.pool[i])
        cell = find_cell(occurrences.keys, key)
        occurrences.values[cell] -= 1
        if occurrences.values[cell] == 0:
            pop_key(occurrences.keys, occurrences.values, key)
            occurrences.meta[KEY_COUNT] -= 1


@leaf
def _key_need(trees: Trees, objects: Objects, root: int, slot: int) -> int:
    """Return the maximum number of new keys for an object."""
    row = objects.rows[slot]
    node = root
    while trees.nodes[node]["first_child"] != NO_NODE:
        node = child_of(trees.nodes, node, row["x_m"], row["y_m"])
    depth = int(trees.nodes[node]["depth"])
    need = (depth + 1) * int(row["keyword_count"])
    if is_full(trees, node):
        below = int(row["keyword_count"])
        first = trees.nodes[node]["block"] * BLOCK_CAPACITY
        for place in range(first, first + BLOCK_CAPACITY):
            below += int(trees.entries[place]["keyword_count"])
        need += (DEPTH_MAX - depth) * below
    return need


@leaf
def _add_below(trees: Trees, occurrences: Occurrences, objects: Objects, node: int) -> None:
    """Count the keywords at the children of a node that has just been split."""
    first_child = trees.nodes[node]["first_child"]
    for child in range(first_child, first_child + 4):
        first = trees.nodes[child]["block"] * BLOCK_CAPACITY
        for place in range(first, first + trees.nodes[child]["count"]):
            _add_keywords(occurrences, objects, child, trees.entries[place]["slot"])


@leaf
def _drop_below(trees: Trees, occurrences: Occurrences, objects: Objects, node: int) -> None:
    """Remove the keywords of the children of a node that is about to collapse."""
    first_child = trees.nodes[node]["first_child"]
    for child in range(first_child, first_child + 4):
        first = trees.nodes[child]["block"] * BLOCK_CAPACITY
        for place in range(first, first + trees.nodes[child]["count"]):
            _drop_keywords(occurrences, objects, child, trees.entries[place]["slot"])


@kernel
def insert(
    trees: Trees,
    occurrences: Occurrences,
    objects: Objects,
    root: int,
    slots: npt.NDArray[np.int32],
    done: int,
) -> tuple[int, int]:
    """Insert objects, from `done` on; return the number done and a status, 0 if all are."""
    for i in range(done, slots.shape[0]):
        slot = slots[i]
        row = objects.rows[slot]
        if not has_room(trees):
            return i, TREES_FULL
        room = occurrences.keys.shape[0] * LOAD_MAX - occurrences.meta[KEY_COUNT]
        if _key_need(trees, objects, root, slot) > room:
            return i, KEYS_FULL
        start = row["keyword_start"]
        signature = signature_of(objects.pool[start : start + row["keyword_count"]])
        node = root
        while True:
            if trees.nodes[node]["first_child"] == NO_NODE:
                if not is_full(trees, node):
                    append(trees, objects, node, slot, signature, 0)
                    _add_keywords(occurrences, objects, node, slot)
                    break
                split(trees, objects, node)
                _add_below(trees, occurrences, objects, node)
            include(trees, node, row["keyword_count"])
            _add_keywords(occurrences, objects, node, slot)
            node = child_of(trees.nodes, node, row["x_m"], row["y_m"])
    return slots.shape[0], 0


@kernel
def remove(
    trees: Trees, occurrences: Occurrences, objects: Objects, slots: npt.NDArray[np.int32]
) -> None:
    """Remove objects."""
    for slot in slots:
        place = objects.places[objects.rows[slot]["keyword_start"]]
        leaf_node = take_out(trees, objects, place)
        node = leaf_node
        while node != NO_NODE:
            _drop_keywords(occurrences, objects, node, slot)
            node = trees.nodes[node]["parent"]
        node = trees.nodes[leaf_node]["parent"]
        while is_sparse(trees, node):
            _drop_below(trees, occurrences, objects, node)
            collapse(trees, objects, node)
            node = trees.nodes[node]["parent"]


@leaf
def _common_below(question: Question, occurrences: Occurrences, node: int) -> int:
    """Return the number of the subscription's keywords that occur below a node."""
    common = 0
    for i in range(question.words.shape[0]):
        key = key_of(node, question.words[i])
        if find(occurrences.keys, occurrences.values, key) != NO_VALUE:
            common += 1
    return common


@leaf
def _search(
    question: Question,
    trees: Trees,
    occurrences: Occurrences,
    root: int,
    objects: Objects,
    frontier: Heap,
    kept: Kept,
) -> int:
    """Offer objects of the nodes of least bound first; return the number kept."""
    nodes = trees.nodes
    word_count = question.words.shape[0]
    size = 0
    waiting = push(frontier, 0, 0.0, root)
    while waiting > 0:
        node = frontier.items[0]
        if frontier.keys[0] > limit_of(question, kept, size):
            break
        waiting = pop(frontier, waiting)
        first = nodes[node]["first_child"]
        if first == NO_NODE:
            size = scan_leaf(question, 0, trees, node, objects, kept, size)
            continue
        for child in range(first, first + 4):
            if nodes[child]["count"] == 0:
                continue
            keyword_min = nodes[child]["keyword_min"]
            away = node_distance(nodes, child, question.x_m, question.y_m)
            limit = limit_of(question, kept, size)
            if away + least_share(question, word_count, keyword_min) > limit:
                continue
            common = _common_below(question, occurrences, child)
            if common == 0:
                continue
            bound = away + least_share(question, common, keyword_min)
            if bound <= limit:
                waiting = push(frontier, waiting, bound, child)
    return size


@kernel
def best(
    trees: Trees,
    occurrences: Occurrences,
    objects: Objects,
    root: int,
    queries: Queries,
    answered: Answered,
    frontier: Heap,
) -> None:
    """Process a batch of queries."""
    scratch = scratch_for(queries)
    for i in range(answered.sizes.shape[0]):
        words = words_of(queries, i)
        for j in range(words.shape[0]):
            scratch.bits[j] = bit_of(words[j])
        question = question_of(queries, i, words.shape[0], scratch)
        kept = kept_of(answered, i)
        size = 0
        if kept.ids.shape[0] > 0:
            size = _search(question, trees, occurrences, root, objects, frontier, kept)
        close(answered, i, kept, size)
