"""Boxes of an R-tree's nodes, in float32, rounded outwards: fields x1_m, y1_m, x2_m, y2_m of rows.

Operations: each O(1).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from index.tables.float32_kernels import lower, upper
from safe_region.jit import leaf

Row = Any


@leaf
def empty(node: Row) -> None:
    """Make a box empty."""
    node["x1_m"] = np.inf
    node["y1_m"] = np.inf
    node["x2_m"] = -np.inf
    node["y2_m"] = -np.inf


@leaf
def cover(node: Row, x1_m: float, y1_m: float, x2_m: float, y2_m: float) -> None:
    """Enlarge a box to contain another."""
    node["x1_m"] = min(float(node["x1_m"]), lower(x1_m))
    node["y1_m"] = min(float(node["y1_m"]), lower(y1_m))
    node["x2_m"] = max(float(node["x2_m"]), upper(x2_m))
    node["y2_m"] = max(float(node["y2_m"]), upper(y2_m))


@leaf
def cover_row(node: Row, other: Row) -> None:
    """Enlarge a box to contain that of another row."""
    cover(node, float(other["x1_m"]), float(other["y1_m"]), float(other["x2_m"]), float(other["y2_m"]))


@leaf
def enlargement(node: Row, x1_m: float, y1_m: float, x2_m: float, y2_m: float) -> float:
    """Return the growth in area of a box that is enlarged to contain another."""
    left, low, right, high = (
        float(node["x1_m"]),
        float(node["y1_m"]),
        float(node["x2_m"]),
        float(node["y2_m"]),
    )
    wide = max(right, x2_m) - min(left, x1_m)
    tall = max(high, y2_m) - min(low, y1_m)
    return wide * tall - (right - left) * (high - low)


@leaf
def is_apart(row: Row, x1_m: float, y1_m: float, x2_m: float, y2_m: float) -> bool:
    """Return whether a row's box and another, both closed, have no point in common."""
    return bool(row["x1_m"] > x2_m or row["x2_m"] < x1_m or row["y1_m"] > y2_m or row["y2_m"] < y1_m)


@leaf
def distance(node: Row, x_m: float, y_m: float) -> float:
    """Return the distance from a point to a box, 0 inside."""
    dx = max(0.0, float(node["x1_m"]) - x_m, x_m - float(node["x2_m"]))
    dy = max(0.0, float(node["y1_m"]) - y_m, y_m - float(node["y2_m"]))
    return math.sqrt(dx * dx + dy * dy)
