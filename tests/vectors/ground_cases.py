"""What is computed by sines: distances on the ground, circles on the ground, and blurred positions.

They decide nothing about results, and libraries round sines differently: a relative error is allowed.
"""

from __future__ import annotations

import math

from tests.vectors.draws import Draws
from tests.vectors.frames import FRAMES, frame_message
from tests.vectors.notation import double, message_json


def cases():
    draws, steps = Draws(1), []
    fixed = (
        (0.0, 0.0, 0.0, 0.0),
        (14.5, 35.5, 14.6, 35.6),
        (0.0, 90.0, 10.0, -90.0),
        (179.0, 1.0, -179.0, 1.0),
    )
    randoms = [[draws.between(-180.0, 180.0), draws.between(-80.0, 80.0)] * 2 for _ in range(10)]
    for place in randoms:
        near_deg = draws.one_of((0.001, 0.1, 5.0))
        place[2] += draws.between(-near_deg, near_deg)
        place[3] += draws.between(-near_deg, near_deg)
    for place in (*fixed, *randoms):
        names = ("lon", "lat", "other_lon", "other_lat")
        steps.append({"op": "distance", **dict(zip(names, place, strict=True))})
    yield {"name": "distances", "given": {}, "steps": steps}
    yield {"name": "circles", "given": {}, "steps": list(_circles(draws))}
    yield {"name": "blurred positions", "given": {}, "steps": list(_blurs(draws))}


def _circles(draws):
    for frame in FRAMES.values():
        message = message_json(frame_message(frame))
        for radius_m in (0.0, 120.0, 45_000.0, 3e6, math.inf):
            lon = draws.between(frame.area.lon_min, frame.area.lon_max)
            lat = draws.between(frame.area.lat_min, frame.area.lat_max)
            step = {"op": "radius", "frame": message, "lon": lon, "lat": lat}
            yield {**step, "radius_m": double(radius_m)}


def _blurs(draws):
    for frame in FRAMES.values():
        message = message_json(frame_message(frame))
        step = {"op": "blur", "frame": message, "lon": 14.5, "lat": 35.5, "privacy_radius_m": 300.0}
        yield {**step, "random": [draws.random(), draws.random()]}
