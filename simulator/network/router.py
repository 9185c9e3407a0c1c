"""Fastest paths of all device classes over a graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.network.graph import Graph
from simulator.network.hierarchy import Hierarchy, Metric

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Router:
    """The hierarchy of a graph, with the times of each device class.

    Parameters
    ----------
    hierarchy
        Of the graph.
    metrics
        One a device class.
    """

    hierarchy: Hierarchy
    metrics: tuple[Metric, ...]

    @classmethod
    def of(cls, graph: Graph) -> Router:
        """Build the router of a graph on which everybody is alone."""
        hierarchy = Hierarchy.of(graph)
        return cls(hierarchy, tuple(hierarchy.customised(one) for one in graph.times_s))

    def paths(self, sources: Ints, targets: Ints, classes: Ints) -> tuple[Longs, Ints]:
        """Find the fastest path of each (source, target, device class), as rows of edges.

        Empty where source and target coincide or no way leads from one to the other.
        """
        counts = np.zeros(len(sources), np.int64)
        found = []
        for number, metric in enumerate(self.metrics):
            of_class = np.flatnonzero(classes == number)
            offsets, edges = self.hierarchy.paths(metric, sources[of_class], targets[of_class])
            counts[of_class] = np.diff(offsets)
            found.append((of_class, offsets, edges))
        all_offsets = np.concatenate([[0], np.cumsum(counts)])
        all_edges = np.empty(all_offsets[-1], np.int32)
        for of_class, offsets, edges in found:
            starts = np.repeat(all_offsets[of_class] - offsets[:-1], np.diff(offsets))
            all_edges[starts + np.arange(len(edges))] = edges
        return all_offsets, all_edges
