"""Kernel that computes positions on the path from a point to the next. O(edges of the paths)."""

from __future__ import annotations

import math

import numpy as np

from safe_region.jit import kernel
from simulator.traces.matching.layout import Floats, Ints, Longs, Points, Roads


@kernel
def along_ways(
    starts: Longs,
    passed: Floats,
    points: Points,
    fractions: Floats,
    offsets: Longs,
    ways: Ints,
    roads: Roads,
) -> tuple[Floats, Floats, Floats, Floats, Floats, Ints]:
    """Return positions at ticks.

    Parameters
    ----------
    starts, passed
        The point before each tick, and the fraction of the time to the next that has passed.
    points
        The points.
    fractions
        The fraction of each point along its edge.
    offsets, ways
        The edges from each point to the next; none for a straight line.
    roads
        The roads.

    Returns
    -------
    x and y, the direction as a vector of any length, the speed, and the edge, -1 for none.
    """
    ts_ms, xs_m, ys_m = points.ts_ms, points.xs_m, points.ys_m
    tails, heads, lengths_m = roads.tails, roads.heads, roads.lengths_m
    count = starts.shape[0]
    found_xs_m, found_ys_m = np.empty(count), np.empty(count)
    dxs_m, dys_m = np.empty(count), np.empty(count)
    speeds_mps = np.empty(count)
    edges = np.full(count, -1, np.int32)
    for i in range(count):
        p = starts[i]
        seconds = (ts_ms[p + 1] - ts_ms[p]) / 1000.0
        first, end = offsets[p], offsets[p + 1]
        if first == end:
            dxs_m[i] = xs_m[p + 1] - xs_m[p]
            dys_m[i] = ys_m[p + 1] - ys_m[p]
            found_xs_m[i] = xs_m[p] + passed[i] * dxs_m[i]
            found_ys_m[i] = ys_m[p] + passed[i] * dys_m[i]
            speeds_mps[i] = math.sqrt(dxs_m[i] * dxs_m[i] + dys_m[i] * dys_m[i]) / seconds
            continue
        k = first
        begin, last = fractions[p], fractions[p + 1]
        if end - first == 1:
            place = begin + passed[i] * (last - begin)
            way_m = abs(last - begin) * lengths_m[ways[k]]
        else:
            way_m = (1.0 - begin) * lengths_m[ways[first]] + last * lengths_m[ways[end - 1]]
            for j in range(first + 1, end - 1):
                way_m += lengths_m[ways[j]]
            gone_m = passed[i] * way_m + begin * lengths_m[ways[first]]
            while k < end - 1 and gone_m > lengths_m[ways[k]]:
                gone_m -= lengths_m[ways[k]]
                k += 1
            place = min(1.0, gone_m / lengths_m[ways[k]])
        edge = ways[k]
        a, b = tails[edge], heads[edge]
        sign = -1.0 if end - first == 1 and last < begin else 1.0
        dx_m = roads.xs_m[b] - roads.xs_m[a]
        dy_m = roads.ys_m[b] - roads.ys_m[a]
        found_xs_m[i] = roads.xs_m[a] + place * dx_m
        found_ys_m[i] = roads.ys_m[a] + place * dy_m
        dxs_m[i] = sign * dx_m
        dys_m[i] = sign * dy_m
        speeds_mps[i] = way_m / seconds
        edges[i] = edge
    return found_xs_m, found_ys_m, dxs_m, dys_m, speeds_mps, edges
