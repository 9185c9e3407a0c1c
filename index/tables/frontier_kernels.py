"""A best-first frontier: a min-heap of (bound, node) in two arrays.

The heap lies in `bounds[0:size]` with nodes beside it; the root has the least bound. Push and pop
O(log n). Callers give it room for every node that one search can push; each node goes in at most once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats
from safe_region.jit import leaf


class Frontier(NamedTuple):
    """Room for a heap."""

    bounds: Floats
    nodes: npt.NDArray[np.int32]


@leaf
def push(frontier: Frontier, size: int, bound: float, node: int) -> int:
    """Add a node; return the new size."""
    bounds = frontier.bounds
    nodes = frontier.nodes
    i = size
    while i > 0:
        parent = (i - 1) // 2
        if bounds[parent] <= bound:
            break
        bounds[i] = bounds[parent]
        nodes[i] = nodes[parent]
        i = parent
    bounds[i] = bound
    nodes[i] = node
    return size + 1


@leaf
def pop(frontier: Frontier, size: int) -> int:
    """Drop the root, which the caller has read at position 0; return the new size."""
    bounds = frontier.bounds
    nodes = frontier.nodes
    size -= 1
    bound = bounds[size]
    node = nodes[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and bounds[child + 1] < bounds[child]:
            child += 1
        if bound <= bounds[child]:
            break
        bounds[i] = bounds[child]
        nodes[i] = nodes[child]
        i = child
    bounds[i] = bound
    nodes[i] = node
    return size
