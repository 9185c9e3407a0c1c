"""Where a simulation takes place, whether it was generated or read from a map."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from safe_region.frame import Area

Ring = list[tuple[float, float]]


class Terrain(NamedTuple):
    """Streets and places within a service area.

    Parameters
    ----------
    name
        Its name, for people.
    area
        The service area; everything lies in it.
    roads, places
        The tables of these names.
    water
        Outlines of sea and lakes within the area: closed rings of (lon, lat), for pictures.
    """

    name: str
    area: Area
    roads: pa.Table
    places: pa.Table
    water: list[Ring]
