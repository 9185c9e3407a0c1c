"""Roads for the live map, as a file that `--map-file` takes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

Segment = tuple[float, float, float, float, str]
"""Longitude and latitude of both ends, and the class of the road, as OpenStreetMap names it; or ""."""


def write_roads(path: Path, segments: Iterable[Segment]) -> None:
    """Write roads as GeoJSON, one feature for each class.

    Parameters
    ----------
    path
        The file; replaced if it exists.
    segments
        The roads, in straight parts.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    lines: dict[str, list[list[tuple[float, float]]]] = {}
    for lon1, lat1, lon2, lat2, road_class in segments:
        lines.setdefault(road_class, []).append([(lon1, lat1), (lon2, lat2)])
    features = [
        {
            "type": "Feature",
            "properties": {"road_class": road_class},
            "geometry": {"type": "MultiLineString", "coordinates": coordinates},
        }
        for road_class, coordinates in lines.items()
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
