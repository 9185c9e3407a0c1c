"""Matching objects, by the kind of the tree.

Operations: open a batch O(1), match O(clauses) an object at worst. Children are tested one by one; a
token of the object is searched at a child with one look-up.
"""

from __future__ import annotations

from index.batches import Ints, KeywordIds
from index.published.clause_cells.scan_kernels import Item, Published, item_of
from index.published.rt_tree import layout as L
from index.published.rt_tree.layout import Slots, Tree
from index.published.rt_tree.list_kernels import key_of, list_of
from index.tables.box_kernels import is_apart
from index.tables.id_map_kernels import NO_VALUE, find
from index.tables.within_kernels import keep
from safe_region.jit import kernel, leaf

_COUNT_BITS = 16


@leaf
def _has(words: KeywordIds, token: int) -> bool:
    """Return whether an object has a keyword: a binary search, as in section 3.2."""
    low, high = 0, words.shape[0]
    while low < high:
        middle = (low + high) // 2
        if words[middle] < token:
            low = middle + 1
        else:
            high = middle
    return bool(low < words.shape[0] and words[low] == token)


@leaf
def _verify(tree: Tree, item: Item, slot: int) -> bool:
    """Return whether a clause matches an object."""
    clause = tree.clauses[slot]
    if is_apart(clause, item.x1_m, item.y1_m, item.x2_m, item.y2_m):
        return False
    start = int(clause["keyword_start"])
    for i in range(start, start + int(clause["keyword_count"])):
        if not _has(item.words, int(tree.pool[i])):
            return False
    return True


@leaf
def _shares_token(tree: Tree, node: int, words: KeywordIds) -> bool:
    """Return whether an object has one of the tokens of a node."""
    if tree.meta[L.KIND] == L.PLAIN:
        return True
    for i in range(words.shape[0]):
        if find(tree.keys, tree.values, key_of(node, int(words[i]))) != NO_VALUE:
            return True
    return False


@leaf
def _visit(tree: Tree, node: int, marks: Ints) -> None:
    """Record a visit to the children of a node."""
    tree.meta[L.VISITED] += 1
    marks[node] = tree.meta[L.EPOCH]


@leaf
def _filter_and_verify(tree: Tree, item: Item, marks: Ints, found: Ints, total: int) -> int:
    """Visit the nodes that neither filter excludes, and verify the clauses in leaves (section 3.2)."""
    tree.stack[0] = tree.meta[L.ROOT]
    size = 1
    while size > 0:
        size -= 1
        node = int(tree.stack[size])
        _visit(tree, node, marks)
        row = tree.nodes[node]
        if row["is_leaf"]:
            tree.meta[L.CANDIDATES] += row["count"]
        for place in range(row["count"]):
            child = int(tree.children[node, place])
            if row["is_leaf"]:
                if _verify(tree, item, child):
                    total = keep(found, total, tree.clauses[child]["id"])
                continue
            if is_apart(tree.nodes[child], item.x1_m, item.y1_m, item.x2_m, item.y2_m):
                continue
            if _shares_token(tree, child, item.words):
                tree.stack[size] = child
                size += 1
    return total


@leaf
def _count(tree: Tree, slot: int, epoch: int) -> int:
    """Count a token of a clause that an object has; return the new count."""
    mark = int(tree.marks[slot])
    if mark >> _COUNT_BITS != epoch:
        mark = epoch << _COUNT_BITS
    tree.marks[slot] = mark + 1
    return (mark + 1) & ((1 << _COUNT_BITS) - 1)


