"""Reading road networks that come as two lists, one of nodes and one of edges.

Two layouts. `.cnode` and `.cedge`: fields between blanks, without names, edges that lead both ways.
`nodes.csv` and `edges.csv`: columns by name, edges that lead one way unless `oneway` says no. Both
lists are read as they stand; edges from a node to itself are left out, since no fastest path has one.
Cost: about 5 microseconds a line.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from safe_region.frame import LATITUDE_MAX_DEG
from simulator.maps.edge_lanes import lane_of
from simulator.maps.errors import MapError
from simulator.maps.files import RoadFiles
from simulator.maps.network import Network, joined
from simulator.maps.osm import Progress
from simulator.maps.placement import M_PER_DEG, Columns, Placement
from simulator.maps.roads import HIGHWAYS, Lane
from simulator.maps.rows import Header, Row, csv_rows, plain_rows
from simulator.network.traffic import RoadClass

STAGE_NODES = "map: nodes"
STAGE_EDGES = "map: edges"

LENGTH_MAX = 1e9
"""Of one edge, in whatever unit."""

SPEED_MIN, SPEED_MAX = 0.1, 1_000.0
"""The same."""

MEDIAN_BEND_RANGE = (0.5, 2.0)
"""Where the lengths of a file lie outside of this, as multiples of the straight line and in the
median, they have another unit than they should."""

BEND_MAX = 1e6
"""Between nodes that are almost at the same position, the ratio of lengths says nothing."""

_ID_NAMES = ("osmid", "node_id", "id")
_SOURCE_NAMES = ("u", "source", "from")
_TARGET_NAMES = ("v", "target", "to")
_LENGTH_NAMES = ("length_m", "length")
_SPEED_UNITS_MPS = {
    "speed_kmh": 1.0 / 3.6,
    "speed_kph": 1.0 / 3.6,
    "speed_mph": 0.44704,
    "speed_mps": 1.0,
}
_BOTH_WAYS = {"": False, "yes": False, "true": False, "1": False, "no": True, "false": True, "0": True}

_CLASSES = list(RoadClass)
_REPORT_EVERY = 20_000

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


class _Nodes(NamedTuple):
    """The list of nodes: coordinates as they are in the file, and where each id stands."""

    ids: Longs
    xs: Floats
    ys: Floats
    numbers: dict[int, int]


class _Edge(NamedTuple):
    """A row of the list of edges; a length of NaN is not told."""

    source: int
    target: int
    length: float
    lane: Lane
    is_both_ways: bool


class _Edges(NamedTuple):
    """The list of edges, a column each."""

    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    lengths: Floats
    classes: npt.NDArray[np.int8]
    speeds_mps: Floats
    are_both_ways: npt.NDArray[np.bool_]


def read_road_files(
    files: RoadFiles, unit_m: float | None, progress: Progress
) -> tuple[Network, Placement]:
    """Read a road network, and how its coordinates were placed on the Earth.

    Parameters
    ----------
    files
        Where its nodes and edges are.
    unit_m
        How many metres a unit of the coordinates has; None if they are degrees.
    progress
        Called as progress(stage, done, total); a total of 0 is not known yet.

    Raises
    ------
    MapError
        If a file cannot be read, or a line is not what it should be.
    """
    nodes = _read_nodes(files, Placement(unit_m), progress)
    placement = Placement(None)
    if unit_m is not None:
        placement = Placement.about(files.nodes, nodes.xs, nodes.ys, unit_m)
    edges = _read_edges(files, nodes, progress)
    lons, lats = placement.degrees(nodes.xs, nodes.ys)
    # Lengths of a .cedge file have the unit of its coordinates, which may be degrees.
    in_file = _distances(nodes.xs, nodes.ys, edges)
    straight = _straight_m(lons, lats, edges) if files.is_csv else in_file
    bends = _bends(files.edges, edges.lengths, straight)
    back = edges.are_both_ways
    network = Network(
        nodes.ids,
        lons,
        lats,
        np.concatenate([edges.sources, edges.targets[back]]),
        np.concatenate([edges.targets, edges.sources[back]]),
        np.concatenate([edges.classes, edges.classes[back]]),
        np.concatenate([edges.speeds_mps, edges.speeds_mps[back]]),
        np.concatenate([bends, bends[back]]),
    )
    return joined(network), placement


def _read_nodes(files: RoadFiles, placement: Placement, progress: Progress) -> _Nodes:
    progress(STAGE_NODES, 0, 0)
    if files.is_csv:
        header, rows = csv_rows(files.nodes)
        name = header.require(_ID_NAMES, "the id of a node")
        x_names, y_names = placement.columns()
        columns = Columns(
            header.require(x_names, "its position"), header.require(y_names, "its position")
        )
    else:
        name, columns = "id", Columns("x", "y")
        rows = plain_rows(files.nodes, ("id", "x", "y"))
    numbers: dict[int, int] = {}
    xs, ys = array("d"), array("d")
    for row in rows:
        node = row.integer(name)
        if node in numbers:
            raise row.error(name, "must differ from the ids of all lines before")
        x, y = placement.read(row, columns, LATITUDE_MAX_DEG)
        numbers[node] = len(xs)
        xs.append(x)
        ys.append(y)
        if len(xs) % _REPORT_EVERY == 0:
            progress(STAGE_NODES, len(xs), 0)
    if not numbers:
        raise MapError(f"{files.nodes} has no nodes")
    progress(STAGE_NODES, len(xs), len(xs))
    return _Nodes(np.array(list(numbers), np.int64), np.array(xs), np.array(ys), numbers)


def _read_edges(files: RoadFiles, nodes: _Nodes, progress: Progress) -> _Edges:
    progress(STAGE_EDGES, 0, 0)
    rows = _csv_edges(files.edges, nodes) if files.is_csv else _plain_edges(files.edges, nodes)
    found = []
    for count, edge in enumerate(rows, 1):
        if edge.source != edge.target:
            found.append(edge)
        if count % _REPORT_EVERY == 0:
            progress(STAGE_EDGES, count, 0)
    if not found:
        raise MapError(f"{files.edges} has no roads: no edge between two nodes")
    progress(STAGE_EDGES, len(found), len(found))
    return _Edges(
        np.array([one.source for one in found], np.int32),
        np.array([one.target for one in found], np.int32),
        np.array([one.length for one in found], np.float64),
        np.array([_CLASSES.index(one.lane.road_class) for one in found], np.int8),
        np.array([one.lane.speed_mps for one in found], np.float64),
        np.array([one.is_both_ways for one in found], np.bool_),
    )


def _plain_edges(path: Path, nodes: _Nodes) -> Iterator[_Edge]:
    lane = lane_of("", math.nan)
    for row in plain_rows(path, ("id", "source", "target", "length")):
        row.integer("id")
        source, target = _node(row, "source", nodes), _node(row, "target", nodes)
        yield _Edge(source, target, row.number("length", 0.0, LENGTH_MAX), lane, is_both_ways=True)


def _csv_edges(path: Path, nodes: _Nodes) -> Iterator[_Edge]:
    header, rows = csv_rows(path)
    source = header.require(_SOURCE_NAMES, "the node where an edge begins")
    target = header.require(_TARGET_NAMES, "the node where it ends")
    length = header.find(_LENGTH_NAMES)
    for row in rows:
        yield _Edge(
            _node(row, source, nodes),
            _node(row, target, nodes),
            row.optional(length, 0.0, LENGTH_MAX),
            _csv_lane(row, header),
            _is_both_ways(row),
        )


def _node(row: Row, name: str, nodes: _Nodes) -> int:
    found = nodes.numbers.get(row.integer(name))
    if found is None:
        raise row.error(name, "must be the id of a node")
    return found


def _is_both_ways(row: Row) -> bool:
    value = row.fields.get("oneway", "").lower()
    if value not in _BOTH_WAYS:
        raise row.error("oneway", "must be yes, no, true, false, 1, 0 or empty")
    return _BOTH_WAYS[value]


def _csv_lane(row: Row, header: Header) -> Lane:
    highway = row.fields.get("highway", "")
    if highway and highway not in HIGHWAYS:
        raise row.error("highway", f"must be empty or one of {', '.join(HIGHWAYS)}")
    name = header.find(tuple(_SPEED_UNITS_MPS))
    speed = row.optional(name, SPEED_MIN, SPEED_MAX)
    return lane_of(highway, speed * _SPEED_UNITS_MPS[name] if name else math.nan)


def _distances(xs: Floats, ys: Floats, edges: _Edges) -> Floats:
    dx, dy = xs[edges.targets] - xs[edges.sources], ys[edges.targets] - ys[edges.sources]
    found: Floats = np.sqrt(dx * dx + dy * dy)
    return found


def _straight_m(lons: Floats, lats: Floats, edges: _Edges) -> Floats:
    """Return the length of the straight line of each edge, on the plane that touches it there."""
    middles = np.radians((lats[edges.sources] + lats[edges.targets]) / 2.0)
    dx_m = (lons[edges.targets] - lons[edges.sources]) * np.cos(middles) * M_PER_DEG
    dy_m = (lats[edges.targets] - lats[edges.sources]) * M_PER_DEG
    found: Floats = np.sqrt(dx_m * dx_m + dy_m * dy_m)
    return found


def _bends(path: Path, lengths: Floats, straight: Floats) -> Floats:
    """Return how many times as long as the straight line edges are: 1 where no length is told.

    Raises
    ------
    MapError
        If the lengths as a whole do not fit the positions of the nodes.
    """
    bends = np.ones(len(lengths))
    is_told = ~np.isnan(lengths) & (straight > 0.0)
    if not is_told.any():
        return bends
    with np.errstate(over="ignore"):
        ratios = np.minimum(lengths[is_told] / straight[is_told], BEND_MAX)
    median = float(np.median(ratios))
    low, high = MEDIAN_BEND_RANGE
    if not low <= median <= high:
        raise MapError(
            f"{path}: its lengths are {median:.3g} times the distance of the nodes (median), must be "
            f"within {low:g}..{high:g}: one of the two has another unit"
        )
    bends[is_told] = np.maximum(1.0, ratios)
    return bends
