"""Searching an IR-tree: best first for `best`, all nodes that may have matches for `within`."""

from __future__ import annotations

import math

from index.batches import Ints
from index.published.ir_tree.file_kernels import COUNT_MAX, code_of, count_of, key_of
from index.published.ir_tree.layout import NOTHING, ROOT, Tree
from index.tables.box_kernels import distance
from index.tables.buckets.layout import Objects
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
    share_of,
    words_of,
)
from index.tables.heap_kernels import Heap, pop, push
from index.tables.id_map_kernels import NO_VALUE, find
from index.tables.norm_kernels import norm_of_code
from index.tables.selection_kernels import offer
from index.tables.within_kernels import BoxQueries as Boxes
from index.tables.within_kernels import Wanted, is_wanted, keep, wanted_of
from safe_region.jit import kernel, leaf
from safe_region.scoring.formulas import Similarity
from safe_region.scoring.kernels import length

_TFIDF = int(Similarity.TFIDF)
_ROUNDING = 1e-12
"""Of distances and weighted texts, which are not rounded like lengths."""
_NOTHING_COMMON = -1.0


@leaf
def _least_below(question: Question, tree: Tree, node: int) -> float:
    """Return the least text part that an object below a node may have, or _NOTHING_COMMON.

    With weights the cosine is at most the sum, over the keywords that occur below, of the maximum that
    each can add to it: its square over the norms of the subscription and of an object with it.
    """
    file = int(tree.nodes[node]["file"])
    common = 0
    count_min = COUNT_MAX
    cosine = 0.0
    for i in range(question.words.shape[0]):
        value = find(tree.keys, tree.values, key_of(file, question.words[i]))
        if value == NO_VALUE:
            continue
        common += 1
        count_min = min(count_min, count_of(value))
        square = float(question.squares[i])
        if question.similarity == _TFIDF and square > 0.0:
            norm = max(norm_of_code(code_of(value)), square)
            cosine += square / math.sqrt(question.norm * norm)
    if common == 0:
        return _NOTHING_COMMON
    if question.similarity == _TFIDF:
        return float(question.weight_m * max(0.0, 1.0 - cosine - _ROUNDING))
    return least_share(question, common, count_min)


@leaf
def _offer_all(question: Question, tree: Tree, node: int, objects: Objects, kept: Kept, size: int) -> int:
    """Offer the objects of a leaf; return the number kept."""
    for place in range(tree.nodes[node]["count"]):
        row = objects.rows[tree.children[node, place]]
        if row["id"] < question.first_id:
            continue
        dx, dy = question.x_m - float(row["x_m"]), question.y_m - float(row["y_m"])
        limit = limit_of(question, kept, size)
        if length(dx, dy, 0.0) > limit:
            continue
        common = 0.0
        is_common = False
        i, j = 0, int(row["keyword_start"])
        end = j + int(row["keyword_count"])
        while i < question.words.shape[0] and j < end:
            if question.words[i] == objects.pool[j]:
                common += question.squares[i]
                is_common = True
                i += 1
                j += 1
            elif question.words[i] < objects.pool[j]:
                i += 1
            else:
                j += 1
        if not is_common:
            continue
        share = share_of(question, common, int(row["keyword_count"]), float(row["norm2"]))
        here = length(dx, dy, share)
        if here <= limit:
            size = offer(kept.lengths, kept.ids, kept.shares, size, here, row["id"], share)
    return size


@leaf
def _search(question: Question, tree: Tree, objects: Objects, frontier: Heap, kept: Kept) -> int:
    """Offer objects of the nodes of least bound first; return the number kept."""
    size = 0
    waiting = 0
    root = int(tree.meta[ROOT])
    if tree.nodes[root]["file"] != NOTHING:
        waiting = push(frontier, 0, 0.0, root)
    while waiting > 0:
        node = int(frontier.items[0])
        limit = limit_of(question, kept, size)
        if frontier.keys[0] > limit + limit * _ROUNDING:
            break
        waiting = pop(frontier, waiting)
        if tree.nodes[node]["is_leaf"]:
            size = _offer_all(question, tree, node, objects, kept, size)
            continue
        for place in range(tree.nodes[node]["count"]):
            child = int(tree.children[node, place])
            away_m = distance(tree.nodes[child], question.x_m, question.y_m)
            if away_m > limit + limit * _ROUNDING:
                continue
            share_m = _least_below(question, tree, child)
            if share_m != _NOTHING_COMMON and away_m + share_m <= limit + limit * _ROUNDING:
                waiting = push(frontier, waiting, away_m + share_m, child)
    return size


@kernel
def best(tree: Tree, objects: Objects, queries: Queries, answered: Answered, frontier: Heap) -> None:
    """Process a batch of queries."""
    scratch = scratch_for(queries)
    for i in range(answered.sizes.shape[0]):
        question = question_of(queries, i, words_of(queries, i).shape[0], scratch)
        kept = kept_of(answered, i)
        size = 0
        if kept.ids.shape[0] > 0:
            size = _search(question, tree, objects, frontier, kept)
        close(answered, i, kept, size)


@leaf
def _may_have(tree: Tree, node: int, wanted: Wanted) -> bool:
    """Return whether a node intersects the box and all keywords occur below it."""
    row = tree.nodes[node]
    if (
        float(row["x1_m"]) > wanted.x2_m
        or float(row["x2_m"]) < wanted.x1_m
        or float(row["y1_m"]) > wanted.y2_m
        or float(row["y2_m"]) < wanted.y1_m
    ):
        return False
    for word in wanted.words:
        if find(tree.keys, tree.values, key_of(int(row["file"]), word)) == NO_VALUE:
            return False
    return True


@leaf
def _walk(tree: Tree, objects: Objects, wanted: Wanted, found: Ints, total: int) -> int:
    """Keep the matching objects; return their new number."""
    root = int(tree.meta[ROOT])
    size = 0
    if tree.nodes[root]["file"] != NOTHING and _may_have(tree, root, wanted):
        tree.stack[0] = root
        size = 1
    while size > 0:
        size -= 1
        node = int(tree.stack[size])
        for place in range(tree.nodes[node]["count"]):
            child = int(tree.children[node, place])
            if not tree.nodes[node]["is_leaf"]:
                if _may_have(tree, child, wanted):
                    tree.stack[size] = child
                    size += 1
            elif is_wanted(wanted, objects.rows[child], objects.pool):
                total = keep(found, total, objects.rows[child]["id"])
    return total


@kernel
def within(
    tree: Tree, objects: Objects, queries: Boxes, first_row: int, offsets: Ints, found: Ints
) -> int:
    """Process rows, starting from one; return the first without space (see `index.tables.matches`)."""
    for i in range(first_row, queries.x1_m.shape[0]):
        total = int(offsets[i])
        wanted = wanted_of(queries, i)
        if wanted.words.shape[0] > 0:
            total = _walk(tree, objects, wanted, found, total)
        offsets[i + 1] = total
        if total > found.shape[0]:
            return i
    return int(queries.x1_m.shape[0])
