"""Starts and destinations of devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from simulator.chance import uniforms
from simulator.network.graph import Graph
from simulator.network.traffic import DEVICE_CLASSES

TABLE = "trajectories"

PLACE_SHARE = 0.8
"""Fraction of the destinations that are places; the others are anywhere on a street (homes)."""

POPULARITY = 2.0
"""Exponent that favours places of small id: half of the visits go to a quarter of the places."""

NODES_PER_CANDIDATE = 20_000
"""About the nodes of a city. On larger maps more candidates are considered, so that trips, and the
searches for their paths, do not grow with the map.
"""

_REGION_POINTS = 16_384
"""Enough points to cover the area evenly."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Destinations:
    """Possible destinations of devices.

    Parameters
    ----------
    place_nodes
        The node nearest to each place, by popularity; one array per device class.
    open_nodes
        All nodes of the streets that are open to each device class.
    region_nodes
        The nodes nearest to points that are spread evenly over the area; one array per device class.
    """

    place_nodes: list[Ints]
    open_nodes: list[Ints]
    region_nodes: list[Ints]

    @classmethod
    def of(cls, graph: Graph, places: pa.Table) -> Destinations:
        """Find the nodes of the places. O((places + nodes) log nodes)."""
        ids = places["place_id"].to_numpy()
        order = np.argsort(ids, kind="stable")
        lons = places["lon"].to_numpy()[order]
        lats = places["lat"].to_numpy()[order]
        open_nodes = [graph.open_nodes(one) for one in range(len(DEVICE_CLASSES))]
        place_nodes = [_nearest(graph, nodes, lons, lats) for nodes in open_nodes]
        numbers = np.arange(_REGION_POINTS)
        xs, ys = (uniforms(0, TABLE, column, numbers) for column in ("region_lon", "region_lat"))
        lons = graph.lons.min() + xs * np.ptp(graph.lons)
        lats = graph.lats.min() + ys * np.ptp(graph.lats)
        region_nodes = [_nearest(graph, nodes, lons, lats) for nodes in open_nodes]
        return cls(place_nodes, open_nodes, region_nodes)


def _nearest(graph: Graph, nodes: Ints, lons: Floats, lats: Floats) -> Ints:
    lon_scale = np.cos(np.radians(graph.lats.mean()))
    corners = shapely.points(np.column_stack([graph.lons[nodes] * lon_scale, graph.lats[nodes]]))
    spots = shapely.points(np.column_stack([lons * lon_scale, lats]))
    places, found = shapely.STRtree(np.asarray(corners)).query_nearest(spots)
    # Of several that are equally near, the first.
    order = np.lexsort((found, places))
    _, first = np.unique(places[order], return_index=True)
    nearest: Ints = nodes[found[order[first]]]
    return nearest


def home_nodes(destinations: Destinations, device_numbers: Longs, classes: Ints, seed: int) -> Ints:
    """Return the start of each device: anywhere on the streets open to its class."""
    draws = uniforms(seed, TABLE, "home", device_numbers)
    counts = np.array([len(nodes) for nodes in destinations.open_nodes])
    index = (draws * counts[classes]).astype(np.int64)
    found = np.empty(len(device_numbers), np.int32)
    for one, nodes in enumerate(destinations.open_nodes):
        of_class = classes == one
        found[of_class] = nodes[index[of_class]]
    return found


def next_nodes(
    graph: Graph,
    destinations: Destinations,
    device_numbers: Longs,
    classes: Ints,
    at_nodes: Ints,
    trips: Longs,
    seed: int,
) -> Ints:
    """Choose a destination for each device: of some candidates, the nearest other node."""
    found = np.empty(len(device_numbers), np.int32)
    trips_of = np.broadcast_to(trips, len(device_numbers))[:, np.newaxis]
    scale = max(1, round(graph.node_count / NODES_PER_CANDIDATE))
    for one, device_class in enumerate(DEVICE_CLASSES):
        of_class = np.flatnonzero(classes == one)
        numbers = device_numbers[of_class, np.newaxis]
        candidates = np.arange(scale * device_class.candidates)
        draws = uniforms(seed, TABLE, "destination", numbers, trips_of[of_class], candidates)
        kinds = uniforms(seed, TABLE, "kind", numbers, trips_of[of_class], candidates)
        places = destinations.place_nodes[one]
        nodes = destinations.open_nodes[one]
        to_place = places[(draws**POPULARITY * len(places)).astype(np.int64)]
        to_node = nodes[(draws * len(nodes)).astype(np.int64)]
        options = np.where(kinds < PLACE_SHARE, to_place, to_node)
        here = at_nodes[of_class, np.newaxis]
        dx_m = graph.xs_m[options] - graph.xs_m[here]
        dy_m = graph.ys_m[options] - graph.ys_m[here]
        distances = np.where(options == here, np.inf, dx_m * dx_m + dy_m * dy_m)
        nearest = np.argmin(distances, axis=1)
        found[of_class] = options[np.arange(len(of_class)), nearest]
    return found