@leaf
def _count_lists(
    tree: Tree, item: Item, node: int, wanted: int, found: Ints, total: int
) -> tuple[int, bool]:
    """Count the clauses in the lists of a node for an object, and keep those with all tokens met.

    Return the number kept, and whether a clause has met `wanted` tokens, and not all.
    """
    goes_on = False
    epoch = int(tree.meta[L.EPOCH])
    for i in range(item.words.shape[0]):
        number = list_of(tree, node, int(item.words[i]))
        if number == L.NOTHING:
            continue
        start = int(tree.lists[number]["start"])
        end = start + int(tree.lists[number]["count"])
        tree.meta[L.CANDIDATES] += end - start
        for place in range(start, end):
            member = tree.members.records[place]
            met = _count(tree, int(member["slot"]), epoch)
            if met == member["tokens"]:
                clause = tree.clauses[member["slot"]]
                if not is_apart(clause, item.x1_m, item.y1_m, item.x2_m, item.y2_m):
                    total = keep(found, total, clause["id"])
            elif met == wanted:
                goes_on = True
    return total, goes_on


@leaf
def _count_down(tree: Tree, item: Item, depths: Slots, marks: Ints, found: Ints, total: int) -> int:
    """Visit the nodes at which a clause has met a token at each level (section 5.2)."""
    root = int(tree.meta[L.ROOT])
    if tree.nodes[root]["is_leaf"]:
        return _count_lists(tree, item, root, 0, found, total)[0]
    tree.stack[0] = root
    depths[0] = 0
    size = 1
    while size > 0:
        size -= 1
        node, depth = int(tree.stack[size]), int(depths[size]) + 1
        _visit(tree, node, marks)
        for place in range(tree.nodes[node]["count"]):
            child = int(tree.children[node, place])
            if is_apart(tree.nodes[child], item.x1_m, item.y1_m, item.x2_m, item.y2_m):
                continue
            total, goes_on = _count_lists(tree, item, child, depth, found, total)
            if goes_on and depth < tree.meta[L.LEAF_DEPTH]:
                tree.stack[size] = child
                depths[size] = depth
                size += 1
    return total


@leaf
def _look_up_files(tree: Tree, item: Item, marks: Ints, found: Ints, total: int) -> int:
    """Visit the children in the file of a node under a token of the object (section 2.2)."""
    tree.stack[0] = tree.meta[L.ROOT]
    size = 1
    epoch = int(tree.meta[L.EPOCH])
    while size > 0:
        size -= 1
        node = int(tree.stack[size])
        _visit(tree, node, marks)
        if tree.nodes[node]["is_leaf"]:
            total, _ = _count_lists(tree, item, node, 0, found, total)
            continue
        for i in range(item.words.shape[0]):
            number = list_of(tree, node, int(item.words[i]))
            if number == L.NOTHING:
                continue
            start = int(tree.lists[number]["start"])
            for place in range(start, start + int(tree.lists[number]["count"])):
                child = int(tree.members.records[place]["slot"])
                if marks[child] == epoch:
                    continue
                marks[child] = epoch
                if not is_apart(tree.nodes[child], item.x1_m, item.y1_m, item.x2_m, item.y2_m):
                    tree.stack[size] = child
                    size += 1
    return total


@kernel
def match(
    tree: Tree,
    published: Published,
    node_marks: Ints,
    depths: Slots,
    first_row: int,
    offsets: Ints,
    found: Ints,
) -> int:
    """Match objects, from one on; return the first without space (see `index.tables.matches`)."""
    kind = tree.meta[L.KIND]
    for i in range(first_row, published.x_m.shape[0]):
        item = item_of(published, i)
        total = int(offsets[i])
        tree.meta[L.EPOCH] += 1
        if kind == L.COUNTED:
            total = _count_down(tree, item, depths, node_marks, found, total)
        elif kind == L.FILES:
            total = _look_up_files(tree, item, node_marks, found, total)
        elif kind == L.FLAT:
            total = _count_lists(tree, item, int(tree.meta[L.ROOT]), 0, found, total)[0]
        else:
            total = _filter_and_verify(tree, item, node_marks, found, total)
        offsets[i + 1] = total
        if total > found.shape[0]:
            return i
    return int(published.x_m.shape[0])
