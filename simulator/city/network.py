"""Converts streets to a network: cut at crossings, thinned and connected, as the roads table.

Cutting uses snap rounding on a grid of one metre (shapely's `grid_size`), so that ends that should
meet do. Motorways cross other streets on bridges: they are cut only where they meet primary and
secondary roads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from safe_region.earth.frame import Frame
from simulator import schemas
from simulator.chance import uniforms
from simulator.city.street import Street
from simulator.network.graph import largest_component
from simulator.network.traffic import SPEEDS_MPS, RoadClass

GRID_M = 1.0
_STUB_M = 70.0
"""Shorter dead ends are left out."""

_RANKS = {road_class: rank for rank, road_class in enumerate(RoadClass)}
_INTERCHANGES = (RoadClass.PRIMARY, RoadClass.SECONDARY)

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Lines = npt.NDArray[np.object_]


def roads_table(streets: Sequence[Street], seed: int, frame: Frame) -> pa.Table:
    """Join streets into a strongly connected network.

    Parameters
    ----------
    streets
        All streets; the plane's origin is the centre of the frame.
    seed
        For the thinning.
    frame
        The projection, for positions in degrees.
    """
    lines, owners = _cut_at_crossings(streets)
    kept = _thinned(lines, owners, streets, seed)
    lines, owners = lines[kept], owners[kept]
    kept = _without_stubs(lines, owners, streets)
    lines, owners = lines[kept], owners[kept]
    sources, targets, edge_owners, points = _directed(lines, owners, streets)
    inside = largest_component(sources.astype(np.int32), targets.astype(np.int32), len(points))
    number = np.cumsum(inside) - 1
    both = inside[sources] & inside[targets]
    return _table(
        number[sources[both]],
        number[targets[both]],
        edge_owners[both],
        points[inside],
        streets,
        frame,
    )


def _cut_at_crossings(streets: Sequence[Street]) -> tuple[Lines, Longs]:
    """Return the pieces between crossings, and the street of each."""
    over = [s.line for s in streets if s.road_class is RoadClass.MOTORWAY]
    meeting = [s.line for s in streets if s.road_class in _INTERCHANGES]
    other = [s.line for s in streets if _RANKS[s.road_class] > _RANKS[RoadClass.SECONDARY]]
    upper = _pieces([*over, *meeting])
    upper_owners = _owners(upper, streets)
    is_motorway = np.array(
        [streets[i].road_class is RoadClass.MOTORWAY for i in upper_owners], dtype=np.bool_
    )
    # The lower level is cut from pieces, which bring along their crossings with motorways.
    lower = _pieces([*upper[~is_motorway], *other])
    lines = np.concatenate([upper[is_motorway], lower])
    ground = [s if s.road_class is not RoadClass.MOTORWAY else None for s in streets]
    owners = np.concatenate([upper_owners[is_motorway], _owners(lower, ground)])
    return lines, owners


def _pieces(lines: Sequence[shapely.LineString]) -> Lines:
    found = shapely.get_parts(shapely.unary_union(lines, grid_size=GRID_M))
    # In a defined order, so that randomness by piece does not depend on the geometry library.
    middles = shapely.get_coordinates(shapely.line_interpolate_point(found, 0.5, normalized=True))
    ordered: Lines = found[np.lexsort((middles[:, 1], middles[:, 0]))]
    return ordered


def _owners(pieces: Lines, streets: Sequence[Street | None]) -> Longs:
    """Return the street that each piece was cut from: the most important one at its middle."""
    known = [i for i, street in enumerate(streets) if street is not None]
    known.sort(key=lambda i: (_RANKS[streets[i].road_class], i))  # type: ignore[union-attr]
    tree = shapely.STRtree([streets[i].line for i in known])  # type: ignore[union-attr]
    middles = shapely.line_interpolate_point(pieces, 0.5, normalized=True)
    piece, candidate = tree.query(middles, predicate="dwithin", distance=2.0 * GRID_M)
    best = np.full(len(pieces), len(known))
    np.minimum.at(best, piece, candidate)
    lost = np.flatnonzero(best == len(known))
    if len(lost):
        best[lost] = tree.nearest(middles[lost])
    found: Longs = np.asarray(known)[best]
    return found


def _nodes(lines: Lines) -> tuple[Longs, Longs, int]:
    """Return numbers for the ends of lines, equal where they meet, and the count of nodes."""
    first = shapely.get_coordinates(shapely.get_point(lines, 0))
    last = shapely.get_coordinates(shapely.get_point(lines, -1))
    _, numbers = np.unique(np.vstack([first, last]), axis=0, return_inverse=True)
    begins, ends = np.split(numbers.ravel(), 2)
    return begins, ends, int(numbers.max()) + 1


def _thinned(lines: Lines, owners: Longs, streets: Sequence[Street], seed: int) -> Bools:
    """Drop pieces at random, but keep a random spanning forest, so that the network stays connected."""
    shares = np.array([streets[i].kept_share for i in owners])
    draws = uniforms(seed, "roads", "thinning", np.arange(len(lines)))
    begins, ends, node_count = _nodes(lines)
    parents = list(range(node_count))

    def root(node: int) -> int:
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    kept = draws < shares
    # Kept pieces come first, so that only missing connections are added.
    for i in np.lexsort((draws, ~kept)):
        left, right = root(int(begins[i])), root(int(ends[i]))
        if left != right:
            parents[left] = right
            kept[i] = True
    return kept


def _without_stubs(lines: Lines, owners: Longs, streets: Sequence[Street]) -> Bools:
    """Leave out short dead ends, repeatedly: removing one may make another."""
    is_local = np.array([streets[i].road_class is RoadClass.RESIDENTIAL for i in owners])
    is_short = is_local & (shapely.length(lines) < _STUB_M)
    begins, ends, node_count = _nodes(lines)
    kept = np.ones(len(lines), np.bool_)
    while True:
        degrees = np.bincount(begins[kept], minlength=node_count)
        degrees += np.bincount(ends[kept], minlength=node_count)
        is_dead_end = (degrees[begins] == 1) | (degrees[ends] == 1)
        drop = kept & is_short & is_dead_end
        if not drop.any():
            return kept
        kept &= ~drop


def _directed(
    lines: Lines, owners: Longs, streets: Sequence[Street]
) -> tuple[Longs, Longs, Longs, Floats]:
    """Return straight directed edges (source, target, street) and the points that they join."""
    coordinates, index = shapely.get_coordinates(lines, return_index=True)
    points, numbers = np.unique(np.round(coordinates / GRID_M), axis=0, return_inverse=True)
    numbers = numbers.ravel()
    along = np.flatnonzero(index[:-1] == index[1:])
    sources, targets = numbers[along], numbers[along + 1]
    edge_owners = owners[index[along]]
    forwards = _is_forwards(points[sources] * GRID_M, points[targets] * GRID_M, edge_owners, streets)
    one_way = np.array([street.is_one_way for street in streets])[edge_owners]
    with_line, against = ~one_way | forwards, ~one_way | ~forwards
    joined = np.concatenate
    all_sources = joined([sources[with_line], targets[against]])
    all_targets = joined([targets[with_line], sources[against]])
    all_owners = joined([edge_owners[with_line], edge_owners[against]])
    # Two streets may share an edge after snapping: the more important one has it.
    ranks = np.array([_RANKS[street.road_class] for street in streets])[all_owners]
    order = np.lexsort((ranks, all_targets, all_sources))
    pairs = np.column_stack([all_sources[order], all_targets[order]])
    _, unique = np.unique(pairs, axis=0, return_index=True)
    chosen = order[unique]
    chosen = chosen[all_sources[chosen] != all_targets[chosen]]
    return all_sources[chosen], all_targets[chosen], all_owners[chosen], points * GRID_M


def _is_forwards(begins: Floats, ends: Floats, owners: Longs, streets: Sequence[Street]) -> Bools:
    """Return the mask of edges that have the direction of their streets."""
    courses = np.array([street.line for street in streets], dtype=np.object_)[owners]
    at_begin = shapely.line_locate_point(courses, shapely.points(begins))
    at_end = shapely.line_locate_point(courses, shapely.points(ends))
    forwards: Bools = at_end >= at_begin
    return forwards


def _table(
    sources: Longs,
    targets: Longs,
    owners: Longs,
    points: Floats,
    streets: Sequence[Street],
    frame: Frame,
) -> pa.Table:
    lons = frame.lon0_deg + points[:, 0] / frame.x_m_per_deg
    lats = frame.lat0_deg + points[:, 1] / frame.y_m_per_deg
    offsets = points[targets] - points[sources]
    classes = [streets[i].road_class for i in owners]
    columns = {
        "edge_id": np.arange(len(sources)),
        "source": sources,
        "target": targets,
        "road_class": [one.value for one in classes],
        "speed_mps": [SPEEDS_MPS[one] for one in classes],
        "length_m": np.sqrt((offsets * offsets).sum(axis=1)),
        "source_lon": lons[sources],
        "source_lat": lats[sources],
        "target_lon": lons[targets],
        "target_lat": lats[targets],
    }
    return pa.table(columns, schema=schemas.arrow_schema(schemas.ROADS))
