"""Quadtrees over tables: cells, children, distances, and the pool of nodes.

A node is a row of any structured dtype with `QUAD_FIELDS`. The four children of a node are adjacent, a
*group*, allocated from the pool and freed together; a root allocates a group of its own and uses its
first row. The children meet at the centre of the node's square. A cell is the part of the plane that a
node is responsible for, half-open: its square, but without a border where the square touches the border
of the root's. So a root covers the plane, points outside its square are in the cells at the border, and
nothing is clamped.

Cell borders are split coordinates of ancestors, never sums, and distances are the expression of
`safe_region.scoring.formulas.length`: rounding is monotone, so `node_distance` never exceeds the float64
distance of a point in the cell, and a bound that starts with it needs no tolerance.

Operations: each O(1). The pool's counters lie in the first three places of a `meta` array.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.tables.free_kernels import give_back_rows, take_rows
from safe_region.jit import leaf

Rows = npt.NDArray[Any]

NO_NODE = -1

QUAD_FIELDS: list[tuple[str, type[np.generic]]] = [
    ("x_min", np.float64),  # the cell; infinite at the border of the root
    ("y_min", np.float64),
    ("x_max", np.float64),
    ("y_max", np.float64),
    ("split_x", np.float64),  # centre of the square
    ("split_y", np.float64),
    ("half_m", np.float64),  # half the side of the square
    ("parent", np.int32),  # NO_NODE for a root; in the first row of a free group: the next free group
    ("first_child", np.int32),  # NO_NODE for a leaf
    ("depth", np.int32),
]

GROUP_END = 0
"""In meta: every row from here on is unused."""
GROUP_FREE = 1
"""In meta: the first row of the first free group, NO_NODE if there is none."""
GROUP_FREE_COUNT = 2


@leaf
def group_room(nodes: Rows, meta: Ints) -> int:
    """Return the number of groups that can be allocated."""
    return int(meta[GROUP_FREE_COUNT] + (nodes.shape[0] - meta[GROUP_END]) // 4)


@leaf
def take_group(nodes: Rows, meta: Ints) -> int:
    """Allocate four rows; return the first. The caller has verified the capacity."""
    if meta[GROUP_FREE] != NO_NODE:
        meta[GROUP_FREE_COUNT] -= 1
    return take_rows(nodes["parent"], meta, GROUP_FREE, meta, GROUP_END, 4)


@leaf
def free_group(nodes: Rows, meta: Ints, first: int) -> None:
    """Free four rows. Only `parent` of the first changes until they are allocated again."""
    give_back_rows(nodes["parent"], meta, GROUP_FREE, first)
    meta[GROUP_FREE_COUNT] += 1


@leaf
def set_root(nodes: Rows, node: int, x_m: float, y_m: float, half_m: float) -> None:
    """Make a row a leaf that covers the plane, with its square about (x, y)."""
    row = nodes[node]
    row["x_min"] = -math.inf
    row["y_min"] = -math.inf
    row["x_max"] = math.inf
    row["y_max"] = math.inf
    row["split_x"] = x_m
    row["split_y"] = y_m
    row["half_m"] = half_m
    row["parent"] = NO_NODE
    row["first_child"] = NO_NODE
    row["depth"] = 0


@leaf
def set_children(nodes: Rows, node: int, first: int) -> None:
    """Make a group the children of a node, all of them leaves."""
    parent = nodes[node]
    half_m = parent["half_m"] / 2
    for i in range(4):
        row = nodes[first + i]
        is_right = i % 2 == 1
        is_upper = i >= 2  # noqa: PLR2004
        row["x_min"] = parent["split_x"] if is_right else parent["x_min"]
        row["x_max"] = parent["x_max"] if is_right else parent["split_x"]
        row["y_min"] = parent["split_y"] if is_upper else parent["y_min"]
        row["y_max"] = parent["y_max"] if is_upper else parent["split_y"]
        row["split_x"] = parent["split_x"] + (half_m if is_right else -half_m)
        row["split_y"] = parent["split_y"] + (half_m if is_upper else -half_m)
        row["half_m"] = half_m
        row["parent"] = node
        row["first_child"] = NO_NODE
        row["depth"] = parent["depth"] + 1
    nodes[node]["first_child"] = first


@leaf
def child_of(nodes: Rows, node: int, x_m: float, y_m: float) -> int:
    """Return the child whose cell contains the point; the node must have children."""
    row = nodes[node]
    child = row["first_child"]
    if x_m >= row["split_x"]:
        child += 1
    if y_m >= row["split_y"]:
        child += 2
    return int(child)


@leaf
def node_distance(nodes: Rows, node: int, x_m: float, y_m: float) -> float:
    """Return the distance from a point to a node's cell, 0 inside."""
    row = nodes[node]
    dx = max(0.0, row["x_min"] - x_m, x_m - row["x_max"])
    dy = max(0.0, row["y_min"] - y_m, y_m - row["y_max"])
    return math.sqrt(dx * dx + dy * dy)
