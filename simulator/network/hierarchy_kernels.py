"""Kernels of the hierarchy: contraction without a metric, customisation with one, and queries.

Nodes are named by rank: 0 is contracted first. An arc joins a node with one of a higher rank; arcs of a
node lie together, by the rank of their upper end. For an arc, `up_s` is the time from the lower to the
upper end, `down_s` the time back; infinite if there is no path.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from safe_region.jit import array_leaf, kernel, leaf

NO_NODE = -1
NO_EDGE = -1

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@kernel
def contract(offsets: Longs, uppers: Ints) -> tuple[Longs, Ints]:
    """Join the upper neighbours of each node, in the order of contraction. O(arcs * log).

    Parameters
    ----------
    offsets, uppers
        The neighbours of a higher rank of node v in the network, increasing, are
        uppers[offsets[v]..offsets[v + 1]].

    Returns
    -------
    The same for the hierarchy: all upper neighbours of a node except the lowest are also upper
    neighbours of the lowest.
    """
    node_count = offsets.shape[0] - 1
    found_offsets = np.zeros(node_count + 1, np.int64)
    found = np.empty(4 * uppers.shape[0] + 16, np.int32)
    # For each node, the list of nodes that have it as their lowest upper neighbour.
    first_child = np.full(node_count, NO_NODE, np.int32)
    next_child = np.full(node_count, NO_NODE, np.int32)
    seen = np.full(node_count, NO_NODE, np.int32)
    used = 0
    for node in range(node_count):
        begin = used
        seen[node] = node
        child = NO_NODE
        while True:
            if child == NO_NODE:
                low, high = offsets[node], offsets[node + 1]
            else:
                low, high = found_offsets[child], found_offsets[child + 1]
            if used + high - low > found.shape[0]:
                grown = np.empty(2 * found.shape[0] + (high - low), np.int32)
                grown[:used] = found[:used]
                found = grown
            for i in range(low, high):
                upper = uppers[i] if child == NO_NODE else found[i]
                if seen[upper] != node:
                    seen[upper] = node
                    found[used] = upper
                    used += 1
            child = first_child[node] if child == NO_NODE else next_child[child]
            if child == NO_NODE:
                break
        found[begin:used].sort()
        found_offsets[node + 1] = used
        if used > begin:
            parent = found[begin]
            next_child[node] = first_child[parent]
            first_child[parent] = node
    return found_offsets, found[:used].copy()


@leaf
def arc_between(offsets: Longs, uppers: Ints, lower: int, upper: int) -> int:
    """Return the arc between two nodes, which must exist. O(log arcs of a node)."""
    low, high = offsets[lower], offsets[lower + 1]
    while low < high:
        middle = (low + high) // 2
        if uppers[middle] < upper:
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def arcs_of(offsets: Longs, uppers: Ints, lowers: Ints, highers: Ints) -> Longs:
    """Return the arc between each pair of nodes."""
    found = np.empty(lowers.shape[0], np.int64)
    for i in range(lowers.shape[0]):
        found[i] = arc_between(offsets, uppers, lowers[i], highers[i])
    return found


@kernel
def customise(
    offsets: Longs, uppers: Ints, edge_arcs: Longs, edge_is_up: npt.NDArray[np.bool_], times_s: Floats
) -> tuple[Floats, Floats, Ints, Ints]:
    """Set the times of arcs to those of the fastest paths over lower nodes. O(triangles).

    Parameters
    ----------
    offsets, uppers
        The hierarchy.
    edge_arcs, edge_is_up
        The arc of each edge of the network, and whether it leads to the higher end.
    times_s
        The time of each edge; infinite if it is closed.

    Returns
    -------
    up_s, down_s
        Times of arcs.
    up_via, down_via
        The parts of arcs: an edge of the network, or, as -2 - node, two arcs over a lower node; `NO_EDGE`
        if there is no path.
    """
    arc_count = uppers.shape[0]
    up_s, down_s = np.full(arc_count, np.inf), np.full(arc_count, np.inf)
    up_via = np.full(arc_count, NO_EDGE, np.int32)
    down_via = np.full(arc_count, NO_EDGE, np.int32)
    for edge in range(edge_arcs.shape[0]):
        arc = edge_arcs[edge]
        if arc < 0:
            continue
        if edge_is_up[edge]:
            if times_s[edge] < up_s[arc]:
                up_s[arc] = times_s[edge]
                up_via[arc] = edge
        elif times_s[edge] < down_s[arc]:
            down_s[arc] = times_s[edge]
            down_via[arc] = edge
    for node in range(offsets.shape[0] - 1):
        for i in range(offsets[node], offsets[node + 1]):
            if up_s[i] < np.inf or down_s[i] < np.inf:
                _relax_triangles(offsets, uppers, node, i, up_s, down_s, up_via, down_via)
    return up_s, down_s, up_via, down_via


@leaf
def _relax_triangles(
    offsets: Longs,
    uppers: Ints,
    node: int,
    side: int,
    up_s: Floats,
    down_s: Floats,
    up_via: Ints,
    down_via: Ints,
) -> None:
    """Relax the arcs between the end of a node's arc and the ends of its later arcs, both ways."""
    arc = offsets[uppers[side]]
    for other in range(side + 1, offsets[node + 1]):
        while uppers[arc] < uppers[other]:  # the arc exists: the node was contracted before
            arc += 1
        forth_s = down_s[side] + up_s[other]
        if forth_s < up_s[arc]:
            up_s[arc] = forth_s
            up_via[arc] = -2 - node
        back_s = down_s[other] + up_s[side]
        if back_s < down_s[arc]:
            down_s[arc] = back_s
            down_via[arc] = -2 - node


