"""Where a simulation takes place, generated or read from a map, and what is published there."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from safe_region.frame import Area

Ring = list[tuple[float, float]]


class Texts(NamedTuple):
    """What is published in place of words of places.

    Parameters
    ----------
    table
        The table of this name.
    outside, wordless
        How many others the file has, which lie outside of the area, or give no keyword.
    """

    table: pa.Table
    outside: int
    wordless: int

    def counts(self) -> dict[str, int]:
        """Return how many texts there are, by what became of them."""
        return {"taken": self.table.num_rows, "outside": self.outside, "wordless": self.wordless}


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
    texts
        What is published; None where that comes from places.
    restrictions
        The table of this name; None where every turn is allowed.
    restrictions_left_out
        How many others the map has, which pairs of roads cannot say.
    """

    name: str
    area: Area
    roads: pa.Table
    places: pa.Table
    water: list[Ring]
    texts: Texts | None = None
    restrictions: pa.Table | None = None
    restrictions_left_out: int = 0
