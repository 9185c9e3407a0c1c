"""Kernels of the grid over roads: the cells that an edge touches, and the edges near a point.

An edge is listed in each cell whose circumscribed circle it meets: in a few more cells than it touches,
and never in fewer. Candidates: O(edges listed in the cells within the radius).
"""

from __future__ import annotations

import math

import numpy as np

from safe_region.jit import kernel, leaf
from simulator.traces.matching.layout import Candidates, Floats, Grid, Ints, Longs, Roads

CANDIDATES_MAX = 12
"""The maximum number of places on roads that are considered for a point, the nearest. Roads are cut at
their bends, and usually lead both ways: this is some three streets.
"""

_HALF_DIAGONAL = math.sqrt(0.5) * (1.0 + 1e-9)


@leaf
def nearest_fraction(ax_m: float, ay_m: float, bx_m: float, by_m: float, x_m: float, y_m: float) -> float:
    """Return the fraction of a line at its place nearest to a point, in [0, 1]."""
    dx_m = bx_m - ax_m
    dy_m = by_m - ay_m
    square = dx_m * dx_m + dy_m * dy_m
    if square <= 0.0:
        return 0.0
    return min(1.0, max(0.0, ((x_m - ax_m) * dx_m + (y_m - ay_m) * dy_m) / square))


@leaf
def distance_m(
    ax_m: float, ay_m: float, bx_m: float, by_m: float, fraction: float, x_m: float, y_m: float
) -> float:
    """Return the distance of a point from a place on a line."""
    dx_m = ax_m + fraction * (bx_m - ax_m) - x_m
    dy_m = ay_m + fraction * (by_m - ay_m) - y_m
    return math.sqrt(dx_m * dx_m + dy_m * dy_m)


@leaf
def _position(value_m: float, begin_m: float, cell_m: float, count: int) -> int:
    return min(count - 1, max(0, math.floor((value_m - begin_m) / cell_m)))


@leaf
def _meets(
    ax_m: float, ay_m: float, bx_m: float, by_m: float, x_m: float, y_m: float, cell_m: float
) -> bool:
    """Whether a line meets the circle about a cell with the given centre."""
    fraction = nearest_fraction(ax_m, ay_m, bx_m, by_m, x_m, y_m)
    return distance_m(ax_m, ay_m, bx_m, by_m, fraction, x_m, y_m) <= _HALF_DIAGONAL * cell_m


@kernel
def cell_counts(
    axs_m: Floats,
    ays_m: Floats,
    bxs_m: Floats,
    bys_m: Floats,
    x0_m: float,
    y0_m: float,
    cell_m: float,
    columns: int,
    rows: int,
) -> Longs:
    """Return the number of edges, given by their ends, that are listed in each cell."""
    counts = np.zeros(columns * rows, np.int64)
    for e in range(axs_m.shape[0]):
        first = _position(min(axs_m[e], bxs_m[e]), x0_m, cell_m, columns)
        last = _position(max(axs_m[e], bxs_m[e]), x0_m, cell_m, columns)
        low = _position(min(ays_m[e], bys_m[e]), y0_m, cell_m, rows)
        high = _position(max(ays_m[e], bys_m[e]), y0_m, cell_m, rows)
        for row in range(low, high + 1):
            for column in range(first, last + 1):
                x_m = x0_m + (column + 0.5) * cell_m
                y_m = y0_m + (row + 0.5) * cell_m
                if _meets(axs_m[e], ays_m[e], bxs_m[e], bys_m[e], x_m, y_m, cell_m):
                    counts[row * columns + column] += 1
    return counts


@kernel
def cell_edges(
    axs_m: Floats,
    ays_m: Floats,
    bxs_m: Floats,
    bys_m: Floats,
    x0_m: float,
    y0_m: float,
    cell_m: float,
    columns: int,
    rows: int,
    offsets: Longs,
) -> Ints:
    """Return the edges of each cell, in their order."""
    places = offsets[:-1].copy()
    edges = np.empty(offsets[-1], np.int32)
    for e in range(axs_m.shape[0]):
        first = _position(min(axs_m[e], bxs_m[e]), x0_m, cell_m, columns)
        last = _position(max(axs_m[e], bxs_m[e]), x0_m, cell_m, columns)
        low = _position(min(ays_m[e], bys_m[e]), y0_m, cell_m, rows)
        high = _position(max(ays_m[e], bys_m[e]), y0_m, cell_m, rows)
        for row in range(low, high + 1):
            for column in range(first, last + 1):
                x_m = x0_m + (column + 0.5) * cell_m
                y_m = y0_m + (row + 0.5) * cell_m
                if _meets(axs_m[e], ays_m[e], bxs_m[e], bys_m[e], x_m, y_m, cell_m):
                    cell = row * columns + column
                    edges[places[cell]] = e
                    places[cell] += 1
    return edges


@leaf
def _insert(
    edges: Ints,
    fractions: Floats,
    distances_m: Floats,
    count: int,
    edge: int,
    fraction: float,
    found_m: float,
) -> int:
    """Insert a candidate by (distance, edge) unless it is listed or too far; return their number."""
    for k in range(count):
        if edges[k] == edge:
            return count
    k = count
    if count == edges.shape[0]:
        k = count - 1
        if found_m > distances_m[k] or (found_m == distances_m[k] and edge > edges[k]):
            return count
    else:
        count += 1
    while k > 0 and (
        found_m < distances_m[k - 1] or (found_m == distances_m[k - 1] and edge < edges[k - 1])
    ):
        edges[k] = edges[k - 1]
        fractions[k] = fractions[k - 1]
        distances_m[k] = distances_m[k - 1]
        k -= 1
    edges[k] = edge
    fractions[k] = fraction
    distances_m[k] = found_m
    return count


@kernel
def candidates(xs_m: Floats, ys_m: Floats, radius_m: float, roads: Roads, grid: Grid) -> Candidates:
    """Find the places on roads that are within a radius of points, at most `CANDIDATES_MAX` each."""
    count = xs_m.shape[0]
    counts = np.zeros(count, np.int64)
    found = np.full((count, CANDIDATES_MAX), -1, np.int32)
    fractions = np.zeros((count, CANDIDATES_MAX))
    distances_m = np.zeros((count, CANDIDATES_MAX))
    for i in range(count):
        first = _position(xs_m[i] - radius_m, grid.x0_m, grid.cell_m, grid.columns)
        last = _position(xs_m[i] + radius_m, grid.x0_m, grid.cell_m, grid.columns)
        low = _position(ys_m[i] - radius_m, grid.y0_m, grid.cell_m, grid.rows)
        high = _position(ys_m[i] + radius_m, grid.y0_m, grid.cell_m, grid.rows)
        for row in range(low, high + 1):
            for column in range(first, last + 1):
                cell = row * grid.columns + column
                for k in range(grid.offsets[cell], grid.offsets[cell + 1]):
                    e = grid.edges[k]
                    a = roads.tails[e]
                    b = roads.heads[e]
                    ax_m, ay_m = roads.xs_m[a], roads.ys_m[a]
                    bx_m, by_m = roads.xs_m[b], roads.ys_m[b]
                    fraction = nearest_fraction(ax_m, ay_m, bx_m, by_m, xs_m[i], ys_m[i])
                    found_m = distance_m(ax_m, ay_m, bx_m, by_m, fraction, xs_m[i], ys_m[i])
                    if found_m <= radius_m:
                        counts[i] = _insert(
                            found[i], fractions[i], distances_m[i], counts[i], e, fraction, found_m
                        )
    return Candidates(counts, found, fractions, distances_m)
