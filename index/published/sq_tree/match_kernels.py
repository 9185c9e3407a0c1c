"""Finding the subscriptions that a new object affects: algorithm 2, lines 1 to 15."""

from __future__ import annotations

from index.batches import Floats, Ints, KeywordIds
from index.published.sq_tree import layout as L
from index.published.sq_tree.bound_kernels import distance_to
from index.published.sq_tree.cell_kernels import find_cell
from index.published.sq_tree.layout import Slots, Tree
from index.tables.selection_kernels import is_less
from safe_region.jit import kernel, leaf
from safe_region.scoring.kernels import common_count, nearest_length, text_distance


@leaf
def _is_affected(
    tree: Tree, slot: int, object_id: int, x_m: float, y_m: float, words: KeywordIds, common: int
) -> bool:
    """Apply theorem 4 with the true text distance: the last filter before a device is queried."""
    row = tree.subscriptions[slot]
    distance = text_distance(row["similarity"], common, row["keyword_count"], words.shape[0])
    share = row["weight_m"] * distance
    nearest = nearest_length(row["x_m"] - x_m, row["y_m"] - y_m, row["radius_m"], share)
    return is_less(nearest, object_id, row["reach_m"], row["reach_id"])


@leaf
def _search_node(
    tree: Tree,
    node: int,
    object_id: int,
    x_m: float,
    y_m: float,
    words: KeywordIds,
    common_min: int,
    found: Ints,
    total: int,
) -> int:
    """Find those of S_n that share at least `common_min` keywords with an object and are affected."""
    for i in range(words.shape[0]):
        cell = find_cell(tree, node, words[i])
        if cell == L.NOTHING:
            continue
        posting = tree.cells[cell]["first"]
        while posting != L.NOTHING:
            slot = tree.postings[posting]["slot"]
            posting = tree.postings[posting]["next"]
            row = tree.subscriptions[slot]
            start, count = row["keyword_start"], row["keyword_count"]
            theirs = tree.pool[start : start + count]
            # Found once for every common keyword: only the first of them counts.
            if common_count(theirs, words[:i]) > 0:
                continue
            common = common_count(theirs, words[i:])
            if common < common_min:
                continue
            if _is_affected(tree, slot, object_id, x_m, y_m, words, common):
                if total < found.shape[0]:
                    found[total] = row["id"]
                total += 1
    return total


@leaf
def _common_with(tree: Tree, node: int, words: KeywordIds) -> int:
    """Return i_n: the number of an object's keywords that occur in the subtree of a node."""
    common = 0
    for i in range(words.shape[0]):
        if find_cell(tree, node, words[i]) != L.NOTHING:
            common += 1
    return min(common, L.COMMON_MAX)


@kernel
def match(
    tree: Tree,
    object_ids: Ints,
    x_m: Floats,
    y_m: Floats,
    keyword_offsets: Ints,
    keyword_ids: KeywordIds,
    offsets: Ints,
    found: Ints,
    stack: Slots,
) -> int:
    """Write the matches of each object as CSR; return their number.

    Fills `offsets` (objects + 1) always and `found` up to its length; the caller retries with a larger
    `found` when the return value exceeds its length.
    """
    total = 0
    for i in range(object_ids.shape[0]):
        offsets[i] = total
        words = keyword_ids[keyword_offsets[i] : keyword_offsets[i + 1]]
        total = _search_node(tree, L.UNBOUNDED, object_ids[i], x_m[i], y_m[i], words, 1, found, total)
        stack[0] = L.ROOT
        size = 1
        while size > 0:
            size -= 1
            node = stack[size]
            if tree.nodes[node]["subtree_count"] == 0:
                continue
            common = _common_with(tree, node, words)
            away = distance_to(tree.nodes[node], x_m[i], y_m[i])
            # Node filtering, theorem 6.
            if common == 0 or tree.subtree_m[node, common] < away:
                continue
            first = tree.nodes[node]["first_child"]
            if first != L.NOTHING:
                for child in range(first, first + L.CHILDREN):
                    stack[size] = child
                    size += 1
            # Subscription filtering, theorem 5.
            common_min = 1
            while common_min <= common and tree.own_m[node, common_min] < away:
                common_min += 1
            if tree.nodes[node]["own_count"] > 0 and common_min <= common:
                total = _search_node(
                    tree, node, object_ids[i], x_m[i], y_m[i], words, common_min, found, total
                )
    offsets[object_ids.shape[0]] = total
    return total


@kernel
def expectation_error(
    tree: Tree, x_m: Floats, y_m: Floats, keyword_offsets: Ints, keyword_ids: KeywordIds, stack: Slots
) -> float:
    """Return the mean of |E[i_n] - i_n| over the nodes that are filtered (figure 11)."""
    error = 0.0
    count = 0
    for i in range(x_m.shape[0]):
        words = keyword_ids[keyword_offsets[i] : keyword_offsets[i + 1]]
        stack[0] = L.ROOT
        size = 1
        while size > 0:
            size -= 1
            node = stack[size]
            if tree.nodes[node]["subtree_count"] == 0:
                continue
            common = _common_with(tree, node, words)
            error += abs(min(tree.nodes[node]["common"], float(L.COMMON_MAX)) - common)
            count += 1
            away = distance_to(tree.nodes[node], x_m[i], y_m[i])
            first = tree.nodes[node]["first_child"]
            if common > 0 and tree.subtree_m[node, common] >= away and first != L.NOTHING:
                for child in range(first, first + L.CHILDREN):
                    stack[size] = child
                    size += 1
    return error / max(count, 1)


@kernel
def count_words(frequency: Floats, keyword_ids: KeywordIds) -> None:
    """Add to the number of objects that have each keyword."""
    for i in range(keyword_ids.shape[0]):
        frequency[keyword_ids[i]] += 1.0
