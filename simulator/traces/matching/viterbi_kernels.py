"""Kernels of the matcher: the likeliest places on roads, and the paths between them.

Cost of a step from one point to the next: a search from each distinct end of a candidate's road, at
most `CANDIDATES_MAX`, over the nodes within the maximum length of a path; it ends when the roads of all
next candidates are reached. Scratch is allocated once a batch and reset by stamps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from index.tables.heap_kernels import Heap, pop, push
from safe_region.jit import array_leaf, kernel, leaf
from simulator.traces.matching.layout import Candidates, Floats, Ints, Longs, Points, Roads, Tolerances

DETOUR_MAX = 15.0
"""Paths that are longer than the straight line by more than this times beta are ignored: e^-15."""

NO_EDGE = -1

Bools = npt.NDArray[np.bool_]


class Chains(NamedTuple):
    """The best score of each candidate, and the candidate before from which it comes, -1 for none."""

    scores: Floats
    backs: npt.NDArray[np.int8]


class Scratch(NamedTuple):
    """Working memory of a search: each node's distance, the edge by which it is reached, and stamps."""

    costs_m: Floats
    via_edges: Ints
    seen: Ints
    settled: Ints
    wanted: Ints
    heap: Heap


@array_leaf
def _scratch(node_count: int, edge_count: int) -> Scratch:
    return Scratch(
        np.empty(node_count),
        np.empty(node_count, np.int32),
        np.full(node_count, -1, np.int32),
        np.full(node_count, -1, np.int32),
        np.full(node_count, -1, np.int32),
        # A node is settled once, so every edge enters the heap at most once.
        Heap(np.empty(edge_count + 1), np.empty(edge_count + 1, np.int32)),
    )


@leaf
def _search(
    roads: Roads,
    source: int,
    bound_m: float,
    run: int,
    stamp: int,
    wanted_count: int,
    scratch: Scratch,
) -> None:
    """Search from a node until all nodes stamped in `wanted` are settled, or none is near enough."""
    costs_m, seen, settled = scratch.costs_m, scratch.seen, scratch.settled
    costs_m[source] = 0.0
    scratch.via_edges[source] = NO_EDGE
    seen[source] = run
    count = push(scratch.heap, 0, 0.0, source)
    while count > 0:
        node = scratch.heap.items[0]
        count = pop(scratch.heap, count)
        if settled[node] == run:
            continue
        settled[node] = run
        if scratch.wanted[node] == stamp:
            wanted_count -= 1
            if wanted_count == 0:
                return
        for edge in range(roads.offsets[node], roads.offsets[node + 1]):
            head = roads.heads[edge]
            cost_m = costs_m[node] + roads.lengths_m[edge]
            if cost_m > bound_m or settled[head] == run:
                continue
            if seen[head] == run and costs_m[head] <= cost_m:
                continue
            seen[head] = run
            costs_m[head] = cost_m
            scratch.via_edges[head] = edge
            count = push(scratch.heap, count, cost_m, head)


@leaf
def _same_edge_m(length_m: float, begin: float, end: float, back_m: float) -> float:
    """Return the length of the path from one place on an edge to another; -1 if it leads around."""
    way_m = (end - begin) * length_m
    if way_m >= 0.0:
        return way_m
    return -way_m if -way_m <= back_m else -1.0


@kernel
def likeliest(
    offsets: Longs, points: Points, near: Candidates, roads: Roads, tolerances: Tolerances
) -> tuple[Ints, Bools]:
    """Find the likeliest candidates of traces.

    Parameters
    ----------
    offsets, points
        Points of trace n are offsets[n]..offsets[n + 1], by time.
    near
        Their candidates.
    roads
        The roads.
    tolerances
        The errors of positions and the detours of paths.

    Returns
    -------
    For each point the candidate, -1 for none, and whether a path leads on to the next point.
    """
    ts_ms, xs_m, ys_m = points.ts_ms, points.xs_m, points.ys_m
    counts = near.counts
    count, width = near.edges.shape
    chains = Chains(np.full((count, width), -np.inf), np.full((count, width), -1, np.int8))
    scores, backs = chains.scores, chains.backs
    chosen = np.full(count, -1, np.int32)
    linked = np.zeros(count, np.bool_)
    scratch = _scratch(roads.offsets.shape[0] - 1, roads.heads.shape[0])
    run = 0
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        for i in range(first, end):
            is_reached = False
            if i > first and counts[i - 1] > 0 and counts[i] > 0:
                dx_m = xs_m[i] - xs_m[i - 1]
                dy_m = ys_m[i] - ys_m[i - 1]
                straight_m = math.sqrt(dx_m * dx_m + dy_m * dy_m)
                bound_m = min(
                    tolerances.speed_mps_max * (ts_ms[i] - ts_ms[i - 1]) / 1000.0,
                    straight_m + DETOUR_MAX * tolerances.beta_m,
                )
                run = _step(i, near, roads, straight_m, bound_m, tolerances, chains, run, scratch)
                for c in range(counts[i]):
                    is_reached |= backs[i, c] >= 0
            if is_reached:
                linked[i - 1] = True
            for c in range(counts[i]):
                if is_reached and backs[i, c] < 0:
                    continue
                away = near.distances_m[i, c] / tolerances.sigma_m
                before = scores[i, c] if is_reached else 0.0
                scores[i, c] = before - 0.5 * away * away
        _trace_back(first, end, counts, chains, linked, chosen)
    return chosen, linked


