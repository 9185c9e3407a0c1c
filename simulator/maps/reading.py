"""From a file to a terrain, and every reason why a file does not make one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from safe_region.frame import LATITUDE_MAX_DEG, LONGITUDE_MAX_DEG, Area, Frame
from simulator.maps.errors import MapError
from simulator.maps.network import Network, connected, drivable_m, network_of, roads_table
from simulator.maps.osm import SUFFIXES, Progress, read_records
from simulator.maps.points import ROAD_M_MAX, Points, near_roads, places_table, points_of
from simulator.maps.water import water
from simulator.parameters import SimulationParameters
from simulator.terrain import Terrain
from simulator.traffic import DEVICE_CLASSES

MARGIN = 0.02
"""The area reaches this share of its size beyond roads and places, and at least `MARGIN_M_MIN`."""

MARGIN_M_MIN = 200.0

ROADS_M_MIN = 1_000.0
"""Less is too little to drive in. Directed: a two-way street counts twice."""

WIDTH_DEG_MAX = 90.0
"""A plane stands for the area; a map on both sides of the antimeridian would span the globe."""

STAGE = "map: network"


def read_map(path: Path, parameters: SimulationParameters, progress: Progress) -> Terrain:
    """Read an OpenStreetMap file. Linear in the file; about 5 s for a small country.

    Parameters
    ----------
    path
        A file ending in .osm.pbf, .osm, .osm.gz or .osm.bz2.
    parameters
        Seed, name and shares of device classes: each class that is there needs roads to use.
    progress
        Called as progress(stage, done, total); a total of 0 is not known yet.

    Raises
    ------
    MapError
        If the file is missing or malformed, has no roads, no places, or too few connected roads.
    """
    records = read_records(path, progress)
    progress(STAGE, 0, 1)
    whole = network_of(records)
    if not len(whole.sources):
        raise MapError(f"{path} has no roads: no way with a highway tag and at least two known nodes")
    network = connected(whole)
    if not len(network.sources):
        raise MapError(f"{path} is in pieces: its roads connect no two nodes in both directions")
    rough = _frame(path, _bounds(network.lons, network.lats))
    for device_class, share in zip(DEVICE_CLASSES, _shares(parameters), strict=True):
        length_m = drivable_m(network, device_class.roads, rough)
        if share > 0.0 and length_m < ROADS_M_MIN:
            raise MapError(
                f"{path} has too few connected roads: in the largest part a {device_class.name} finds "
                f"{length_m / 1000:.2g} km, at least {ROADS_M_MIN / 1000:g} km are needed "
                f"({len(network.node_ids)} of {len(whole.node_ids)} nodes of roads are in that part)"
            )
    points = _points(path, points_of(records), network, rough)
    area = _bounds(
        np.concatenate([network.lons, points.lons]), np.concatenate([network.lats, points.lats])
    )
    frame = _frame(path, area)
    terrain = Terrain(
        name=parameters.name or map_name(path),
        area=area,
        roads=roads_table(network, frame),
        places=places_table(points, parameters.seed),
        water=water(records, frame),
    )
    progress(STAGE, 1, 1)
    return terrain


def map_name(path: Path) -> str:
    """Return a name for people: the file's, without its suffix, in words."""
    name = path.name
    suffix = max((one for one in SUFFIXES if name.lower().endswith(one)), key=len, default="")
    words = name[: len(name) - len(suffix)].replace("_", " ").replace("-", " ").split()
    return " ".join(word[:1].upper() + word[1:] for word in words) or name


def _shares(parameters: SimulationParameters) -> tuple[float, float, float]:
    car, bicycle = parameters.car_share, parameters.bicycle_share
    return car, bicycle, 1.0 - car - bicycle


def _points(path: Path, points: Points, network: Network, frame: Frame) -> Points:
    if not points.places:
        raise MapError(f"{path} has no places: no shop, restaurant, sight or the like with a position")
    found = near_roads(points, network, frame)
    if not found.places:
        raise MapError(
            f"{path} has no places near its roads: all {len(points.places)} are more than "
            f"{ROAD_M_MAX:g} m from the largest connected part"
        )
    return found


def _bounds(lons: np.ndarray, lats: np.ndarray) -> Area:
    """Return the bounding box of positions with a margin."""
    y_m_per_deg = Frame.of(Area(-1.0, -1.0, 1.0, 1.0)).y_m_per_deg
    widest = min(LATITUDE_MAX_DEG, float(np.abs(lats).max()))
    x_m_per_deg = y_m_per_deg * float(np.cos(np.radians(widest)))
    dlon = max(MARGIN * float(np.ptp(lons)), MARGIN_M_MIN / x_m_per_deg)
    dlat = max(MARGIN * float(np.ptp(lats)), MARGIN_M_MIN / y_m_per_deg)
    return Area(
        max(-LONGITUDE_MAX_DEG, float(lons.min()) - dlon),
        max(-LATITUDE_MAX_DEG, float(lats.min()) - dlat),
        min(LONGITUDE_MAX_DEG, float(lons.max()) + dlon),
        min(LATITUDE_MAX_DEG, float(lats.max()) + dlat),
    )


def _frame(path: Path, area: Area) -> Frame:
    width_deg = area.lon_max - area.lon_min
    if width_deg > WIDTH_DEG_MAX:
        raise MapError(
            f"{path} spans {width_deg:.0f} degrees of longitude, more than {WIDTH_DEG_MAX:g}: "
            "it is too wide, or lies on both sides of the antimeridian"
        )
    try:
        return Frame.of(area)
    except ValueError as error:
        raise MapError(f"{path} has no usable area: {error}") from None
