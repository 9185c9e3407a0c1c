"""The bounds by which the SQ-tree places and prunes. All in lengths (metres)."""

from __future__ import annotations

import math

from index.batches import Floats
from index.published.sq_tree.layout import COMMON_MAX, Row
from safe_region.jit import leaf
from safe_region.scoring.kernels import text_distance

_DICE = 2
_COSINE = 3
_NEVER = 2.0
_ROUNDING = 1e-12
"""Relative to the largest term: thresholds err on the side of not pruning."""


@leaf
def threshold(subscription: Row, common: int) -> float:
    """Return lambda(s, o | common), equation 4, for objects with this many common keywords.

    No such object farther from the region matters.
    """
    count = subscription["keyword_count"]
    common = count if common >= COMMON_MAX else min(common, count)
    weight = subscription["weight_m"]
    reach = subscription["reach_m"]
    # The least text distance is that of an object with the common keywords and no other (lemma 3).
    least = text_distance(subscription["similarity"], common, count, common)
    return float(reach - weight * least + _ROUNDING * (reach + weight))


@leaf
def common_needed(subscription: Row, distance_m: float) -> float:
    """Return pnum(s, n): the common keywords that an object at the expected distance needs to matter."""
    count = subscription["keyword_count"]
    room = subscription["reach_m"] - distance_m
    weight = subscription["weight_m"]
    if weight <= 0.0:
        return 0.0 if room >= 0.0 else float(count)
    similar = 1.0 - room / weight
    if similar <= 0.0:
        return 0.0
    if subscription["similarity"] == _DICE:
        # From 1 - 2i / (|s| + i): at a distance far beyond the reach no number of keywords suffices.
        return float(math.floor(similar * count / (2.0 - similar))) if similar < _NEVER else math.inf
    if subscription["similarity"] == _COSINE:
        return float(math.floor(similar * similar * count))
    return float(math.floor(similar * count))


@leaf
def distance_to(node: Row, x_m: float, y_m: float) -> float:
    """Return dist(n, p), definition 5."""
    dx = max(0.0, abs(x_m - node["x_m"]) - node["half_m"])
    dy = max(0.0, abs(y_m - node["y_m"]) - node["half_m"])
    return math.sqrt(dx * dx + dy * dy)


@leaf
def overhang(node: Row, subscription: Row) -> float:
    """Return add(R, n), definition 6: how far the region may extend beyond the node.

    For a centroid outside the node (the root takes all) it includes its distance.
    """
    x_m, y_m = subscription["x_m"], subscription["y_m"]
    outside = distance_to(node, x_m, y_m)
    if outside > 0.0:
        return float(subscription["radius_m"] + outside)
    inner_x = float(node["half_m"] - abs(x_m - node["x_m"]))
    inner_y = float(node["half_m"] - abs(y_m - node["y_m"]))
    return float(max(0.0, subscription["radius_m"] - min(inner_x, inner_y)))


@leaf
def raise_thresholds(row_m: Floats, node: Row, subscription: Row) -> None:
    """Raise the thresholds of a node, equations 6 and 7, to cover a subscription."""
    extra = overhang(node, subscription)
    count = min(subscription["keyword_count"], COMMON_MAX)
    value = 0.0
    for common in range(1, count + 1):
        value = threshold(subscription, common) + extra
        row_m[common] = max(row_m[common], value)
    for common in range(count + 1, COMMON_MAX + 1):
        row_m[common] = max(row_m[common], value)


@leaf
def _corner_integral(a: float, b: float) -> float:
    """Return the integral of the distance from its corner over a rectangle of sides a and b."""
    if a <= 0.0 or b <= 0.0:
        return 0.0
    diagonal = math.sqrt(a * a + b * b)
    return (
        2.0 * a * b * diagonal
        + a * a * a * math.log((b + diagonal) / a)
        + b * b * b * math.log((a + diagonal) / b)
    ) / 6.0


@leaf
def expected_distance(root: Row, x_m: float, y_m: float, half_m: float) -> float:
    """Return E[dist(n, o)] for a node of the root's square and objects anywhere in it."""
    left = max(0.0, (x_m - half_m) - (root["x_m"] - root["half_m"]))
    right = max(0.0, (root["x_m"] + root["half_m"]) - (x_m + half_m))
    below = max(0.0, (y_m - half_m) - (root["y_m"] - root["half_m"]))
    above = max(0.0, (root["y_m"] + root["half_m"]) - (y_m + half_m))
    strips = half_m * (left * left + right * right + below * below + above * above)
    corners = (
        _corner_integral(left, below)
        + _corner_integral(left, above)
        + _corner_integral(right, below)
        + _corner_integral(right, above)
    )
    side = 2.0 * root["half_m"]
    return float((strips + corners) / (side * side))
