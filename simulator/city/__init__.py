"""A generated city, so that a machine without any map works.

It is drawn on a plane about its centre. A skeleton of motorways, rings and radial roads (`arterials`)
ends at the sea (`coast`). Local streets fill the faces between them (`districts`). The streets are joined
into a strongly connected network (`network`), with places beside them (`places`, `vocabulary`).
Everything follows from the seed and the size.
"""

from __future__ import annotations

from safe_region.earth.frame import Area, Frame
from simulator.city.arterials import arterials
from simulator.city.coast import Coast
from simulator.city.districts import local_streets
from simulator.city.network import roads_table
from simulator.city.places import places_table
from simulator.parameters import SimulationParameters
from simulator.terrain import Terrain

__all__ = ["NAME", "ORIGIN_LAT_DEG", "ORIGIN_LON_DEG", "city_area", "generate_city"]

NAME = "Marisol"
"""The name of the city unless the parameters give another."""

ORIGIN_LON_DEG = 14.5
ORIGIN_LAT_DEG = 35.9
"""The position of the centre of the generated city, which is fictitious."""

MARGIN = 1.25
"""The ratio of the width of the area to that of the city."""


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


def generate_city(parameters: SimulationParameters) -> Terrain:
    """Generate the city of a seed and a size. Takes well under a second at the default size."""
    area = city_area(parameters)
    frame = Frame.of(area)
    seed, radius_m = parameters.seed, parameters.city_width_m / 2.0
    coast = Coast.of(seed, radius_m)
    skeleton = coast.on_land(arterials(seed, radius_m))
    roads = roads_table([*skeleton, *local_streets(skeleton, seed, radius_m)], seed, frame)
    rings = coast.water(MARGIN * radius_m)
    water = [[_rounded(frame.unproject(float(x), float(y))) for x, y in ring] for ring in rings]
    places = places_table(roads, parameters, frame)
    return Terrain(parameters.name or NAME, area, roads, places, water)


def _rounded(position: tuple[float, float]) -> tuple[float, float]:
    """Round to a tenth of a metre: rings are for pictures and are in a file that people read."""
    lon, lat = position
    return round(lon, 6), round(lat, 6)
