"""Frames as a server sends them. The factors are written out: a device computes no cosine."""

from __future__ import annotations

from nearcast.v1 import geometry_pb2
from safe_region.earth.frame import Area, Frame

Y_M_PER_DEG = 111195.08023353292

CITY = Frame(Area(14.0, 35.0, 15.0, 36.0), 14.5, 35.5, 90525.64038299516, Y_M_PER_DEG, 143384.92750248607)
METROPOLIS = Frame(
    Area(-46.9, -23.9, -46.3, -23.3),
    -46.599999999999994,
    -23.6,
    101895.02723669246,
    Y_M_PER_DEG,
    90492.53714939654,
)
COUNTRY = Frame(
    Area(5.8, 47.2, 15.1, 55.1),
    10.45,
    51.150000000000006,
    69750.8583883172,
    Y_M_PER_DEG,
    1091992.8745551568,
)
CONTINENT = Frame(
    Area(-10.0, 35.0, 40.0, 70.0), 15.0, 52.5, 67691.27594170485, Y_M_PER_DEG, 5157673.485692344
)
WHOLE = Frame(
    Area(-180.0, -60.0, 180.0, 75.0), 0.0, 7.5, 110243.79090758477, Y_M_PER_DEG, 42431814.390280314
)

FRAMES = {
    "city": CITY,
    "metropolis": METROPOLIS,
    "country": COUNTRY,
    "continent": CONTINENT,
    "whole": WHOLE,
}


def frame_message(frame: Frame) -> geometry_pb2.Frame:
    """Return the message of a frame."""
    return geometry_pb2.Frame(
        **frame.area._asdict(),
        lon0_deg=frame.lon0_deg,
        lat0_deg=frame.lat0_deg,
        x_m_per_deg=frame.x_m_per_deg,
        y_m_per_deg=frame.y_m_per_deg,
        maxdist_m=frame.maxdist_m,
    )
