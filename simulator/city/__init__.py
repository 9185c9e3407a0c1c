"""A generated city, so that a machine without any map works.

Drawn on a plane about its centre: a skeleton of motorways, rings and radial roads (`arterials`), local
streets in the faces between them (`districts`), joined into a strongly connected network (`network`),
with places beside the streets (`places`, `vocabulary`). Everything follows from the seed and the size.
"""

from __future__ import annotations

import pyarrow as pa

from safe_region.frame import Area, Frame
from simulator.city.arterials import arterials
from simulator.city.districts import local_streets
from simulator.city.network import roads_table
from simulator.city.places import places_table
from simulator.parameters import SimulationParameters

__all__ = ["ORIGIN_LAT_DEG", "ORIGIN_LON_DEG", "city_area", "generate_city"]

ORIGIN_LON_DEG = 14.5
ORIGIN_LAT_DEG = 35.9
"""Where the centre of the generated city is said to lie. The city is fictitious."""

MARGIN = 1.25
"""The area reaches this much farther than the city."""


def city_area(parameters: SimulationParameters) -> Area:
    """Return the service area: a square about the origin, with a margin."""
    half_m = MARGIN * parameters.city_width_m / 2.0
    tiny_deg = 1e-6
    scale = Frame.of(
        Area(
            ORIGIN_LON_DEG - tiny_deg,
            ORIGIN_LAT_DEG - tiny_deg,
            ORIGIN_LON_DEG + tiny_deg,
            ORIGIN_LAT_DEG + tiny_deg,
        )
    )
    lon_deg = half_m / scale.x_m_per_deg
    lat_deg = half_m / scale.y_m_per_deg
    return Area(
        ORIGIN_LON_DEG - lon_deg,
        ORIGIN_LAT_DEG - lat_deg,
        ORIGIN_LON_DEG + lon_deg,
        ORIGIN_LAT_DEG + lat_deg,
    )


def generate_city(parameters: SimulationParameters) -> tuple[pa.Table, pa.Table]:
    """Return the tables `roads` and `places`."""
    frame = Frame.of(city_area(parameters))
    radius_m = parameters.city_width_m / 2.0
    skeleton = arterials(parameters.seed, radius_m)
    streets = [*skeleton, *local_streets(skeleton, parameters.seed, radius_m)]
    roads = roads_table(streets, parameters.seed, frame)
    return roads, places_table(roads, parameters, frame)
