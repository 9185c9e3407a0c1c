"""Closeness of the text of an object to that of a subscription, from the keywords that they share.

This is the only module that distinguishes keywords of equal weight from weighted ones.

Closeness is one minus the text distance. An object that shares exactly a combination with a subscription
matters if it lies within

    reach - weight + gain * factor

of it. The gain depends on the entry, the factor on the object, and on the entry's *kind* at most. Without
weights the gain is the weight and the factor the closeness, from a table by the numbers of keywords; the
kind is the similarity and the subscription's number of keywords. With weights the closeness is c / sqrt(S
* O), with c the squares of the combination, S and O those of all keywords of the subscription and the
object. So the gain is weight * c / sqrt(S), the factor 1 / sqrt(O), and there is one kind.

For an entry that represents more than its combination (`is_loose`) the formula gives its maximum, at c =
S; cells and scans use the lesser of this and the entry's bound.

Objects are divided into *classes* by their keywords beyond the combination: by the number of these, or by
the ratio of all squares to those of the combination. A class has the largest factor of its objects.

Operations: each O(1), except `combination_square`, O(keywords).
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
    """Return whether a subscription is found by its single keywords only."""
    return bool(subscription["keyword_count"] > L.COMBINED_MAX or math.isinf(subscription["reach_m"]))


@leaf
def entry_kind(forest: Forest, subscription: Row) -> int:
    """Return the kind of a subscription's entries."""
    if forest.meta[L.IS_WEIGHED]:
        return 0
    return _kind_of(subscription["similarity"], subscription["keyword_count"], is_loose(subscription))


@leaf
def entry_gain(forest: Forest, subscription: Row, square: float) -> float:
    """Return the gain of a subscription's entry at a combination with this sum of squares."""
    weight = float(subscription["weight_m"])
    if not forest.meta[L.IS_WEIGHED]:
        return weight
    norm = float(subscription["norm"])
    common = norm if is_loose(subscription) else square
    return weight * common / math.sqrt(norm)


@leaf
def combination_square(forest: Forest, node: int) -> float:
    """Return the squared weights of a combination, or the number of its keywords without weights."""
    if not forest.meta[L.IS_WEIGHED]:
        return float(forest.nodes[node]["depth"])
    total = 0.0
    while node != L.TRIE_ROOT:
        total += forest.squares[forest.nodes[node]["keyword"]]
        node = int(forest.nodes[node]["parent"])
    return total


@leaf
def class_of(forest: Forest, square: float, norm: float) -> int:
    """Return the class of an object, by the squares that it shares with a combination and all its own."""
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
    """Return the largest factor of a kind among the objects of a class, by the combination's squares."""
    if forest.meta[L.IS_WEIGHED]:
        return 1.0 / math.sqrt(square * _RATIOS[number])
    return float(forest.class_closeness[int(square), kind, number])


@leaf
def factors_of(forest: Forest, square: float, norm: float, factors: Singles) -> tuple[int, int]:
    """Return the position in a table of an object's factors by kind, by the combination's squares.

    `factors` is the table of closeness. With weights it is scratch for one factor, which is written.
    """
    if forest.meta[L.IS_WEIGHED]:
        factors[0, 0, 0] = outward(1.0 / math.sqrt(norm))
        return 0, 0
    return min(int(norm), L.SIZE_MAX), int(square)
