"""Roads as arrays, and a grid over them that finds the roads near a point."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.network.graph import Graph
from simulator.traces.matching.grid_kernels import cell_counts, cell_edges

CELLS_MAX = 4_000_000
"""The maximum number of cells; on large maps cells are larger, as their offsets would take more memory
than the roads.
"""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class Roads(NamedTuple):
    """The edges that are open to a class of devices, as compressed sparse rows.

    Parameters
    ----------
    offsets
        int64, nodes + 1: the edges of node n are offsets[n]..offsets[n + 1].
    tails, heads
        int32: the nodes that each edge leads from and to.
    lengths_m
        The length of each edge.
    xs_m, ys_m
        The nodes on the plane.
    edge_ids
        Ids in the roads table.
    """

    offsets: Longs
    tails: Ints
    heads: Ints
    lengths_m: Floats
    xs_m: Floats
    ys_m: Floats
    edge_ids: Longs

    @classmethod
    def of(cls, graph: Graph, device_class: int) -> Roads:
        """Return the edges of a graph that are open to a class of devices.

        Raises
        ------
        ValueError
            If there is none.
        """
        is_open = graph.speeds_mps[device_class] > 0.0
        if not is_open.any():
            raise ValueError("no road is open")
        tails = graph.sources[is_open]
        counts = np.bincount(tails, minlength=graph.node_count)
        return cls(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            tails,
            graph.targets[is_open],
            graph.lengths_m[is_open],
            graph.xs_m,
            graph.ys_m,
            graph.edge_ids[is_open],
        )


class Grid(NamedTuple):
    """Square cells over the plane, row by row, each with the edges that may touch it.

    Parameters
    ----------
    x0_m, y0_m
        The corner of the first cell.
    cell_m
        The side of a cell.
    columns, rows
        The number of columns and rows.
    offsets, edges
        The edges of cell c are edges[offsets[c]..offsets[c + 1]].
    """

    x0_m: float
    y0_m: float
    cell_m: float
    columns: int
    rows: int
    offsets: Longs
    edges: Ints

    @classmethod
    def of(cls, roads: Roads, cell_m: float) -> Grid:
        """Build the grid. O(edges + cells), and cells that long edges cross.

        Parameters
        ----------
        roads
            The edges.
        cell_m
            The minimum side of cells: about the radius of searches.
        """
        x0_m, y0_m = float(roads.xs_m.min()), float(roads.ys_m.min())
        width_m, height_m = float(np.ptp(roads.xs_m)), float(np.ptp(roads.ys_m))
        cell_m = max(
            cell_m, math.sqrt(width_m * height_m / CELLS_MAX), max(width_m, height_m) / CELLS_MAX
        )
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
        return cls(x0_m, y0_m, cell_m, columns, rows, offsets, edges)
