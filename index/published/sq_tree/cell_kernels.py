"""Keywords at nodes: those in the subtree (T_n^r), and the subscriptions with each (I_n).

I_n is the inverted file of a node.
"""

from __future__ import annotations

from index.published.sq_tree.layout import CELL_COUNT, CELL_END, FREE_CELLS, NOTHING, Tree
from index.tables.id_map_kernels import NO_KEY, NO_VALUE, find, pop, put
from safe_region.jit import kernel, leaf

_KEYWORD_BITS = 32
_KEYWORD_MASK = (1 << _KEYWORD_BITS) - 1


@leaf
def cell_key(node: int, keyword: int) -> int:
    """Return the hash key of a keyword at a node."""
    return (int(node) << _KEYWORD_BITS) | int(keyword)


@leaf
def find_cell(tree: Tree, node: int, keyword: int) -> int:
    """Return the cell of a keyword at a node, or NOTHING."""
    return find(tree.cell_keys, tree.cell_values, cell_key(node, keyword))


@leaf
def count_in(tree: Tree, node: int, slot: int) -> None:
    """Count a subscription in the subtree of a node."""
    start = tree.subscriptions[slot]["keyword_start"]
    for i in range(start, start + tree.subscriptions[slot]["keyword_count"]):
        keyword = tree.pool[i]
        cell = find_cell(tree, node, keyword)
        if cell == NO_VALUE:
            cell = tree.meta[FREE_CELLS]
            if cell == NOTHING:
                cell = tree.meta[CELL_END]
                tree.meta[CELL_END] += 1
            else:
                tree.meta[FREE_CELLS] = tree.cells[cell]["subtree_count"]
            tree.meta[CELL_COUNT] += 1
            put(tree.cell_keys, tree.cell_values, cell_key(node, keyword), cell)
            tree.cells[cell]["share"] = tree.frequency[keyword]
            tree.cells[cell]["subtree_count"] = 0
            tree.cells[cell]["first"] = NOTHING
            tree.nodes[node]["common"] += tree.frequency[keyword]
        tree.cells[cell]["subtree_count"] += 1


@leaf
def count_out(tree: Tree, node: int, slot: int) -> None:
    """Discount a subscription in the subtree of a node; its postings there are removed already."""
    start = tree.subscriptions[slot]["keyword_start"]
    for i in range(start, start + tree.subscriptions[slot]["keyword_count"]):
        keyword = tree.pool[i]
        cell = find_cell(tree, node, keyword)
        tree.cells[cell]["subtree_count"] -= 1
        if tree.cells[cell]["subtree_count"] == 0:
            tree.nodes[node]["common"] -= tree.cells[cell]["share"]
            pop(tree.cell_keys, tree.cell_values, cell_key(node, keyword))
            tree.cells[cell]["subtree_count"] = tree.meta[FREE_CELLS]
            tree.meta[FREE_CELLS] = cell
            tree.meta[CELL_COUNT] -= 1


@leaf
def post(tree: Tree, node: int, slot: int) -> None:
    """Insert a subscription into S_n and the inverted file of a node; its cells must exist."""
    row = tree.subscriptions[slot]
    first = tree.nodes[node]["first"]
    row["node"] = node
    row["next"] = first
    row["previous"] = NOTHING
    if first != NOTHING:
        tree.subscriptions[first]["previous"] = slot
    tree.nodes[node]["first"] = slot
    tree.nodes[node]["own_count"] += 1
    for i in range(row["keyword_count"]):
        cell = find_cell(tree, node, tree.pool[row["keyword_start"] + i])
        posting = row["posting_start"] + i
        head = tree.cells[cell]["first"]
        tree.postings[posting]["slot"] = slot
        tree.postings[posting]["cell"] = cell
        tree.postings[posting]["next"] = head
        tree.postings[posting]["previous"] = NOTHING
        if head != NOTHING:
            tree.postings[head]["previous"] = posting
        tree.cells[cell]["first"] = posting


@leaf
def unpost(tree: Tree, slot: int) -> None:
    """Remove a subscription from S_n and the inverted file of its node."""
    row = tree.subscriptions[slot]
    node = row["node"]
    before, after = row["previous"], row["next"]
    if before != NOTHING:
        tree.subscriptions[before]["next"] = after
    else:
        tree.nodes[node]["first"] = after
    if after != NOTHING:
        tree.subscriptions[after]["previous"] = before
    tree.nodes[node]["own_count"] -= 1
    row["node"] = NOTHING
    for posting in range(row["posting_start"], row["posting_start"] + row["keyword_count"]):
        before, after = tree.postings[posting]["previous"], tree.postings[posting]["next"]
        if before != NOTHING:
            tree.postings[before]["next"] = after
        else:
            tree.cells[tree.postings[posting]["cell"]]["first"] = after
        if after != NOTHING:
            tree.postings[after]["previous"] = before


@kernel
def refresh_expectations(tree: Tree) -> None:
    """Recompute E[i_n] of every node from the present frequencies. O(cells)."""
    for node in range(tree.nodes.shape[0]):
        tree.nodes[node]["common"] = 0.0
    for place in range(tree.cell_keys.shape[0]):
        key = tree.cell_keys[place]
        if key != NO_KEY:
            share = tree.frequency[key & _KEYWORD_MASK]
            tree.cells[tree.cell_values[place]]["share"] = share
            tree.nodes[key >> _KEYWORD_BITS]["common"] += share
