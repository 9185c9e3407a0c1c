"""The network: directed edges between nodes, the largest strongly connected part, as the roads table.

Edges of the roads table are straight, so a way of an OpenStreetMap file is cut at its bends; road files
give only the length of an edge with bends. Cost: O(edges log edges) in numpy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from safe_region.earth.frame import Frame
from simulator import schemas
from simulator.maps.osm import Records
from simulator.maps.roads import Lane
from simulator.network.graph import largest_component
from simulator.network.traffic import RoadClass

LENGTH_M_MIN = 0.1
"""Nodes of a way may have the same position, but an edge must take some time."""

_CLASSES = list(RoadClass)

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


class Network(NamedTuple):
    """Directed edges between nodes, sorted by (source, target) and unique.

    Parameters
    ----------
    node_ids, lons, lats
        The nodes, by their ids in the file.
    sources, targets
        int32: ends of the edges, as positions in the above.
    classes
        int8: class of each edge, as a position in `RoadClass`.
    speeds_mps
        The speed limit of each edge.
    bends
        The ratio of the length of each edge to the straight line between its ends, at least 1.
    """

    node_ids: Longs
    lons: Floats
    lats: Floats
    sources: Ints
    targets: Ints
    classes: npt.NDArray[np.int8]
    speeds_mps: Floats
    bends: Floats

    def restricted(self, is_kept: Bools) -> Network:
        """Return the subnetwork of some of the nodes."""
        number = (np.cumsum(is_kept) - 1).astype(np.int32)
        edges = is_kept[self.sources] & is_kept[self.targets]
        return Network(
            self.node_ids[is_kept],
            self.lons[is_kept],
            self.lats[is_kept],
            number[self.sources[edges]],
            number[self.targets[edges]],
            self.classes[edges],
            self.speeds_mps[edges],
            self.bends[edges],
        )

    def lengths_m(self, frame: Frame) -> Floats:
        """Return the length of each edge on the plane."""
        dx_m = (self.lons[self.targets] - self.lons[self.sources]) * frame.x_m_per_deg
        dy_m = (self.lats[self.targets] - self.lats[self.sources]) * frame.y_m_per_deg
        found: Floats = np.maximum(np.sqrt(dx_m * dx_m + dy_m * dy_m) * self.bends, LENGTH_M_MIN)
        return found

    def is_open_to(self, road_classes: frozenset[RoadClass]) -> Bools:
        """Return the mask of the edges of these classes."""
        return np.isin(self.classes, [_CLASSES.index(one) for one in road_classes])


def network_of(records: Records) -> Network:
    """Join roads into a network; if a node of a road has no position, the road has a gap there."""
    refs = np.concatenate([np.empty(0, np.int64), *records.road_refs])
    owners = np.repeat(np.arange(len(records.road_refs)), [len(one) for one in records.road_refs])
    nodes, is_known = records.known(refs)
    along = np.flatnonzero(
        (owners[:-1] == owners[1:]) & is_known[:-1] & is_known[1:] & (refs[:-1] != refs[1:])
    )
    begins, ends, ways = nodes[along], nodes[along + 1], owners[along]
    there, there_mps = _columns([one.forward for one in records.road_lanes])
    back, back_mps = _columns([one.backward for one in records.road_lanes])
    forwards, backwards = there[ways] >= 0, back[ways] >= 0
    sources = np.concatenate([begins[forwards], ends[backwards]])
    targets = np.concatenate([ends[forwards], begins[backwards]])
    classes = np.concatenate([there[ways][forwards], back[ways][backwards]])
    speeds_mps = np.concatenate([there_mps[ways][forwards], back_mps[ways][backwards]])
    return joined(
        Network(
            records.node_ids,
            records.lons,
            records.lats,
            sources.astype(np.int32),
            targets.astype(np.int32),
            classes,
            speeds_mps,
            np.ones(len(sources)),
        )
    )


def joined(network: Network) -> Network:
    """Sort edges; keep one edge for each pair of nodes, and the nodes that are used.

    Where roads coincide, the most important one is kept, then the one that takes less time.
    """
    sources, targets, classes = network.sources, network.targets, network.classes
    order = np.lexsort((network.bends / network.speeds_mps, classes, targets, sources))
    pairs = np.column_stack([sources[order], targets[order]])
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    chosen = order[is_first]
    whole = network._replace(
        sources=sources[chosen],
        targets=targets[chosen],
        classes=classes[chosen],
        speeds_mps=network.speeds_mps[chosen],
        bends=network.bends[chosen],
    )
    used = np.zeros(len(whole.node_ids), np.bool_)
    used[whole.sources] = used[whole.targets] = True
    return whole.restricted(used)


def _columns(ways: list[Lane | None]) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return class, -1 for none, and speed of one direction of each way."""
    classes = [-1 if one is None else _CLASSES.index(one.road_class) for one in ways]
    speeds_mps = [0.0 if one is None else one.speed_mps for one in ways]
    return np.array(classes, np.int8), np.array(speeds_mps, np.float64)


def connected(network: Network) -> Network:
    """Return the largest part in which every node reaches every node, by car, bicycle or on foot."""
    count = len(network.node_ids)
    return network.restricted(largest_component(network.sources, network.targets, count))


def drivable_m(network: Network, road_classes: frozenset[RoadClass], frame: Frame) -> float:
    """Return the length of the edges in the largest part that is connected by some classes."""
    is_open = network.is_open_to(road_classes)
    if not is_open.any():
        return 0.0
    sources, targets = network.sources[is_open], network.targets[is_open]
    inside = largest_component(sources, targets, len(network.node_ids))
    lengths_m = network.lengths_m(frame)[is_open]
    return float(lengths_m[inside[sources] & inside[targets]].sum())


def roads_table(network: Network, frame: Frame) -> pa.Table:
    """Return the roads table; source and target are the ids of nodes in the file."""
    names = np.array([one.value for one in _CLASSES], dtype=np.object_)
    columns = {
        "edge_id": np.arange(len(network.sources)),
        "source": network.node_ids[network.sources],
        "target": network.node_ids[network.targets],
        "road_class": names[network.classes],
        "speed_mps": network.speeds_mps,
        "length_m": network.lengths_m(frame),
        "source_lon": network.lons[network.sources],
        "source_lat": network.lats[network.sources],
        "target_lon": network.lons[network.targets],
        "target_lat": network.lats[network.targets],
    }
    return pa.table(columns, schema=schemas.arrow_schema(schemas.ROADS))
