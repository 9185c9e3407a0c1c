"""Reads texts from a CSV file, which are published instead of words of places."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
import pyarrow as pa

from safe_region.earth.frame import Area, Frame
from safe_region.scoring.keywords import keywords_of, normalised_keyword
from simulator import schemas
from simulator.chance import uniforms
from simulator.maps.errors import MapError
from simulator.maps.placement import Columns, Floats, Placement
from simulator.maps.places import KEYWORD_LENGTH_MAX, KEYWORDS_MAX
from simulator.maps.places_file import LATITUDE_MAX_DEG
from simulator.maps.rows import csv_rows
from simulator.terrain import Texts

TABLE = "texts"

TEXT = "text"
"""The column that keywords are taken from."""


def read_texts(path: Path, area: Area, seed: int, placement: Placement | None = None) -> Texts:
    """Read texts; those outside of the area, and those without a keyword, are left out and counted.

    Their order is random: files are usually sorted by place, and streams of objects are not.

    Parameters
    ----------
    path
        A CSV file, compressed if its name ends in .gz. Its columns: a position and a text.
    area
        The service area.
    seed
        The seed of the order.
    placement
        The conversion of coordinates to degrees; None if they are degrees.

    Raises
    ------
    MapError
        If it cannot be read, a line is invalid, or no text is left.
    """
    placement = placement or Placement(None)
    header, rows = csv_rows(path)
    x_names, y_names = placement.columns()
    columns = Columns(
        header.require(x_names, "the position of a text"),
        header.require(y_names, "the position of a text"),
    )
    header.require((TEXT,), "the published text")
    found: list[list[str]] = []
    xs, ys = array("d"), array("d")
    wordless = 0
    for row in rows:
        x, y = placement.read(row, columns, LATITUDE_MAX_DEG)
        keywords = text_keywords(row.fields[TEXT])
        if keywords:
            found.append(keywords)
            xs.append(x)
            ys.append(y)
        else:
            wordless += 1
    if not found:
        raise MapError(f"{path} has no texts: no row has a {TEXT} with a keyword")
    lons, lats = placement.degrees(np.array(xs), np.array(ys))
    covers = Frame.of(area).covers
    inside = [i for i in range(len(found)) if covers(float(lons[i]), float(lats[i]))]
    if not inside:
        raise MapError(
            f"{path} has no texts on the map: all {len(found)} are outside its area, {_shown(*area)}; "
            f"they are within {_shown(lons.min(), lats.min(), lons.max(), lats.max())}"
        )
    return _texts(found, lons, lats, np.array(inside), seed, wordless)


def text_keywords(text: str) -> list[str]:
    """Return the keywords of a text, normalised and sorted; if too many, the first are kept.

    Words that no server accepts as keywords are left out.
    """
    words = dict.fromkeys(map(normalised_keyword, keywords_of(text)))
    usable = (word for word in words if 0 < len(word) <= KEYWORD_LENGTH_MAX and word.isprintable())
    return sorted(list(usable)[:KEYWORDS_MAX])


def _texts(
    found: list[list[str]], lons: Floats, lats: Floats, inside: np.ndarray, seed: int, wordless: int
) -> Texts:
    numbers = np.arange(len(inside))
    order = inside[np.argsort(uniforms(seed, TABLE, "order", numbers), kind="stable")]
    columns = {
        "text_id": numbers,
        "lon": lons[order],
        "lat": lats[order],
        "keywords": [found[i] for i in order],
    }
    table = pa.table(columns, schema=schemas.arrow_schema(schemas.TEXTS))
    return Texts(table, outside=len(found) - len(inside), wordless=wordless)


def _shown(lon_min: float, lat_min: float, lon_max: float, lat_max: float) -> str:
    return f"longitudes {lon_min:.4g} to {lon_max:.4g}, latitudes {lat_min:.4g} to {lat_max:.4g}"
