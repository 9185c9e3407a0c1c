"""Reads the list of edges of a road network, in any layout. About 5 microseconds a line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.maps import brinkhoff, dimacs
from simulator.maps.edge_lanes import lane_of
from simulator.maps.errors import MapError
from simulator.maps.files import Layout, RoadFiles
from simulator.maps.node_lists import REPORT_EVERY, NodeList
from simulator.maps.osm import Progress
from simulator.maps.roads import HIGHWAYS, Lane
from simulator.maps.rows import Header, Row, csv_rows, plain_rows
from simulator.network.traffic import RoadClass

STAGE = "map: edges"

LENGTH_MAX = 1e9
"""The maximum length of an edge, in any unit."""

SPEED_MIN, SPEED_MAX = 0.1, 1_000.0
"""Limits of a speed, in any unit."""

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

Floats = npt.NDArray[np.float64]


class _Edge(NamedTuple):
    """A row of the list; a missing length is NaN."""

    source: int
    target: int
    length: float
    lane: Lane
    is_both_ways: bool


class EdgeList(NamedTuple):
    """The list of edges as columns; edges from a node to itself are left out.

    Parameters
    ----------
    sources, targets
        int32: their ends, as positions in the list of nodes.
    lengths
        In the unit of the file; NaN if missing.
    classes
        int8: positions in `RoadClass`.
    speeds_mps
        Their speed limits.
    are_both_ways
        Whether they also lead back.
    """

    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    lengths: Floats
    classes: npt.NDArray[np.int8]
    speeds_mps: Floats
    are_both_ways: npt.NDArray[np.bool_]


def read_edges(files: RoadFiles, nodes: NodeList, progress: Progress) -> EdgeList:
    """Read the edges of a network.

    Parameters
    ----------
    files
        The files of the network.
    nodes
        The nodes of the network.
    progress
        Called as progress(stage, done, total); a total of 0 is not known yet.

    Raises
    ------
    MapError
        If the file cannot be read, a line is invalid, or there is none.
    """
    progress(STAGE, 0, 0)
    found = []
    for count, edge in enumerate(_edges(files, nodes), 1):
        if edge.source != edge.target:
            found.append(edge)
        if count % REPORT_EVERY == 0:
            progress(STAGE, count, 0)
    if not found:
        raise MapError(f"{files.edges} has no roads: no edge between two nodes")
    progress(STAGE, len(found), len(found))
    return EdgeList(
        np.array([one.source for one in found], np.int32),
        np.array([one.target for one in found], np.int32),
        np.array([one.length for one in found], np.float64),
        np.array([_CLASSES.index(one.lane.road_class) for one in found], np.int8),
        np.array([one.lane.speed_mps for one in found], np.float64),
        np.array([one.is_both_ways for one in found], np.bool_),
    )


def _edges(files: RoadFiles, nodes: NodeList) -> Iterator[_Edge]:
    if files.layout is Layout.NUMBERS:
        return _plain_edges(files, nodes)
    if files.layout is Layout.BRINKHOFF:
        return _brinkhoff_edges(files, nodes)
    if files.layout is Layout.DIMACS:
        return _dimacs_arcs(files, nodes)
    return _csv_edges(files, nodes)


def _plain_edges(files: RoadFiles, nodes: NodeList) -> Iterator[_Edge]:
    lane = lane_of("", math.nan)
    for row in plain_rows(files.edges, ("id", "source", "target", "length")):
        row.integer("id")
        source, target = _node(row, "source", nodes), _node(row, "target", nodes)
        yield _Edge(source, target, row.number("length", 0.0, LENGTH_MAX), lane, is_both_ways=True)


def _brinkhoff_edges(files: RoadFiles, nodes: NodeList) -> Iterator[_Edge]:
    for row in brinkhoff.edge_rows(files.edges):
        row.integer("id")
        source, target = _node(row, "source", nodes), _node(row, "target", nodes)
        edge_class = row.integer("class")
        if not 0 <= edge_class <= brinkhoff.CLASS_MAX:
            raise row.error("class", f"must be within 0..{brinkhoff.CLASS_MAX}")
        length = row.number("length", 0.0, LENGTH_MAX) if "length" in row.fields else math.nan
        yield _Edge(source, target, length, brinkhoff.LANES[edge_class], is_both_ways=True)


def _dimacs_arcs(files: RoadFiles, nodes: NodeList) -> Iterator[_Edge]:
    lane = lane_of("", math.nan)
    for row in dimacs.arc_rows(files.edges):
        source, target = _node(row, "source", nodes), _node(row, "target", nodes)
        yield _Edge(source, target, row.number("weight", 0.0, LENGTH_MAX), lane, is_both_ways=False)


def _csv_edges(files: RoadFiles, nodes: NodeList) -> Iterator[_Edge]:
    header, rows = csv_rows(files.edges)
    source = header.require(_SOURCE_NAMES, "the first node of an edge")
    target = header.require(_TARGET_NAMES, "the last node of an edge")
    length = header.find(_LENGTH_NAMES)
    for row in rows:
        yield _Edge(
            _node(row, source, nodes),
            _node(row, target, nodes),
            row.optional(length, 0.0, LENGTH_MAX),
            _csv_lane(row, header),
            _is_both_ways(row),
        )


def _node(row: Row, name: str, nodes: NodeList) -> int:
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