@leaf
def _reach(
    i: int,
    b: int,
    near: Candidates,
    roads: Roads,
    straight_m: float,
    bound_m: float,
    tolerances: Tolerances,
    chains: Chains,
    run: int,
    scratch: Scratch,
) -> None:
    """Improve the scores of a point's candidates by one of the point before, after its search."""
    edges, fractions = near.edges, near.fractions
    tails, lengths_m = roads.tails, roads.lengths_m
    scores, backs = chains.scores, chains.backs
    edge = edges[i - 1, b]
    rest_m = (1.0 - fractions[i - 1, b]) * lengths_m[edge]
    for c in range(near.counts[i]):
        goal = edges[i, c]
        way_m = -1.0
        if goal == edge:
            way_m = _same_edge_m(lengths_m[edge], fractions[i - 1, b], fractions[i, c], tolerances.back_m)
        if way_m < 0.0:
            if scratch.settled[tails[goal]] != run:
                continue
            way_m = rest_m + scratch.costs_m[tails[goal]] + fractions[i, c] * lengths_m[goal]
        if way_m > bound_m:
            continue
        score = scores[i - 1, b] - abs(way_m - straight_m) / tolerances.beta_m
        if backs[i, c] < 0 or score > scores[i, c]:
            scores[i, c] = score
            backs[i, c] = b


@leaf
def _step(
    i: int,
    near: Candidates,
    roads: Roads,
    straight_m: float,
    bound_m: float,
    tolerances: Tolerances,
    chains: Chains,
    run: int,
    scratch: Scratch,
) -> int:
    """Set the best score of each candidate of a point, and the candidate before from which it comes."""
    counts, edges = near.counts, near.edges
    tails, heads = roads.tails, roads.heads
    run += 1
    stamp = run
    wanted_count = 0
    for c in range(counts[i]):
        node = tails[edges[i, c]]
        if scratch.wanted[node] != stamp:
            scratch.wanted[node] = stamp
            wanted_count += 1
    for a in range(counts[i - 1]):
        node = heads[edges[i - 1, a]]
        is_done = False
        for b in range(a):
            is_done |= heads[edges[i - 1, b]] == node
        if is_done:
            continue
        run += 1
        _search(roads, node, bound_m, run, stamp, wanted_count, scratch)
        for b in range(a, counts[i - 1]):
            if heads[edges[i - 1, b]] == node and chains.scores[i - 1, b] > -np.inf:
                _reach(i, b, near, roads, straight_m, bound_m, tolerances, chains, run, scratch)
    return run


@leaf
def _trace_back(
    first: int,
    end: int,
    counts: Longs,
    chains: Chains,
    linked: Bools,
    chosen: Ints,
) -> None:
    """Choose the candidates of a trace from its end: the best one at the end of each chain of links."""
    scores, backs = chains.scores, chains.backs
    for i in range(end - 1, first - 1, -1):
        if linked[i]:
            chosen[i] = backs[i + 1, chosen[i + 1]]
        elif counts[i] > 0:
            best = 0
            for c in range(1, counts[i]):
                if scores[i, c] > scores[i, best]:
                    best = c
            chosen[i] = best


@kernel
def ways(
    chosen: Ints,
    linked: Bools,
    near: Candidates,
    roads: Roads,
    back_m: float,
) -> tuple[Longs, Ints]:
    """Find the edges of the path from each point to the next.

    Returns
    -------
    Compressed sparse rows of edges, from that of the point to that of the next, both included: one entry
    for a path on one edge, none if no path leads on.
    """
    edges, fractions = near.edges, near.fractions
    tails, heads, lengths_m = roads.tails, roads.heads, roads.lengths_m
    scratch = _scratch(roads.offsets.shape[0] - 1, heads.shape[0])
    way_offsets = np.zeros(chosen.shape[0] + 1, np.int64)
    way_edges = np.empty(1024, np.int32)
    used = 0
    for i in range(chosen.shape[0]):
        if linked[i]:
            begin, goal = edges[i, chosen[i]], edges[i + 1, chosen[i + 1]]
            begin_fraction, end_fraction = fractions[i, chosen[i]], fractions[i + 1, chosen[i + 1]]
            first = used
            is_same = begin == goal and (
                _same_edge_m(lengths_m[begin], begin_fraction, end_fraction, back_m) >= 0.0
            )
            way_edges, used = _append(way_edges, used, goal)
            if not is_same:
                scratch.wanted[tails[goal]] = i
                _search(roads, heads[begin], np.inf, i, i, 1, scratch)
                node = tails[goal]
                while node != heads[begin]:
                    way_edges, used = _append(way_edges, used, scratch.via_edges[node])
                    node = tails[scratch.via_edges[node]]
                way_edges, used = _append(way_edges, used, begin)
                way_edges[first:used] = way_edges[first:used][::-1].copy()
        way_offsets[i + 1] = used
    return way_offsets, way_edges[:used].copy()


@array_leaf
def _append(values: Ints, used: int, value: int) -> tuple[Ints, int]:
    """Append a value to an array that grows if needed; return the array and its used length."""
    if used == values.shape[0]:
        grown = np.empty(2 * used, np.int32)
        grown[:used] = values
        values = grown
    values[used] = value
    return values, used + 1
