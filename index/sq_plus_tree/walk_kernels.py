"""A walk through the combinations of some keywords that the trie has.

Depth first: a combination, then those that go on with each lesser keyword. The caller decides at each
node whether to descend.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from index.batches import KeywordIds
from index.sq_plus_tree.layout import COMBINED_MAX, NOTHING, TRIE_ROOT, Forest, Slots
from index.sq_plus_tree.trie_kernels import child, make_child
from safe_region.jit import leaf


class Walk(NamedTuple):
    """The way to the node last come to: at each level a node and the keyword to try next below it."""

    nodes: Slots
    places: Slots
    level: Slots


def new_walk() -> Walk:
    """Return room for walks."""
    return Walk(
        np.empty(COMBINED_MAX + 1, dtype=np.int32),
        np.empty(COMBINED_MAX + 1, dtype=np.int32),
        np.empty(1, dtype=np.int32),
    )


@leaf
def start(walk: Walk, words: KeywordIds) -> None:
    """Begin at the root."""
    walk.nodes[0] = TRIE_ROOT
    walk.places[0] = words.shape[0] - 1
    walk.level[0] = 0


@leaf
def next_node(forest: Forest, walk: Walk, words: KeywordIds, is_made: bool) -> int:
    """Return the next combination, NOTHING at the end; what does not exist is passed over or made."""
    while walk.level[0] >= 0:
        level = walk.level[0]
        place = walk.places[level]
        if place < 0:
            walk.level[0] -= 1
            continue
        walk.places[level] -= 1
        if is_made:
            return make_child(forest, int(walk.nodes[level]), int(words[place]))
        node = child(forest, int(walk.nodes[level]), int(words[place]))
        if node != NOTHING:
            return node
    return NOTHING


@leaf
def descend(walk: Walk, node: int) -> None:
    """Go on below the node that was returned last."""
    level = walk.level[0] + 1
    if level > COMBINED_MAX:
        return
    walk.nodes[level] = node
    walk.places[level] = walk.places[level - 1]
    walk.level[0] = level
