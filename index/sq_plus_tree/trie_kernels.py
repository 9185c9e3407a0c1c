"""Keyword combinations as paths of a trie, and the groups of subscriptions that have them."""

from __future__ import annotations

from index.sq_plus_tree.layout import (
    FREE_GROUP,
    FREE_NODE,
    GROUP_END,
    NODE_COUNT,
    NODE_END,
    NOTHING,
    TRIE_ROOT,
    Forest,
)
from index.tables.id_map_kernels import find, pop, put
from safe_region.jit import leaf

_KEYWORD_BITS = 32


@leaf
def _key(node: int, keyword: int) -> int:
    """Where a combination is hashed."""
    return (int(node) << _KEYWORD_BITS) | int(keyword)


@leaf
def child(forest: Forest, node: int, keyword: int) -> int:
    """Return the combination of a node's and one more keyword, or NOTHING."""
    return find(forest.node_keys, forest.node_values, _key(node, keyword))


@leaf
def make_child(forest: Forest, node: int, keyword: int) -> int:
    """Return the combination of a node's and one more keyword, made if it is new."""
    found = child(forest, node, keyword)
    if found != NOTHING:
        return found
    found = forest.meta[FREE_NODE]
    if found == NOTHING:
        found = forest.meta[NODE_END]
        forest.meta[NODE_END] += 1
    else:
        forest.meta[FREE_NODE] = forest.nodes[found]["parent"]
    forest.meta[NODE_COUNT] += 1
    forest.nodes[found]["parent"] = node
    forest.nodes[found]["keyword"] = keyword
    forest.nodes[found]["child_count"] = 0
    forest.nodes[found]["first_group"] = NOTHING
    forest.nodes[node]["child_count"] += 1
    put(forest.node_keys, forest.node_values, _key(node, keyword), found)
    return int(found)


@leaf
def drop_unused(forest: Forest, node: int) -> None:
    """Remove a combination that nobody has, and what led only to it."""
    while (
        node != TRIE_ROOT
        and forest.nodes[node]["child_count"] == 0
        and forest.nodes[node]["first_group"] == NOTHING
    ):
        parent = forest.nodes[node]["parent"]
        key = _key(parent, forest.nodes[node]["keyword"])
        pop(forest.node_keys, forest.node_values, key)
        forest.nodes[parent]["child_count"] -= 1
        forest.nodes[node]["parent"] = forest.meta[FREE_NODE]
        forest.meta[FREE_NODE] = node
        forest.meta[NODE_COUNT] -= 1
        node = parent


@leaf
def make_group(forest: Forest, node: int, size: int, common: int, similarity: int) -> int:
    """Return the group of a combination for subscriptions of one size and similarity."""
    group = forest.nodes[node]["first_group"]
    while group != NOTHING:
        row = forest.groups[group]
        if row["size"] == size and row["similarity"] == similarity and row["common"] == common:
            return int(group)
        group = row["next"]
    group = forest.meta[FREE_GROUP]
    if group == NOTHING:
        group = forest.meta[GROUP_END]
        forest.meta[GROUP_END] += 1
    else:
        forest.meta[FREE_GROUP] = forest.groups[group]["next"]
    row = forest.groups[group]
    row["node"] = node
    row["next"] = forest.nodes[node]["first_group"]
    row["cell"] = NOTHING
    row["start"] = NOTHING
    row["count"] = 0
    row["size"] = size
    row["common"] = common
    row["room"] = 0
    row["similarity"] = similarity
    forest.nodes[node]["first_group"] = group
    return int(group)


@leaf
def drop_group(forest: Forest, group: int) -> None:
    """Remove a group that has no entries, and its combination if nobody else has that."""
    node = forest.groups[group]["node"]
    following = forest.groups[group]["next"]
    if forest.nodes[node]["first_group"] == group:
        forest.nodes[node]["first_group"] = following
    else:
        before = forest.nodes[node]["first_group"]
        while forest.groups[before]["next"] != group:
            before = forest.groups[before]["next"]
        forest.groups[before]["next"] = following
    forest.groups[group]["next"] = forest.meta[FREE_GROUP]
    forest.meta[FREE_GROUP] = group
    drop_unused(forest, node)
