"""How close the text of an object is to that of a subscription, by what they share.

This is the one place that knows whether keywords count alike or have weights.

Closeness is one minus the text distance. An object that shares exactly a combination with a subscription
matters if it lies within

    reach - weight + gain * factor

of it: the gain is the entry's, the factor depends on the object, and on the entry's *kind* at most. Where
keywords count alike the gain is the weight and the factor the closeness, a table by the numbers of
keywords; the kind is the similarity and the subscription's number. With weights the closeness is
c / sqrt(S * O), c the squares of the combination, S and O all those of the subscription and the object.
So the gain is weight * c / sqrt(S), the factor 1 / sqrt(O), and there is one kind.

Of an entry that stands for more than its combination (`is_loose`) this is the most that it can be, when
c = S; cells and scans take the lesser of this and the entry's bound.

Objects are of *classes*, by how much they have beyond the combination: keywords, or multiples of its
squares. A class has the largest factor in it.

Operations: each O(1), but for `combination_square`, O(keywords).
"""

from __future__ import annotations

import math

import numpy as np

from index.sq_plus_tree import closeness
from index.sq_plus_tree import layout as L
from index.sq_plus_tree.layout import Forest, Row, Singles
from safe_region.jit import leaf

_OFFSETS = np.array(L.CLASS_OFFSETS)
_RATIOS = np.array(L.CLASS_RATIOS)
outward = leaf(closeness.outward)
_kind_of = leaf(closeness.kind_of)


@leaf
def is_loose(subscription: Row) -> bool:
    """Whether a subscription is found by its single keywords only."""
    return bool(subscription["keyword_count"] > L.COMBINED_MAX or math.isinf(subscription["reach_m"]))


@leaf
def entry_kind(forest: Forest, subscription: Row) -> int:
    """Kind of a subscription's entries."""
    if forest.meta[L.IS_WEIGHED]:
        return 0
    return _kind_of(subscription["similarity"], subscription["keyword_count"], is_loose(subscription))


@leaf
def entry_gain(forest: Forest, subscription: Row, square: float) -> float:
    """Gain of a subscription's entry at a combination of so many squares."""
    weight = float(subscription["weight_m"])
    if not forest.meta[L.IS_WEIGHED]:
        return weight
    norm = float(subscription["norm"])
    common = norm if is_loose(subscription) else square
    return weight * common / math.sqrt(norm)


@leaf
def combination_square(forest: Forest, node: int) -> float:
    """Squared weights of a combination; the number of its keywords where they count alike."""
    if not forest.meta[L.IS_WEIGHED]:
        return float(forest.nodes[node]["depth"])
    total = 0.0
    while node != L.TRIE_ROOT:
        total += forest.squares[forest.nodes[node]["keyword"]]
        node = int(forest.nodes[node]["parent"])
    return total


@leaf
def class_of(forest: Forest, square: float, norm: float) -> int:
    """Class of an object, by the squares of a combination that it has, and all its own."""
    number = L.CLASSES - 1
    if forest.meta[L.IS_WEIGHED]:
        while number > 0 and square * _RATIOS[number] > norm:
            number -= 1
    else:
        while number > 0 and square + _OFFSETS[number] > norm:
            number -= 1
    return number


@leaf
def class_factor(forest: Forest, kind: int, square: float, number: int) -> float:
    """Largest factor of a kind that an object of a class has, by the squares of the combination."""
    if forest.meta[L.IS_WEIGHED]:
        return 1.0 / math.sqrt(square * _RATIOS[number])
    return float(forest.class_closeness[int(square), kind, number])


@leaf
def factors_of(forest: Forest, square: float, norm: float, factors: Singles) -> tuple[int, int]:
    """Return where in a table an object's factors by kind are, by the squares of the combination.

    `factors` is the table of closeness; with weights it is room for one factor, which is written.
    """
    if forest.meta[L.IS_WEIGHED]:
        factors[0, 0, 0] = outward(1.0 / math.sqrt(norm))
        return 0, 0
    return min(int(norm), L.SIZE_MAX), int(square)
