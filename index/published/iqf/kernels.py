"""The batch operations of IQF: see `index.published.iqf.index` for the plan."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints, KeywordIds
from index.published.iqf.layout import Files
from index.published.iqf.list_kernels import DONE, add_posting, drop_posting, list_count
from index.tables.buckets.layout import Objects, Trees
from index.tables.buckets.question_kernels import (
    Answered,
    Kept,
    Queries,
    Question,
    Scratch,
    close,
    kept_of,
    least_share,
    limit_of,
    question_of,
    scratch_for,
    words_of,
)
from index.tables.buckets.scan_kernels import scan, scan_leaf
from index.tables.heap_kernels import Heap, pop, push
from index.tables.id_map_kernels import NO_VALUE, find
from index.tables.quad_kernels import NO_NODE, node_distance
from index.tables.signature_kernels import bit_of, signature_of
from safe_region.jit import kernel, leaf

CURSOR_ROW = 0
"""In a cursor: rows of the batch that are done."""
CURSOR_ORDINAL = 1
"""In a cursor: keywords of the next row that are done."""


@kernel
def insert(
    files: Files,
    trees: Trees,
    objects: Objects,
    slots: npt.NDArray[np.int32],
    cursor: Ints,
) -> int:
    """Insert objects under their keywords, starting at `cursor`, which is updated; return a status."""
    for i in range(cursor[CURSOR_ROW], slots.shape[0]):
        slot = slots[i]
        row = objects.rows[slot]
        start = row["keyword_start"]
        signature = signature_of(objects.pool[start : start + row["keyword_count"]])
        for ordinal in range(cursor[CURSOR_ORDINAL], row["keyword_count"]):
            status = add_posting(files, trees, objects, slot, signature, ordinal)
            if status != DONE:
                cursor[CURSOR_ROW] = i
                cursor[CURSOR_ORDINAL] = ordinal
                return status
        cursor[CURSOR_ORDINAL] = 0
    return DONE


@kernel
def remove(files: Files, trees: Trees, objects: Objects, slots: npt.NDArray[np.int32]) -> None:
    """Remove objects from the lists of their keywords."""
    for slot in slots:
        for ordinal in range(objects.rows[slot]["keyword_count"]):
            drop_posting(files, trees, objects, slot, ordinal)


@leaf
def _plan(files: Files, trees: Trees, words: KeywordIds, plan: Ints, scratch: Scratch) -> int:
    """Sort the lists of a subscription's keywords, shortest first; return their number.

    Writes their numbers to `plan`, the keyword of each, and the ranks and bits of these.
    """
    counts = scratch.counts
    order = scratch.order
    known = 0
    for i in range(words.shape[0]):
        number = find(files.keys, files.values, int(words[i]))
        if number == NO_VALUE:
            continue
        count = list_count(files, trees, number)
        j = known
        while j > 0 and counts[j - 1] > count:
            counts[j] = counts[j - 1]
            plan[j] = plan[j - 1]
            order[j] = order[j - 1]
            j -= 1
        counts[j] = count
        plan[j] = number
        order[j] = i
        known += 1
    for i in range(words.shape[0]):
        scratch.ranks[i] = known
    for rank in range(known):
        scratch.ranks[order[rank]] = rank
        scratch.bits[rank] = bit_of(words[order[rank]])
    return known


@leaf
def _search_tree(
    question: Question,
    rank: int,
    trees: Trees,
    root: int,
    objects: Objects,
    frontier: Heap,
    kept: Kept,
    size: int,
) -> int:
    """Search-QF: offer objects of a frequent keyword's quadtree, nearest cells first."""
    nodes = trees.nodes
    most = question.bits.shape[0] - rank
    waiting = push(frontier, 0, 0.0, root)
    while waiting > 0:
        node = frontier.items[0]
        if frontier.keys[0] > limit_of(question, kept, size):
            break
        waiting = pop(frontier, waiting)
        first = nodes[node]["first_child"]
        if first == NO_NODE:
            size = scan_leaf(question, rank, trees, node, objects, kept, size)
            continue
        for child in range(first, first + 4):
            if nodes[child]["count"] > 0:
                share = least_share(question, most, nodes[child]["keyword_min"])
                bound = node_distance(nodes, child, question.x_m, question.y_m) + share
                if bound <= limit_of(question, kept, size):
                    waiting = push(frontier, waiting, bound, child)
    return size


@leaf
def _retrieve(
    question: Question,
    plan: Ints,
    files: Files,
    trees: Trees,
    objects: Objects,
    frontier: Heap,
    kept: Kept,
) -> int:
    """RetrieveObject, Algorithm 4, for the best objects of a subscription; return their number."""
    size = 0
    if kept.ids.shape[0] == 0:
        return size
    for rank in range(question.bits.shape[0]):
        if least_share(question, question.bits.shape[0] - rank, 0) > limit_of(question, kept, size):
            break
        row = files.lists[plan[rank]]
        if row["root"] == NO_NODE:
            size = scan(
                question, rank, 0, files.runs.records, row["start"], row["count"], objects, kept, size
            )
        else:
            size = _search_tree(question, rank, trees, row["root"], objects, frontier, kept, size)
    return size


@kernel
def best(
    files: Files,
    trees: Trees,
    objects: Objects,
    queries: Queries,
    answered: Answered,
    frontier: Heap,
) -> None:
    """Process a batch of queries."""
    scratch = scratch_for(queries)
    plan = np.empty_like(scratch.order)
    for i in range(answered.sizes.shape[0]):
        words = words_of(queries, i)
        known = _plan(files, trees, words, plan, scratch)
        question = question_of(queries, i, known, scratch)
        kept = kept_of(answered, i)
        size = _retrieve(question, plan, files, trees, objects, frontier, kept)
        close(answered, i, kept, size)
