"""Kernels of the street graph, over compressed sparse rows: components and shortest paths.

Plan: A* with a binary heap and lazy deletion. The bound is the straight distance over the fastest
speed of the network, which never exceeds the true time and obeys the triangle inequality, so that
a node is settled once. Cost of a path: O((nodes + edges) log edges) over the nodes that lie in an
ellipse about its ends; scratch is allocated once per batch and reset by stamps.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from index.tables.heap_kernels import Heap, pop, push
from safe_region.jit import array_leaf, kernel, leaf

NO_EDGE = -1
"""In `via_edges`: the search started here."""

_SAFETY = 1.0 - 1e-9
"""Keeps the bound below the true time when both are rounded."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@leaf
def _close(open_nodes: Ints, open_count: int, root: int, labels: Ints, label: int) -> int:
    """Label the nodes of a component that is complete; return how many stay open."""
    member = -1
    while member != root:
        open_count -= 1
        member = open_nodes[open_count]
        labels[member] = label
    return open_count


@kernel
def strong_components(offsets: Longs, heads: Ints) -> Ints:
    """Label every node with its strongly connected component. O(nodes + edges).

    Tarjan's algorithm with its own call stack: `frames` are nodes whose edges are being followed,
    `next_edges` says how far; `open_nodes` are those whose component is not complete.
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


@leaf
def _search(
    offsets: Longs,
    heads: Ints,
    speeds_mps: Floats,
    fastest_mps: float,
    lengths_m: Floats,
    xs_m: Floats,
    ys_m: Floats,
    source: int,
    target: int,
    run: int,
    costs_s: Floats,
    via_edges: Ints,
    tails: Ints,
    seen: Ints,
    settled: Ints,
    heap: Heap,
) -> bool:
    """Search from source until target is settled; `run` stamps what this search has touched."""
    costs_s[source] = 0.0
    via_edges[source] = NO_EDGE
    seen[source] = run
    heap_count = push(heap, 0, 0.0, source)
    while heap_count > 0:
        node = heap.items[0]
        heap_count = pop(heap, heap_count)
        if settled[node] == run:
            continue
        settled[node] = run
        if node == target:
            return True
        for edge in range(offsets[node], offsets[node + 1]):
            head = heads[edge]
            if speeds_mps[edge] <= 0.0 or settled[head] == run:
                continue
            cost_s = costs_s[node] + lengths_m[edge] / speeds_mps[edge]
            if seen[head] == run and costs_s[head] <= cost_s:
                continue
            seen[head] = run
            costs_s[head] = cost_s
            via_edges[head] = edge
            tails[head] = node
            dx_m = xs_m[head] - xs_m[target]
            dy_m = ys_m[head] - ys_m[target]
            bound_s = math.sqrt(dx_m * dx_m + dy_m * dy_m) / fastest_mps * _SAFETY
            heap_count = push(heap, heap_count, cost_s + bound_s, head)
    return False


@array_leaf
def _trace(via_edges: Ints, tails: Ints, target: int, path_edges: Ints, used: int) -> tuple[Ints, int]:
    """Append the edges that lead to target; return the array, grown if need be, and its use."""
    first = used
    node = target
    while via_edges[node] != NO_EDGE:
        if used == path_edges.shape[0]:
            grown = np.empty(2 * used, np.int32)
            grown[:used] = path_edges
            path_edges = grown
        path_edges[used] = via_edges[node]
        used += 1
        node = tails[node]
    path_edges[first:used] = path_edges[first:used][::-1].copy()
    return path_edges, used


@array_leaf
def _fastest_mps(speeds_mps: Floats) -> Floats:
    """Return the greatest speed of each device class."""
    found = np.empty(speeds_mps.shape[0])
    for number in range(speeds_mps.shape[0]):
        found[number] = speeds_mps[number].max()
    return found


@array_leaf
def _scratch(node_count: int, edge_count: int) -> tuple[Floats, Ints, Ints, Ints, Ints, Heap]:
    """Return what a search writes to: five arrays of nodes, and a heap."""
    return (
        np.empty(node_count),
        np.empty(node_count, np.int32),
        np.empty(node_count, np.int32),
        np.full(node_count, -1, np.int32),
        np.full(node_count, -1, np.int32),
        # A node is settled once, so every edge enters the heap at most once.
        Heap(np.empty(edge_count + 1), np.empty(edge_count + 1, np.int32)),
    )


@kernel
def shortest_paths(
    offsets: Longs,
    heads: Ints,
    speeds_mps: Floats,
    lengths_m: Floats,
    xs_m: Floats,
    ys_m: Floats,
    sources: Ints,
    targets: Ints,
    classes: Ints,
) -> tuple[Longs, Ints]:
    """Find the fastest path of each (source, target, device class).

    Parameters
    ----------
    offsets, heads
        Edges of node n are offsets[n]..offsets[n + 1]; each leads to heads[edge].
    speeds_mps
        Speed by device class and edge; 0 where it may not go.
    lengths_m
        Length by edge, at least the straight distance of its ends.
    xs_m, ys_m
        Nodes on the plane.
    sources, targets, classes
        What to find, one entry a path.

    Returns
    -------
    The paths as compressed sparse rows of edges. A path from a node to itself is empty, and so is
    one that does not exist.
    """
    costs_s, via_edges, tails, seen, settled, heap = _scratch(offsets.shape[0] - 1, heads.shape[0])
    path_offsets = np.zeros(sources.shape[0] + 1, np.int64)
    path_edges = np.empty(1024, np.int32)
    fastest_mps = _fastest_mps(speeds_mps)
    used = 0
    for i in range(sources.shape[0]):
        is_found = _search(
            offsets,
            heads,
            speeds_mps[classes[i]],
            fastest_mps[classes[i]],
            lengths_m,
            xs_m,
            ys_m,
            sources[i],
            targets[i],
            i,
            costs_s,
            via_edges,
            tails,
            seen,
            settled,
            heap,
        )
        if is_found:
            path_edges, used = _trace(via_edges, tails, targets[i], path_edges, used)
        path_offsets[i + 1] = used
    return path_offsets, path_edges[:used].copy()
