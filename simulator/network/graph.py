"""The street graph: compressed sparse rows over the largest strongly connected part of the roads.

Cost: building is linear in the roads (plus a sort); a path is O((nodes + edges) log edges) at worst.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from safe_region.frame import Frame
from simulator.network.graph_kernels import shortest_paths, strong_components
from simulator.network.traffic import travel_speeds_mps

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


def largest_component(sources: Ints, targets: Ints, node_count: int) -> npt.NDArray[np.bool_]:
    """Return which nodes lie in the largest strongly connected component. O(nodes + edges log edges).

    Parameters
    ----------
    sources, targets
        Ends of the directed edges, as nodes from 0.
    node_count
        How many nodes there are.
    """
    order = np.argsort(sources, kind="stable")
    labels = strong_components(_offsets(sources, node_count), targets[order])
    found: npt.NDArray[np.bool_] = labels == np.argmax(np.bincount(labels))
    return found


@dataclass(frozen=True)
class Graph:
    """Streets as compressed sparse rows. The edges of a node lie together.

    Parameters
    ----------
    offsets
        int64, nodes + 1: the edges of node n are offsets[n]..offsets[n + 1].
    sources, targets
        int32, one entry an edge: the nodes it leads from and to.
    lengths_m
        Length of each edge.
    speeds_mps
        Speed of each device class (rows) on each edge; 0 where it may not go.
    lons, lats
        Each node's position.
    xs_m, ys_m
        The same on the plane.
    """

    offsets: Longs
    sources: Ints
    targets: Ints
    lengths_m: Floats
    speeds_mps: Floats
    lons: Floats
    lats: Floats
    xs_m: Floats
    ys_m: Floats

    @classmethod
    def of(cls, roads: pa.Table, frame: Frame) -> Graph:
        """Build the graph of a roads table; what is not strongly connected to it is left out.

        Raises
        ------
        ValueError
            If no two nodes are connected in both directions.
        """
        column = {name: roads[name].to_numpy() for name in roads.column_names}
        ends = np.concatenate([column["source"], column["target"]])
        _, first, nodes = np.unique(ends, return_index=True, return_inverse=True)
        lons = np.concatenate([column["source_lon"], column["target_lon"]])[first]
        lats = np.concatenate([column["source_lat"], column["target_lat"]])[first]
        sources, targets = np.split(nodes.astype(np.int32), 2)
        is_kept = largest_component(sources, targets, len(first))
        if np.count_nonzero(is_kept) <= 1:
            raise ValueError("the roads connect no two nodes in both directions")
        number = (np.cumsum(is_kept) - 1).astype(np.int32)
        edges = np.flatnonzero(is_kept[sources] & is_kept[targets])
        edges = edges[np.lexsort((number[targets[edges]], number[sources[edges]]))]
        lons, lats = lons[is_kept], lats[is_kept]
        return cls(
            offsets=_offsets(number[sources[edges]], len(lons)),
            sources=number[sources[edges]],
            targets=number[targets[edges]],
            lengths_m=column["length_m"][edges],
            speeds_mps=travel_speeds_mps(
                column["road_class"][edges].astype(np.str_), column["speed_mps"][edges]
            ),
            lons=lons,
            lats=lats,
            xs_m=(lons - frame.lon0_deg) * frame.x_m_per_deg,
            ys_m=(lats - frame.lat0_deg) * frame.y_m_per_deg,
        )

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self.lons)

    def open_nodes(self, device_class: int) -> Ints:
        """Return the nodes between which a device class can always find a way."""
        is_open = self.speeds_mps[device_class] > 0.0
        found = largest_component(self.sources[is_open], self.targets[is_open], self.node_count)
        return np.flatnonzero(found).astype(np.int32)

    def shortest_paths(self, sources: Ints, targets: Ints, classes: Ints) -> tuple[Longs, Ints]:
        """Find the fastest path of each (source, target, device class), as rows of edges.

        Empty where source and target coincide or no way leads from one to the other.
        """
        return shortest_paths(
            self.offsets,
            self.targets,
            self.speeds_mps,
            self.lengths_m,
            self.xs_m,
            self.ys_m,
            sources,
            targets,
            classes,
        )


def _offsets(sources: Ints, node_count: int) -> Longs:
    counts = np.bincount(sources, minlength=node_count)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
