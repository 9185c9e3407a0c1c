"""Define the arrays of the matcher: roads, a grid over them, points of traces and their candidates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.network.graph import Graph

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


class Points(NamedTuple):
    """Points of traces: times and positions."""

    ts_ms: Longs
    xs_m: Floats
    ys_m: Floats


class Candidates(NamedTuple):
    """The places on roads near each point, the nearest first.

    Parameters
    ----------
    counts
        Their number, a row for each point.
    edges, fractions, distances_m
        Shape (points, the maximum number): the edges, the fractions along these, and the distances from
        the point.
    """

    counts: Longs
    edges: Ints
    fractions: Floats
    distances_m: Floats


class Tolerances(NamedTuple):
    """The errors that a match allows for.

    Parameters
    ----------
    sigma_m, beta_m
        The error of positions, and the excess of paths over the straight line.
    speed_mps_max
        Paths are not longer than this allows.
    back_m
        The maximum distance backwards on an edge.
    """

    sigma_m: float
    beta_m: float
    speed_mps_max: float
    back_m: float
