"""Reads places from a separate CSV file."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from simulator.maps.errors import MapError
from simulator.maps.osm import PlaceRecord
from simulator.maps.placement import Columns, Placement
from simulator.maps.places import KEYWORDS_MAX, PlaceText, words
from simulator.maps.points import Points
from simulator.maps.rows import Row, csv_rows

CATEGORY = "place"
"""The category of places whose file has none."""

LATITUDE_MAX_DEG = 90.0
"""Places may lie at a pole: they are far from all roads."""

_TEXT_NAMES = ("category", "keywords", "text", "name")
"""The columns that keywords are taken from; if too many, the first are kept."""

_NO_REFS = np.empty(0, np.int64)


def read_places(path: Path, placement: Placement) -> Points:
    """Read places; those whose text gives no keyword are left out.

    Parameters
    ----------
    path
        A CSV file, compressed if its name ends in .gz. Its columns: a position, in the unit of the
        network's; a name, keywords or a text; optionally a category.
    placement
        The placement of the network's coordinates on the Earth.

    Raises
    ------
    MapError
        If it cannot be read, a line is invalid, or no place is left.
    """
    header, rows = csv_rows(path)
    x_names, y_names = placement.columns()
    columns = Columns(
        header.require(x_names, "the position of a place"),
        header.require(y_names, "the position of a place"),
    )
    header.require(("name", "keywords", "text"), "the description of a place")
    places = []
    xs, ys = array("d"), array("d")
    for number, row in enumerate(rows):
        x, y = placement.read(row, columns, LATITUDE_MAX_DEG)
        text = _text(row)
        if text is not None:
            places.append(PlaceRecord(number, text, _NO_REFS))
            xs.append(x)
            ys.append(y)
    if not places:
        raise MapError(f"{path} has no places: no row has a text with a keyword")
    lons, lats = placement.degrees(np.array(xs), np.array(ys))
    return Points(places, lons, lats)


def _text(row: Row) -> PlaceText | None:
    keywords = tuple(sorted(list(dict.fromkeys(_words(row)))[:KEYWORDS_MAX]))
    if not keywords:
        return None
    category = row.fields.get("category") or CATEGORY
    return PlaceText(row.fields.get("name", ""), category, keywords, tag_count=0)


def _words(row: Row) -> Iterator[str]:
    for name in _TEXT_NAMES:
        yield from words(row.fields.get(name, ""))
