"""Converts place records to the places table: locates them, selects them, and ranks their popularity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from safe_region.earth.frame import Frame
from simulator import schemas
from simulator.chance import uniforms
from simulator.maps.areas import point_inside
from simulator.maps.network import Network
from simulator.maps.osm import PlaceRecord, Records

TABLE = "places"

ROAD_M_MAX = 500.0
"""Places farther than this from every kept road are left out."""

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

_NO_REFS: Longs = np.empty(0, np.int64)


class Points(NamedTuple):
    """Places and their positions."""

    places: list[PlaceRecord]
    lons: Floats
    lats: Floats


def points_of(records: Records) -> Points:
    """Locate places: a node at its position, a closed way at the mean of its corners, others inside."""
    places, lons, lats = [], [], []
    for place in records.places:
        nodes, is_known = records.known(place.refs)
        nodes = nodes[is_known]
        if len(nodes):
            places.append(place)
            lons.append(float(records.lons[nodes].mean()))
            lats.append(float(records.lats[nodes].mean()))
    for outline in records.outlines:
        inside = point_inside(
            *(_pieces(records, ways) for ways in (outline.outer_ways, outline.inner_ways))
        )
        if inside is not None:
            # Numbers of nodes and closed ways are positive.
            places.append(PlaceRecord(-1 - outline.number, outline.text, _NO_REFS))
            lons.append(inside[0])
            lats.append(inside[1])
    return Points(places, np.array(lons, np.float64), np.array(lats, np.float64))


def _pieces(records: Records, ways: tuple[int, ...]) -> list[Floats]:
    """Return the corners of ways whose nodes are all known."""
    found = []
    for way in ways:
        nodes, is_known = records.known(records.outline_refs.get(way, _NO_REFS))
        if len(nodes) and is_known.all():
            found.append(np.column_stack([records.lons[nodes], records.lats[nodes]]))
    return found


def near_roads(points: Points, network: Network, frame: Frame) -> Points:
    """Return the places that lie within `ROAD_M_MAX` of an edge."""
    if not points.places:
        return points
    scale = np.array([frame.x_m_per_deg, frame.y_m_per_deg])
    nodes = np.column_stack([network.lons, network.lats]) * scale
    edges = shapely.linestrings(np.stack([nodes[network.sources], nodes[network.targets]], axis=1))
    spots = shapely.points(np.column_stack([points.lons, points.lats]) * scale)
    found, _ = shapely.STRtree(np.asarray(edges)).query_nearest(
        spots, max_distance=ROAD_M_MAX, all_matches=False
    )
    kept = np.unique(found)
    return Points([points.places[i] for i in kept], points.lons[kept], points.lats[kept])


def places_table(points: Points, seed: int) -> pa.Table:
    """Return the places table, most popular first.

    Named places come before the others, those with more tags before those with fewer; between
    equals the seed decides.
    """
    numbers = np.array([place.number for place in points.places], np.int64)
    is_unnamed = np.array([not place.text.name for place in points.places])
    tag_counts = np.array([place.text.tag_count for place in points.places])
    draws = uniforms(seed, TABLE, "popularity", numbers)
    order = np.lexsort((numbers, draws, -tag_counts, is_unnamed))
    texts = [points.places[i].text for i in order]
    columns = {
        "place_id": np.arange(len(order)),
        "lon": points.lons[order],
        "lat": points.lats[order],
        "name": [text.name for text in texts],
        "category": [text.category for text in texts],
        "keywords": [list(text.keywords) for text in texts],
    }
    return pa.table(columns, schema=schemas.arrow_schema(schemas.PLACES))
