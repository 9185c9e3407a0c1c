"""What devices move on: the graph of a terrain, its router, and where there is to go."""

from __future__ import annotations

from typing import NamedTuple

from safe_region.frame import Frame
from simulator.movement.destinations import Destinations
from simulator.network.graph import Graph
from simulator.network.router import Router
from simulator.terrain import Terrain


class Streets(NamedTuple):
    """All that is the same for every device: broadcast once.

    Parameters
    ----------
    graph
        The streets.
    router
        Fastest paths on them.
    destinations
        Where devices go.
    """

    graph: Graph
    router: Router
    destinations: Destinations

    @classmethod
    def of(cls, terrain: Terrain) -> Streets:
        """Build what devices move on. O(n log n); some seconds for a large city."""
        graph = Graph.of(terrain.roads, Frame.of(terrain.area), terrain.restrictions)
        return cls(graph, Router.of(graph), Destinations.of(graph, terrain.places))
