"""Detecting nodes that no longer suit their clauses: the divergence of part weights (section 3.3.5)."""

from __future__ import annotations

import numpy as np

from index.published.ap_tree import layout as L
from index.published.ap_tree.layout import Row, Tree
from safe_region.jit import leaf

_LOOK_LEAST = 16
_LOOK_SHARE = 32
"""Drift is tested after _LOOK_LEAST updates, or one for every _LOOK_SHARE entries if these are more."""
_POPULATION_SHARE = 0.001
"""Smaller nodes are not rebuilt (section 5.1.3)."""
_SMOOTHING = 1.0
"""Added to the weight of every part, so that none is 0."""


@leaf
def _weight_of(tree: Tree, part: int) -> int:
    child = int(tree.parts[part]["child"])
    return 0 if child == L.NOTHING else int(tree.nodes[child]["weight"])


@leaf
def divergence(tree: Tree, row: Row) -> float:
    """Return D_KL(w_old | w) of a node, smoothed. O(parts)."""
    start, count = int(row["start"]), int(row["count"])
    old_total, total = _SMOOTHING * count, _SMOOTHING * count
    for part in range(start, start + count):
        old_total += tree.parts[part]["built"]
        total += _weight_of(tree, part)
    found = 0.0
    for part in range(start, start + count):
        old = (tree.parts[part]["built"] + _SMOOTHING) / old_total
        new = (_weight_of(tree, part) + _SMOOTHING) / total
        found += old * np.log(old / new)
    return found


@leaf
def _take_over(tree: Tree, row: Row) -> None:
    """Record the weights of the parts of a node."""
    start = int(row["start"])
    for part in range(start, start + int(row["count"])):
        tree.parts[part]["built"] = _weight_of(tree, part)
    row["is_based"] = 1


@leaf
def _has_drifted(tree: Tree, row: Row) -> bool:
    """Count an update; return whether a node is to be rebuilt."""
    row["updates"] += 1
    row["changes"] += 1
    if row["updates"] < max(_LOOK_LEAST, row["weight"] // _LOOK_SHARE):
        return False
    row["updates"] = 0
    if not row["is_based"]:
        _take_over(tree, row)
        return False
    weight = int(row["weight"])
    return bool(
        weight > tree.limits[L.LEAF_MAX]
        and weight >= _POPULATION_SHARE * tree.limits[L.POPULATION]
        and row["changes"] >= tree.shares[L.CHANGE_SHARE] * weight
        and divergence(tree, row) > tree.shares[L.DRIFT_MAX]
    )


@leaf
def update_above(tree: Tree, node: int, delta: int) -> int:
    """Add to the weights above a leaf; return the highest node that is to be rebuilt, or NOTHING.

    This is a node that has drifted, or has so few entries that it should become a leaf. It belongs to
    neither side of a rebuild in progress.
    """
    found = L.NOTHING
    is_barred = node == tree.meta[L.JOB_OLD]
    small = tree.limits[L.LEAF_MAX] // 2
    above = int(tree.nodes[node]["parent"])
    top = node
    while above != L.NOTHING:
        row = tree.nodes[above]
        row["weight"] += delta
        if above == tree.meta[L.JOB_OLD]:
            is_barred = True
            found = L.NOTHING
        elif not is_barred and (_has_drifted(tree, row) or (delta < 0 and row["weight"] <= small)):
            found = above
        top = above
        above = int(row["parent"])
    return L.NOTHING if is_barred or top != tree.meta[L.ROOT] else found


@leaf
def is_barred(tree: Tree, node: int) -> bool:
    """Return whether a node must stay as it is: part of a rebuild in progress, or above it."""
    old = int(tree.meta[L.JOB_OLD])
    if old == L.NOTHING:
        return False
    above = node
    while above != L.NOTHING:
        if above == old:
            return True
        above = int(tree.nodes[above]["parent"])
    above = old
    while above != L.NOTHING:
        if above == node:
            return True
        above = int(tree.nodes[above]["parent"])
    return False


@leaf
def is_in_job(tree: Tree, node: int) -> bool:
    """Return whether a node belongs to the new subtree of a rebuild in progress."""
    new = int(tree.meta[L.JOB_NEW])
    while node not in (L.NOTHING, new):
        node = int(tree.nodes[node]["parent"])
    return bool(node != L.NOTHING)
