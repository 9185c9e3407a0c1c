"""Degrees to the plane, for frames as wide as a city and as wide as the Earth."""

from __future__ import annotations

import math

from tests.vectors.draws import Draws
from tests.vectors.frames import FRAMES, frame_message
from tests.vectors.notation import message_json


def cases():
    for seed, (name, frame) in enumerate(FRAMES.items()):
        area = frame.area
        steps = [_step(*corner) for corner in _corners(area)]
        draws = Draws(seed)
        for beyond in (0.0, 0.5):
            width, height = area.lon_max - area.lon_min, area.lat_max - area.lat_min
            for _ in range(8):
                lon = draws.between(area.lon_min - beyond * width, area.lon_max + beyond * width)
                lat = draws.between(area.lat_min - beyond * height, area.lat_max + beyond * height)
                steps.append(_step(max(-180.0, min(180.0, lon)), max(-90.0, min(90.0, lat))))
        yield {"name": name, "given": {"frame": message_json(frame_message(frame))}, "steps": steps}


def _corners(area):
    """Yield corners, the middle, and the doubles next to the edges."""
    yield from ((area.lon_min, area.lat_min), (area.lon_max, area.lat_max))
    yield (area.lon_min + area.lon_max) / 2.0, (area.lat_min + area.lat_max) / 2.0
    yield area.lon_min, math.nextafter(area.lat_min, -math.inf)
    yield area.lon_max, math.nextafter(area.lat_max, math.inf)
    yield -180.0, -90.0
    yield 180.0, 90.0


def _step(lon, lat):
    return {"op": "project", "lon": lon, "lat": lat}
