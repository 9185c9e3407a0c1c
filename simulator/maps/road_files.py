"""Reads road networks that consist of two lists, one of nodes and one of edges.

`files.Layout` names the layouts, `node_lists` and `edge_lists` read them. This module makes a network of
both: it converts coordinates to degrees, and computes the ratio of the length of each edge to the
straight line. Edges from a node to itself are left out, since no fastest path has one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from simulator.maps.edge_lists import EdgeList, read_edges
from simulator.maps.errors import MapError
from simulator.maps.files import Layout, RoadFiles
from simulator.maps.network import Network, joined
from simulator.maps.node_lists import NodeList, read_nodes
from simulator.maps.osm import Progress
from simulator.maps.placement import M_PER_DEG, Placement

MEDIAN_BEND_RANGE = (0.5, 2.0)
"""If the median ratio of a file's lengths to straight lines is outside of this range, the lengths have
another unit than expected.
"""

BEND_MAX = 1e6
"""Between nodes at almost the same position, the ratio of lengths has no meaning."""

DIMACS_UNITS_M = (1.0, 0.1, 0.01, 0.001)
"""Weights are integers in one of these units: the one that fits the positions best."""

Floats = npt.NDArray[np.float64]


def read_road_files(
    files: RoadFiles, unit_m: float | None, progress: Progress
) -> tuple[Network, Placement]:
    """Read a road network, and the placement of its coordinates on the Earth.

    Parameters
    ----------
    files
        The files of its nodes and edges.
    unit_m
        Metres a unit of the coordinates; None if they are degrees.
    progress
        Called as progress(stage, done, total); a total of 0 is not known yet.

    Raises
    ------
    MapError
        If a file cannot be read, or a line is invalid.
    """
    nodes = read_nodes(files, Placement(unit_m), progress)
    placement = Placement(None)
    if unit_m is not None:
        placement = Placement.about(files.nodes, nodes.xs, nodes.ys, unit_m)
    edges = read_edges(files, nodes, progress)
    lons, lats = placement.degrees(nodes.xs, nodes.ys)
    bends = _bends(files.edges, *_lengths(files, unit_m, nodes, edges, lons, lats))
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


def _lengths(
    files: RoadFiles, unit_m: float | None, nodes: NodeList, edges: EdgeList, lons: Floats, lats: Floats
) -> tuple[Floats, Floats]:
    """Return the lengths of edges in the file, and those of the straight lines, in the same unit."""
    if files.layout is Layout.COLUMNS:
        return edges.lengths, _straight_m(lons, lats, edges)
    if files.layout is Layout.DIMACS and unit_m is None:
        straight_m = _straight_m(lons, lats, edges)
        return edges.lengths * _dimacs_unit_m(edges.lengths, straight_m), straight_m
    # The unit of the coordinates, degrees included.
    return edges.lengths, _distances(nodes.xs, nodes.ys, edges)


def _dimacs_unit_m(lengths: Floats, straight_m: Floats) -> float:
    """Return the unit in which the median ratio of lengths to straight lines is nearest to 1."""
    is_apart = (straight_m > 0.0) & (lengths > 0.0)
    if not is_apart.any():
        return DIMACS_UNITS_M[0]
    median = float(np.median(lengths[is_apart] / straight_m[is_apart]))
    return min(DIMACS_UNITS_M, key=lambda unit_m: abs(np.log(median * unit_m)))


def _distances(xs: Floats, ys: Floats, edges: EdgeList) -> Floats:
    dx, dy = xs[edges.targets] - xs[edges.sources], ys[edges.targets] - ys[edges.sources]
    found: Floats = np.sqrt(dx * dx + dy * dy)
    return found


def _straight_m(lons: Floats, lats: Floats, edges: EdgeList) -> Floats:
    """Return the length of the straight line of each edge, on the tangent plane at its middle."""
    middles = np.radians((lats[edges.sources] + lats[edges.targets]) / 2.0)
    dx_m = (lons[edges.targets] - lons[edges.sources]) * np.cos(middles) * M_PER_DEG
    dy_m = (lats[edges.targets] - lats[edges.sources]) * M_PER_DEG
    found: Floats = np.sqrt(dx_m * dx_m + dy_m * dy_m)
    return found


def _bends(path: Path, lengths: Floats, straight: Floats) -> Floats:
    """Return the ratio of edges' lengths to straight lines; 1 where a length is missing.

    Raises
    ------
    MapError
        If the lengths as a whole do not fit the positions of the nodes.
    """
    bends = np.ones(len(lengths))
    is_given = ~np.isnan(lengths) & (straight > 0.0)
    if not is_given.any():
        return bends
    with np.errstate(over="ignore"):
        ratios = np.minimum(lengths[is_given] / straight[is_given], BEND_MAX)
    median = float(np.median(ratios))
    low, high = MEDIAN_BEND_RANGE
    if not low <= median <= high:
        raise MapError(
            f"{path}: its lengths are {median:.3g} times the distance of the nodes (median), must be "
            f"within {low:g}..{high:g}: lengths and coordinates have different units"
        )
    bends[is_given] = np.maximum(1.0, ratios)
    return bends
