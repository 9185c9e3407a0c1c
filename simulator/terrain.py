"""The terrain of a simulation, generated or read from a map, and the texts that are published there."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from safe_region.earth.frame import Area

Ring = list[tuple[float, float]]


class Texts(NamedTuple):
    """Texts that are published instead of words of places.

    Parameters
    ----------
    table
        The table of this name.
    outside, wordless
        The number of other texts of the file that lie outside of the area, or give no keyword.
    """

    table: pa.Table
    outside: int
    wordless: int

    def counts(self) -> dict[str, int]:
        """Return the number of texts by outcome."""
        return {"taken": self.table.num_rows, "outside": self.outside, "wordless": self.wordless}


class Terrain(NamedTuple):
    """Streets and places within a service area.

    Parameters
    ----------
    name
        A display name.
    area
        The service area; everything lies in it.
    roads, places
        The tables of these names.
    water
        Outlines of sea and lakes within the area: closed rings of (lon, lat), for pictures.
    texts
        The texts to publish; None if objects come from places.
    restrictions
        The table of this name; None if every turn is allowed.
    restrictions_left_out
        The number of other restrictions of the map, which pairs of roads cannot express.
    """

    name: str
    area: Area
    roads: pa.Table
    places: pa.Table
    water: list[Ring]
    texts: Texts | None = None
    restrictions: pa.Table | None = None
    restrictions_left_out: int = 0
