"""A grid over roads, which finds the roads near a point."""

from __future__ import annotations

import math

import numpy as np

from simulator.traces.matching.grid_kernels import cell_counts, cell_edges
from simulator.traces.matching.layout import Grid, Roads

CELLS_MAX = 4_000_000
"""The maximum number of cells; on large maps cells are larger, as their offsets would take more memory
than the roads.
"""


def grid_over(roads: Roads, cell_m: float) -> Grid:
    """Return a grid over roads. O(edges + cells), and cells that long edges cross.

    Parameters
    ----------
    roads
        The edges.
    cell_m
        The minimum side of cells: about the radius of searches.
    """
    x0_m, y0_m = float(roads.xs_m.min()), float(roads.ys_m.min())
    width_m, height_m = float(np.ptp(roads.xs_m)), float(np.ptp(roads.ys_m))
    cell_m = max(cell_m, math.sqrt(width_m * height_m / CELLS_MAX), max(width_m, height_m) / CELLS_MAX)
    columns, rows = int(width_m / cell_m) + 1, int(height_m / cell_m) + 1
    ends = (
        roads.xs_m[roads.tails],
        roads.ys_m[roads.tails],
        roads.xs_m[roads.heads],
        roads.ys_m[roads.heads],
    )
    counts = cell_counts(*ends, x0_m, y0_m, cell_m, columns, rows)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    edges = cell_edges(*ends, x0_m, y0_m, cell_m, columns, rows, offsets)
    return Grid(x0_m, y0_m, cell_m, columns, rows, offsets, edges)
