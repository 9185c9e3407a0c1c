"""Kernels of the street graph, over compressed sparse rows: strongly connected components."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from safe_region.jit import kernel, leaf

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@leaf
def _close(open_nodes: Ints, open_count: int, root: int, labels: Ints, label: int) -> int:
    """Label the nodes of a component that is complete; return the number of nodes that stay open."""
    member = -1
    while member != root:
        open_count -= 1
        member = open_nodes[open_count]
        labels[member] = label
    return open_count


@kernel
def strong_components(offsets: Longs, heads: Ints) -> Ints:
    """Label every node with its strongly connected component. O(nodes + edges).

    Tarjan's algorithm with its own call stack: `frames` are nodes with edges that are being followed,
    `next_edges` is the next edge of each; `open_nodes` are the nodes of components that are not complete.
    """
    node_count = offsets.shape[0] - 1
    labels = np.full(node_count, -1, np.int32)
    order = np.full(node_count, -1, np.int32)
    low = np.zeros(node_count, np.int32)
    next_edges = offsets[:-1].copy()
    frames = np.empty(node_count, np.int32)
    open_nodes = np.empty(node_count, np.int32)
    open_count = 0
    visited_count = 0
    label_count = 0
    for root in range(node_count):
        if order[root] >= 0:
            continue
        frames[0] = root
        depth = 1
        while depth > 0:
            node = frames[depth - 1]
            if order[node] < 0:
                order[node] = visited_count
                low[node] = visited_count
                visited_count += 1
                open_nodes[open_count] = node
                open_count += 1
            if next_edges[node] < offsets[node + 1]:
                head = heads[next_edges[node]]
                next_edges[node] += 1
                if order[head] < 0:
                    frames[depth] = head
                    depth += 1
                elif labels[head] < 0:
                    low[node] = min(low[node], order[head])
                continue
            depth -= 1
            if depth > 0:
                low[frames[depth - 1]] = min(low[frames[depth - 1]], low[node])
            if low[node] == order[node]:
                open_count = _close(open_nodes, open_count, node, labels, label_count)
                label_count += 1
    return labels
