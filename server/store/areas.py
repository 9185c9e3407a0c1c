"""Areas of objects as JSON, under the field name of the message."""

from __future__ import annotations

import json

from safe_region.earth.shapes import Bounds, ObjectArea, Polygon

_encode = json.JSONEncoder(separators=(",", ":")).encode


def encoded_area(area: ObjectArea | None) -> str:
    """Return an area as it is stored; an empty text for a point."""
    match area:
        case None:
            return ""
        case Bounds(lon_min, lat_min, lon_max, lat_max):
            return _encode({"rectangle": [lon_min, lat_min, lon_max, lat_max]})
        case Polygon(outer):
            return _encode({"polygon": outer})


def decoded_area(text: str) -> ObjectArea | None:
    """Return the area in a stored text.

    Raises
    ------
    LookupError, TypeError, ValueError
        If it is not an area.
    """
    if not text:
        return None
    found = json.loads(text)
    if "rectangle" in found:
        return Bounds(*map(float, found["rectangle"]))
    return Polygon(tuple((float(lon), float(lat)) for lon, lat in found["polygon"]))
