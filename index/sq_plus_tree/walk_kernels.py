"""A walk through the combinations of a set of keywords that exist in the trie.

The walk is depth first: a combination, then its extensions by each lesser keyword. The caller decides at
each node whether to descend.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from index.batches import KeywordIds
from index.sq_plus_tree.layout import COMBINED_MAX, NOTHING, TRIE_ROOT, Forest, Slots
from index.sq_plus_tree.trie_kernels import child, make_child
from safe_region.jit import leaf


class Walk(NamedTuple):
    """The path to the last visited node: at each level a node and the next keyword to try below it."""

    nodes: Slots
    places: Slots
    level: Slots


def new_walk() -> Walk:
    """Return empty arrays for walks."""
    return Walk(
        np.empty(COMBINED_MAX + 1, dtype=np.int32),
        np.empty(COMBINED_MAX + 1, dtype=np.int32),
        np.empty(1, dtype=np.int32),
    )


@leaf
def start(walk: Walk, words: KeywordIds) -> None:
    """Start at the root."""
    walk.nodes[0] = TRIE_ROOT
    walk.places[0] = words.shape[0] - 1
    walk.level[0] = 0


@leaf
def _next_place(walk: Walk) -> int:
    """Return the place of the next keyword to try below the node of the level; NOTHING at the end."""
    while walk.level[0] >= 0:
        level = walk.level[0]
        place = int(walk.places[level])
        if place >= 0:
            walk.places[level] = place - 1
            return place
        walk.level[0] = level - 1
    return NOTHING


@leaf
def next_node(forest: Forest, walk: Walk, words: KeywordIds) -> int:
    """Return the next existing combination, NOTHING at the end."""
    place = _next_place(walk)
    while place != NOTHING:
        node = child(forest, int(walk.nodes[walk.level[0]]), int(words[place]))
        if node != NOTHING:
            return node
        place = _next_place(walk)
    return NOTHING


@leaf
def make_next_node(forest: Forest, walk: Walk, words: KeywordIds) -> int:
    """Return the next combination, created if it does not exist; NOTHING at the end."""
    place = _next_place(walk)
    if place == NOTHING:
        return NOTHING
    return make_child(forest, int(walk.nodes[walk.level[0]]), int(words[place]))


@leaf
def descend(walk: Walk, node: int) -> None:
    """Continue below the node that was returned last."""
    level = walk.level[0] + 1
    if level > COMBINED_MAX:
        return
    walk.nodes[level] = node
    walk.places[level] = walk.places[level - 1]
    walk.level[0] = level