@leaf
def _climb(
    offsets: Longs, uppers: Ints, arc_s: Floats, node: int, times_s: Floats, via_arcs: Ints
) -> None:
    """Relax the arcs of a node and of all its ancestors."""
    while True:
        begin, end = offsets[node], offsets[node + 1]
        time_s = times_s[node]
        if time_s < np.inf:
            for arc in range(begin, end):
                reached_s = time_s + arc_s[arc]
                upper = uppers[arc]
                if reached_s < times_s[upper]:
                    times_s[upper] = reached_s
                    via_arcs[upper] = arc
        if begin == end:
            return
        node = uppers[begin]


@array_leaf
def _unpack(
    offsets: Longs,
    uppers: Ints,
    lowers: Ints,
    up_via: Ints,
    down_via: Ints,
    arc: int,
    is_up: bool,  # noqa: FBT001
    stack: Longs,
    edges: Ints,
    used: int,
) -> tuple[Longs, Ints, int]:
    """Append the edges of an arc; return the arrays, grown if needed, and the used length."""
    stack[0] = 2 * arc + is_up
    depth = 1
    while depth > 0:
        depth -= 1
        arc, up = stack[depth] >> 1, stack[depth] & 1
        via = up_via[arc] if up else down_via[arc]
        if via >= 0:
            if used == edges.shape[0]:
                grown = np.empty(2 * used, np.int32)
                grown[:used] = edges
                edges = grown
            edges[used] = via
            used += 1
            continue
        node = -2 - via
        first, second = (lowers[arc], uppers[arc]) if up else (uppers[arc], lowers[arc])
        if depth + 2 > stack.shape[0]:
            longer = np.empty(2 * stack.shape[0], np.int64)
            longer[:depth] = stack[:depth]
            stack = longer
        # Down from the first to the node below both, then up to the second: the latter waits.
        stack[depth] = 2 * arc_between(offsets, uppers, node, second) + 1
        stack[depth + 1] = 2 * arc_between(offsets, uppers, node, first)
        depth += 2
    return stack, edges, used


@kernel
def fastest_paths(
    offsets: Longs,
    uppers: Ints,
    lowers: Ints,
    up_s: Floats,
    down_s: Floats,
    up_via: Ints,
    down_via: Ints,
    sources: Ints,
    targets: Ints,
) -> tuple[Longs, Ints]:
    """Find the fastest path of each (source, target).

    The search visits all ancestors of both ends; the path leads over the one with the least sum of both
    times. O(arcs of the ancestors) a path, and O(edges) to write it.

    Returns
    -------
    The paths as compressed sparse rows of edges; empty if source and target coincide, or there is no path
    between them.
    """
    node_count = offsets.shape[0] - 1
    forth_s, back_s = np.full(node_count, np.inf), np.full(node_count, np.inf)
    forth_arcs, back_arcs = np.empty(node_count, np.int32), np.empty(node_count, np.int32)
    path_offsets = np.zeros(sources.shape[0] + 1, np.int64)
    edges = np.empty(1024, np.int32)
    stack = np.empty(64, np.int64)
    trail = np.empty(64, np.int32)
    used = 0
    for i in range(sources.shape[0]):
        source, target = sources[i], targets[i]
        forth_s[source] = 0.0
        back_s[target] = 0.0
        _climb(offsets, uppers, up_s, source, forth_s, forth_arcs)
        _climb(offsets, uppers, down_s, target, back_s, back_arcs)
        best_s, top, node = np.inf, NO_NODE, target
        while True:
            if forth_s[node] + back_s[node] < best_s:
                best_s, top = forth_s[node] + back_s[node], node
            if offsets[node] == offsets[node + 1]:
                break
            node = uppers[offsets[node]]
        if top != NO_NODE:
            depth, node = 0, top
            while node != source:
                if depth == trail.shape[0]:
                    longer = np.empty(2 * depth, np.int32)
                    longer[:depth] = trail
                    trail = longer
                trail[depth] = forth_arcs[node]
                depth += 1
                node = lowers[forth_arcs[node]]
            for j in range(depth - 1, -1, -1):
                stack, edges, used = _unpack(
                    offsets, uppers, lowers, up_via, down_via, trail[j], True, stack, edges, used
                )
            node = top
            while node != target:
                arc = back_arcs[node]
                stack, edges, used = _unpack(
                    offsets, uppers, lowers, up_via, down_via, arc, False, stack, edges, used
                )
                node = lowers[arc]
        path_offsets[i + 1] = used
        _reset(offsets, uppers, source, forth_s)
        _reset(offsets, uppers, target, back_s)
    return path_offsets, edges[:used].copy()


@leaf
def _reset(offsets: Longs, uppers: Ints, node: int, times_s: Floats) -> None:
    """Forget the times of a node and of all its ancestors."""
    while True:
        times_s[node] = np.inf
        if offsets[node] == offsets[node + 1]:
            return
        node = uppers[offsets[node]]
