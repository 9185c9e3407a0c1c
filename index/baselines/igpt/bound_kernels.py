"""Statistics of subscriptions and what follows from them for objects.

With w metres per text distance, reach and radius, and D for MaxDist, an object at distance d of similarity
t matches only if

    d - radius + w * (1 - t) <= reach
    t >= lambda_T = kScore* - alpha* * (1 - d / D),   alpha* = D / w,   kScore* = 1 + (D - reach - radius) / w

which is equation 2. Where w is almost 0, and where the reach is infinite, a subscription is kept *apart*:
the same in units of D, with nothing for the text: alpha* = 1, kScore* = (D - reach - radius) / D, weights 0.

Distances beyond D count as D, so that the spatial similarity is never below 0. That is less than
is known, and so it is safe.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from index.baselines.igpt.layout import Row, Tree
from index.tables.float32_kernels import lower, upper
from index.tables.quad_kernels import node_distance
from index.tables.vector_kernels import SLACK
from safe_region.jit import leaf

_APART = 1e-6
"""Share of MaxDist up to which a weight counts for nothing: alpha* would be too large for float32."""


class Statistics(NamedTuple):
    """What places a subscription in a list."""

    kscore: float
    alpha: float
    is_apart: bool


@leaf
def statistics_of(tree: Tree, row: Row) -> Statistics:
    """Return kScore* rounded down and alpha* rounded up, to what float32 can hold."""
    distance = tree.settings.distance_m
    weight = float(row["weight_m"])
    beyond = distance - float(row["reach_m"]) - float(row["radius_m"])
    if math.isinf(row["reach_m"]) or weight <= _APART * distance:
        return Statistics(lower(beyond / distance), 1.0, True)
    return Statistics(lower(1.0 + beyond / weight), upper(distance / weight), False)


@leaf
def outer_reach(row: Row) -> float:
    """Return how far from a subscription's place anything may lie to matter."""
    return float(row["reach_m"] + row["radius_m"])


@leaf
def inner_distance(tree: Tree, cell: int, row: Row) -> float:
    """Return how far a subscription is from the border of its cell, rounded down (definition 6)."""
    area = tree.cells[cell]
    x = min(row["x_m"] - area["x_min"], area["x_max"] - row["x_m"])
    y = min(row["y_m"] - area["y_min"], area["y_max"] - row["y_m"])
    return lower(max(0.0, float(min(x, y))))


@leaf
def is_in_cell(tree: Tree, cell: int, x_m: float, y_m: float) -> bool:
    """Whether a point lies in a cell."""
    area = tree.cells[cell]
    return bool(area["x_min"] <= x_m < area["x_max"] and area["y_min"] <= y_m < area["y_max"])


@leaf
def is_cell_too_far(tree: Tree, cell: int, x_m: float, y_m: float) -> bool:
    """Whether nobody in a cell is affected by an object (lemma 6)."""
    reach = float(tree.cells[cell]["reach_m"])
    away = node_distance(tree.cells, cell, x_m, y_m)
    return bool(away > reach + SLACK * (abs(reach) + away) or reach == -math.inf)


@leaf
def spatial_similarity(tree: Tree, away_m: float) -> float:
    """Return SSim at a distance."""
    return max(0.0, 1.0 - away_m / tree.settings.distance_m)


@leaf
def needed_similarity(kscore: float, alpha: float, similarity: float) -> float:
    """Return lambda_T, a trifle less so that rounding does no harm: what is below it is ruled out."""
    return kscore - alpha * similarity - SLACK * (1.0 + alpha)
