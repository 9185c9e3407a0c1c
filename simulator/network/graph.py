"""The street graph: compressed sparse rows over the largest strongly connected part of the roads.

Cost: building is linear in the roads (plus a sort). `router` finds paths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from safe_region.earth.frame import Frame
from simulator.network.graph_kernels import strong_components
from simulator.network.traffic import travel_speeds_mps, vehicles_max
from simulator.network.turns import split

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


def largest_component(sources: Ints, targets: Ints, node_count: int) -> npt.NDArray[np.bool_]:
    """Return the mask of nodes in the largest strongly connected component. O(nodes + edges log edges).

    Parameters
    ----------
    sources, targets
        Ends of the directed edges, as nodes from 0.
    node_count
        The number of nodes.
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
    edge_ids
        Ids in the roads table. Edges that start at copies of a node (`turns`) have the id of the
        original.
    lengths_m
        Length of each edge.
    speeds_mps
        Speed of each device class (rows) on each edge; 0 where it may not go.
    lons, lats
        The position of each node.
    xs_m, ys_m
        The same on the plane.
    headings_deg
        The direction of each edge, clockwise from the north.
    vehicles_max
        The number of cars from which they slow each other down on an edge.
    is_restricted
        For each node, whether turns are restricted there: devices do not stop at such a node.
    """

    offsets: Longs
    sources: Ints
    targets: Ints
    edge_ids: Longs
    lengths_m: Floats
    speeds_mps: Floats
    lons: Floats
    lats: Floats
    xs_m: Floats
    ys_m: Floats
    headings_deg: Floats
    vehicles_max: Floats
    is_restricted: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, roads: pa.Table, frame: Frame, restrictions: pa.Table | None = None) -> Graph:
        """Build the graph of a roads table; only the largest strongly connected part is kept.

        Parameters
        ----------
        roads
            The table.
        frame
            The plane.
        restrictions
            Pairs of edges that must not follow one another, the table of this name; None for no
            restrictions.

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
        comes, goes = _rows_of(restrictions, column["edge_id"])
        parts = split(sources, targets, len(first), comes, goes)
        lons, lats = lons[parts.originals], lats[parts.originals]
        is_kept = largest_component(parts.sources, parts.targets, len(lons))
        if np.count_nonzero(is_kept) <= 1:
            raise ValueError("the roads connect no two nodes in both directions")
        number = (np.cumsum(is_kept) - 1).astype(np.int32)
        edges = np.flatnonzero(is_kept[parts.sources] & is_kept[parts.targets])
        edges = edges[np.lexsort((number[parts.targets[edges]], number[parts.sources[edges]]))]
        lons, lats, rows = lons[is_kept], lats[is_kept], parts.rows[edges]
        xs_m = (lons - frame.lon0_deg) * frame.x_m_per_deg
        ys_m = (lats - frame.lat0_deg) * frame.y_m_per_deg
        starts, ends = number[parts.sources[edges]], number[parts.targets[edges]]
        turns = np.arctan2(xs_m[ends] - xs_m[starts], ys_m[ends] - ys_m[starts])
        road_classes = column["road_class"][rows].astype(np.str_)
        return cls(
            offsets=_offsets(starts, len(lons)),
            sources=starts,
            targets=ends,
            edge_ids=column["edge_id"][rows],
            lengths_m=column["length_m"][rows],
            speeds_mps=travel_speeds_mps(road_classes, column["speed_mps"][rows]),
            lons=lons,
            lats=lats,
            xs_m=xs_m,
            ys_m=ys_m,
            headings_deg=np.degrees(turns) % 360.0,
            vehicles_max=vehicles_max(road_classes, column["length_m"][rows]),
            is_restricted=parts.is_restricted[is_kept],
        )

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return len(self.lons)

    @property
    def times_s(self) -> Floats:
        """The time of each device class (rows) on each edge; infinite where it may not go."""
        with np.errstate(divide="ignore"):
            found: Floats = np.where(self.speeds_mps > 0.0, self.lengths_m / self.speeds_mps, np.inf)
        return found

    def open_nodes(self, device_class: int) -> Ints:
        """Return the nodes where a device class may stop and between which it always has a path."""
        is_open = self.speeds_mps[device_class] > 0.0
        found = largest_component(self.sources[is_open], self.targets[is_open], self.node_count)
        return np.flatnonzero(found & ~self.is_restricted).astype(np.int32)


def _rows_of(restrictions: pa.Table | None, edge_ids: Longs) -> tuple[Longs, Longs]:
    """Return the rows of the edges of restrictions; restrictions with unknown edges are left out."""
    if restrictions is None or not restrictions.num_rows:
        nothing = np.empty(0, np.int64)
        return nothing, nothing
    order = np.argsort(edge_ids)
    named = [restrictions[name].to_numpy() for name in ("edge_id_from", "edge_id_to")]
    at = [np.minimum(np.searchsorted(edge_ids[order], one), len(order) - 1) for one in named]
    known = [edge_ids[order][place] == one for place, one in zip(at, named, strict=True)]
    comes, goes = (order[place[known[0] & known[1]]] for place in at)
    return comes, goes


def _offsets(sources: Ints, node_count: int) -> Longs:
    counts = np.bincount(sources, minlength=node_count)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
