"""Paths between the points of traces, and positions along them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.traces.matching.layout import Points, Roads
from simulator.traces.matching.route_kernels import along_ways

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class Whereabouts(NamedTuple):
    """Positions at ticks, one entry each; an edge id of -1 is none."""

    xs_m: Floats
    ys_m: Floats
    headings_deg: Floats
    speeds_mps: Floats
    edge_ids: Longs


@dataclass(frozen=True)
class Routes:
    """The path from each point to the next.

    Parameters
    ----------
    roads
        The roads of the paths; None if there are none.
    edges, fractions
        The edge of each point, -1 for none, and the fraction along it.
    offsets, ways
        Compressed sparse rows: the edges of each path; none if it is a straight line.
    """

    roads: Roads | None
    edges: Ints
    fractions: Floats
    offsets: Longs
    ways: Ints

    def along(
        self, points: Longs, fractions: Floats, ts_ms: Longs, xs_m: Floats, ys_m: Floats
    ) -> Whereabouts:
        """Return positions between points. Each path is travelled at a constant speed.

        Parameters
        ----------
        points, fractions
            The point before, which is not the last of its trace, and the fraction of the time that has
            passed.
        ts_ms, xs_m, ys_m
            The points.
        """
        roads = self.roads or _NO_ROADS
        xs_m, ys_m = self._moved(roads, xs_m, ys_m)
        found_xs_m, found_ys_m, dxs_m, dys_m, speeds_mps, edges = along_ways(
            points,
            fractions,
            Points(ts_ms, xs_m, ys_m),
            self.fractions,
            self.offsets,
            self.ways,
            roads,
        )
        headings_deg = np.degrees(np.arctan2(dxs_m, dys_m)) % 360.0
        edge_ids = np.full(len(points), -1, np.int64)
        is_on_road = edges >= 0
        edge_ids[is_on_road] = roads.edge_ids[edges[is_on_road]]
        return Whereabouts(found_xs_m, found_ys_m, headings_deg, speeds_mps, edge_ids)

    def _moved(self, roads: Roads, xs_m: Floats, ys_m: Floats) -> tuple[Floats, Floats]:
        """Return the points, with matched points moved to their roads, so that lines meet paths."""
        if not len(roads.tails):
            return xs_m, ys_m
        is_on_road = self.edges >= 0
        tails, heads = roads.tails[self.edges], roads.heads[self.edges]

        def on_road(nodes_m: Floats, values_m: Floats) -> Floats:
            moved = nodes_m[tails] + self.fractions * (nodes_m[heads] - nodes_m[tails])
            return np.where(is_on_road, moved, values_m)

        return on_road(roads.xs_m, xs_m), on_road(roads.ys_m, ys_m)


def no_routes(count: int) -> Routes:
    """Return the paths between points that are not on roads."""
    return Routes(
        None,
        np.full(count, -1, np.int32),
        np.zeros(count),
        np.zeros(count + 1, np.int64),
        np.empty(0, np.int32),
    )


_NO_ROADS = Roads(
    np.zeros(1, np.int64),
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    np.empty(0),
    np.empty(0),
    np.empty(0),
    np.empty(0, np.int64),
)
