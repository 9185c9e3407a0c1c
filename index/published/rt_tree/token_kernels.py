"""Tokens at nodes, by the kind of the tree.

`first_token` and `end_token` define the tokens of a clause that belong to each node. The root has none,
since its box is never tested, except in an IRTree, whose nodes have the file of their children, and if it
is the only node.

Operations: enter and leave O(tokens * depth) a clause, clear and fill O(tokens of the clauses below).
"""

from __future__ import annotations

from index.published.rt_tree import layout as L
from index.published.rt_tree.layout import Tree
from index.published.rt_tree.list_kernels import (
    count_down,
    count_up,
    end_list,
    enter,
    is_last,
    leave,
    room_status,
)
from safe_region.jit import leaf

_MEMBERS_A_LIST = 12
"""The maximum number of records that a list allocates for each member, with the runs that it leaves as it
grows."""


@leaf
def depth_of(tree: Tree, node: int) -> int:
    """Return the number of levels between the root and a node."""
    depth = 0
    while tree.nodes[node]["parent"] != L.NOTHING:
        node = int(tree.nodes[node]["parent"])
        depth += 1
    return depth


@leaf
def token_of(tree: Tree, start: int, i: int) -> int:
    """Return a token of the clause whose keywords begin at `start`, in its order."""
    return int(tree.pool[start + tree.places[start + i]])


@leaf
def first_token(tree: Tree, depth: int, count: int) -> int:
    """Return the first token of a clause with this many that belongs to a depth."""
    if tree.meta[L.KIND] == L.COUNTED and depth > 0:
        return min(depth - 1, count)
    return 0


@leaf
def end_token(tree: Tree, depth: int, count: int) -> int:
    """Return the end of the tokens of a clause with this many that belong to a depth."""
    kind = tree.meta[L.KIND]
    if kind in (L.FILES, L.FLAT):
        return count
    if kind == L.COUNTED and depth == tree.meta[L.LEAF_DEPTH]:
        return count
    if kind == L.PLAIN or depth == 0:
        return 0
    if kind == L.TOKENS:
        return count
    if kind == L.REPRESENTATIVES:
        return 1
    return min(depth, count)


@leaf
def counts_only(tree: Tree) -> bool:
    """Return whether nodes have tokens without lists."""
    return bool(tree.meta[L.KIND] == L.TOKENS or tree.meta[L.KIND] == L.REPRESENTATIVES)


@leaf
def room_for_one(tree: Tree, slot: int) -> int:
    """Return DONE if there is space for the tokens of a clause at all depths."""
    keys = int(tree.clauses[slot]["keyword_count"]) * (int(tree.meta[L.LEAF_DEPTH]) + 1)
    return room_status(tree, keys, keys * (4 * int(tree.meta[L.LONGEST]) + _MEMBERS_A_LIST))


@leaf
def room_for_two(tree: Tree, node: int) -> int:
    """Return DONE if there is space for the tokens of a node once more, and in the file of its parent."""
    keys = int(tree.nodes[node]["tokens"])
    if tree.meta[L.KIND] == L.COUNTED and not tree.nodes[node]["is_leaf"]:
        keys = int(tree.nodes[node]["live"])
    members = 0
    if not counts_only(tree):
        members = 2 * _MEMBERS_A_LIST * keys
    if tree.meta[L.KIND] == L.FILES:
        members += 256 * keys
    return room_status(tree, keys, members)


@leaf
def enter_clause(tree: Tree, slot: int) -> None:
    """Insert the tokens of a clause at its ancestors. The caller has verified the capacity."""
    clause = tree.clauses[slot]
    start, count = int(clause["keyword_start"]), int(clause["keyword_count"])
    if tree.meta[L.KIND] == L.FILES:
        for i in range(count):
            _enter_file(tree, int(clause["leaf"]), token_of(tree, start, i), slot, count)
        return
    node = int(clause["leaf"])
    depth = int(tree.meta[L.LEAF_DEPTH])
    while node != L.NOTHING:
        for i in range(first_token(tree, depth, count), end_token(tree, depth, count)):
            if counts_only(tree):
                count_up(tree, node, token_of(tree, start, i))
            else:
                enter(tree, node, token_of(tree, start, i), slot, count)
        node = int(tree.nodes[node]["parent"])
        depth -= 1


