"""The matcher: finds the paths of traces over roads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from simulator.network.graph import Graph
from simulator.network.traffic import DEVICE_CLASSES
from simulator.parameters.traces import TraceOptions
from simulator.traces.matching.grid_kernels import candidates
from simulator.traces.matching.layout import Grid, Points, Roads, Tolerances
from simulator.traces.matching.road_grid import grid_over
from simulator.traces.matching.routes import Routes
from simulator.traces.matching.viterbi_kernels import likeliest, ways

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

_BACK_SIGMAS = 2.0
"""The maximum distance backwards on an edge, in standard deviations."""


@dataclass(frozen=True)
class Matcher:
    """Finds the roads of traces.

    Parameters
    ----------
    roads
        The roads that are open to the vehicles.
    grid
        A grid over these.
    options
        The errors of positions, and the detours of paths.
    """

    roads: Roads
    grid: Grid
    options: TraceOptions

    @classmethod
    def of(cls, graph: Graph, options: TraceOptions) -> Self:
        """Build a matcher for the roads that are open to `options.mode`.

        Raises
        ------
        ValueError
            If none is.
        """
        names = [one.name for one in DEVICE_CLASSES]
        roads = Roads.of(graph, names.index(options.mode))
        return cls(roads, grid_over(roads, 2.0 * options.match_radius_m), options)

    def routes(self, offsets: Longs, ts_ms: Longs, xs_m: Floats, ys_m: Floats) -> Routes:
        """Return the paths of traces; each depends only on its own trace.

        Parameters
        ----------
        offsets
            Points of trace n are offsets[n]..offsets[n + 1], by time.
        ts_ms, xs_m, ys_m
            Their times and positions.
        """
        roads, options = self.roads, self.options
        near = candidates(xs_m, ys_m, options.match_radius_m, roads, self.grid)
        tolerances = Tolerances(
            options.match_sigma_m,
            options.match_beta_m,
            options.speed_mps_max,
            _BACK_SIGMAS * options.match_sigma_m,
        )
        chosen, linked = likeliest(offsets, Points(ts_ms, xs_m, ys_m), near, roads, tolerances)
        way_offsets, way_edges = ways(chosen, linked, near, roads, tolerances.back_m)
        rows, places = np.arange(len(chosen)), np.maximum(chosen, 0)
        is_matched = chosen >= 0
        return Routes(
            roads,
            np.where(is_matched, near.edges[rows, places], -1).astype(np.int32),
            np.where(is_matched, near.fractions[rows, places], 0.0),
            way_offsets,
            way_edges,
        )