@leaf
def _enter_file(tree: Tree, node: int, token: int, member: int, tokens: int) -> None:
    """Insert a member into the file of a node, and the node into its parent's if the token is new."""
    while node != L.NOTHING and enter(tree, node, token, member, tokens):
        member = node
        node = int(tree.nodes[node]["parent"])


@leaf
def leave_clause(tree: Tree, slot: int) -> None:
    """Remove the tokens of a clause from its ancestors."""
    clause = tree.clauses[slot]
    start, count = int(clause["keyword_start"]), int(clause["keyword_count"])
    if tree.meta[L.KIND] == L.FILES:
        for i in range(count):
            _leave_file(tree, int(clause["leaf"]), token_of(tree, start, i), slot)
        return
    node = int(clause["leaf"])
    depth = int(tree.meta[L.LEAF_DEPTH])
    while node != L.NOTHING:
        for i in range(first_token(tree, depth, count), end_token(tree, depth, count)):
            if counts_only(tree):
                count_down(tree, node, token_of(tree, start, i))
            else:
                leave(tree, node, token_of(tree, start, i), slot)
        node = int(tree.nodes[node]["parent"])
        depth -= 1


@leaf
def _leave_file(tree: Tree, node: int, token: int, member: int) -> None:
    while node != L.NOTHING and leave(tree, node, token, member):
        member = node
        node = int(tree.nodes[node]["parent"])


@leaf
def _clear_one(tree: Tree, node: int, depth: int, slot: int) -> None:
    """Remove the tokens of a clause from a node, and all others in the same lists."""
    clause = tree.clauses[slot]
    start, count = int(clause["keyword_start"]), int(clause["keyword_count"])
    for i in range(first_token(tree, depth, count), end_token(tree, depth, count)):
        token = token_of(tree, start, i)
        if counts_only(tree):
            count_down(tree, node, token)
        elif end_list(tree, node, token) and tree.meta[L.KIND] == L.FILES:
            parent = int(tree.nodes[node]["parent"])
            if parent != L.NOTHING:
                _leave_file(tree, parent, token, node)


@leaf
def _fill_one(tree: Tree, node: int, depth: int, child: int, slot: int) -> None:
    """Insert the tokens of a clause below a child at a node."""
    clause = tree.clauses[slot]
    start, count = int(clause["keyword_start"]), int(clause["keyword_count"])
    for i in range(first_token(tree, depth, count), end_token(tree, depth, count)):
        token = token_of(tree, start, i)
        if counts_only(tree):
            count_up(tree, node, token)
        elif tree.meta[L.KIND] != L.FILES:
            enter(tree, node, token, slot, count)
        elif not is_last(tree, node, token, child):
            _enter_file(tree, node, token, child, count)


@leaf
def clear(tree: Tree, node: int) -> None:
    """Remove all tokens from a node."""
    _each(tree, node, node, L.NOTHING, depth_of(tree, node))


@leaf
def fill(tree: Tree, node: int) -> None:
    """Insert all its tokens at a node that has none. The caller has verified the capacity."""
    depth = depth_of(tree, node)
    for place in range(tree.nodes[node]["count"]):
        child = int(tree.children[node, place])
        if tree.nodes[node]["is_leaf"]:
            _fill_one(tree, node, depth, child, child)
        else:
            _each(tree, child, node, child, depth)


@leaf
def _each(tree: Tree, top: int, node: int, child: int, depth: int) -> None:
    """Clear, or with a child fill, a node for the clauses below another."""
    tree.stack[0] = top
    size = 1
    while size > 0:
        size -= 1
        here = int(tree.stack[size])
        for place in range(tree.nodes[here]["count"]):
            below = int(tree.children[here, place])
            if not tree.nodes[here]["is_leaf"]:
                tree.stack[size] = below
                size += 1
            elif child == L.NOTHING:
                _clear_one(tree, node, depth, below)
            else:
                _fill_one(tree, node, depth, child, below)
