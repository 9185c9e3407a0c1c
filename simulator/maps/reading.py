"""Reads files of any kind into a terrain, and reports every reason for which this fails."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from safe_region.earth.frame import LATITUDE_MAX_DEG, LONGITUDE_MAX_DEG, Area, Frame
from simulator.maps.errors import MapError
from simulator.maps.files import checked_ending, ending_of, road_files
from simulator.maps.network import Network, connected, drivable_m, network_of, roads_table
from simulator.maps.osm import Progress, Records, read_records
from simulator.maps.placement import SPAN_DEG_MAX, Placement
from simulator.maps.places_file import read_places
from simulator.maps.points import ROAD_M_MAX, Points, near_roads, places_table, points_of
from simulator.maps.road_files import read_road_files
from simulator.maps.streetside import streetside_places
from simulator.maps.texts_file import read_texts
from simulator.maps.turns import turns_of
from simulator.maps.water import water
from simulator.network.traffic import DEVICE_CLASSES
from simulator.parameters import SimulationParameters
from simulator.terrain import Terrain

MARGIN = 0.02
"""The area reaches this fraction of its size beyond roads and places, and at least `MARGIN_M_MIN`."""

MARGIN_M_MIN = 200.0

ROADS_M_MIN = 1_000.0
"""The minimum length of roads to drive on. Directed: a two-way street counts twice."""

STAGE = "map: network"

Floats = npt.NDArray[np.float64]


class _Content(NamedTuple):
    """The contents of a map before anything is left out.

    Parameters
    ----------
    network
        All roads, including those that are not connected.
    placement
        The conversion of its coordinates to degrees.
    places
        Its places; None if a map of its kind has none.
    records
        Of an OpenStreetMap file: the records from which water is drawn.
    """

    network: Network
    placement: Placement
    places: Points | None
    records: Records | None


def read_map(path: Path, parameters: SimulationParameters, progress: Progress) -> Terrain:
    """Read a map of any kind. Linear in its files; about 5 s for a small country.

    Parameters
    ----------
    path
        An OpenStreetMap file, or either file of a road network; `files.ENDINGS` lists the suffixes of
        their names.
    parameters
        Seed, name, unit of coordinates, places and shares of device classes: each class with a share
        needs roads to use.
    progress
        Called as progress(stage, done, total); a total of 0 is not known yet.

    Raises
    ------
    MapError
        If a file is missing or malformed, has no roads, no places, or too few connected roads.
    """
    content = _content(path, parameters, progress)
    progress(STAGE, 0, 1)
    network = connected(content.network)
    if not len(network.sources):
        raise MapError(f"{path} is not connected: its roads connect no two nodes in both directions")
    rough = _frame(path, area_about(network.lons, network.lats))
    _check_drivable(path, network, content.network, parameters, rough)
    points = _points(path, content, parameters, network, rough)
    lons, lats = network.lons, network.lats
    if points is not None:
        lons, lats = np.concatenate([lons, points.lons]), np.concatenate([lats, points.lats])
    area = area_about(lons, lats)
    frame = _frame(path, area)
    if points is not None:
        places = places_table(points, parameters.seed)
    else:
        places = streetside_places(network, frame, parameters.places, parameters.seed)
    texts = None
    if parameters.texts_file is not None:
        texts = read_texts(parameters.texts_file, area, parameters.seed, content.placement)
    restrictions = None
    if content.records is not None:
        roads = dict(zip(content.records.road_ids, content.records.road_refs, strict=True))
        restrictions = turns_of(content.records.restrictions, roads, network)
    terrain = Terrain(
        name=parameters.name or map_name(path),
        area=area,
        roads=roads_table(network, frame),
        places=places,
        water=[] if content.records is None else water(content.records, frame),
        texts=texts,
        restrictions=None if restrictions is None else restrictions.table,
        restrictions_left_out=0 if restrictions is None else restrictions.left_out,
    )
    progress(STAGE, 1, 1)
    return terrain


def map_name(path: Path) -> str:
    """Return a display name: the file's name without its suffix, in words."""
    name = path.name
    stem = name[: len(name) - len(ending_of(path) or "")]
    words = stem.replace("_", " ").replace("-", " ").split()
    return " ".join(word[:1].upper() + word[1:] for word in words) or name


def _content(path: Path, parameters: SimulationParameters, progress: Progress) -> _Content:
    checked_ending(path)
    pair = road_files(path)
    if pair is not None:
        network, placement = read_road_files(pair, parameters.unit_m, progress)
        return _Content(network, placement, None, None)
    if parameters.unit_m is not None:
        raise MapError(f"{path} is an OpenStreetMap file: its coordinates are degrees, not --unit-m")
    records = read_records(path, progress)
    network = network_of(records)
    if not len(network.sources):
        raise MapError(f"{path} has no roads: no way with a highway tag and at least two known nodes")
    return _Content(network, Placement(None), points_of(records), records)


def _check_drivable(
    path: Path, network: Network, whole: Network, parameters: SimulationParameters, frame: Frame
) -> None:
    """Refuse a network in which a device class has too few roads."""
    for device_class, share in zip(DEVICE_CLASSES, _shares(parameters), strict=True):
        length_m = drivable_m(network, device_class.roads, frame)
        if share > 0.0 and length_m < ROADS_M_MIN:
            raise MapError(
                f"{path} has too few connected roads: in the largest part the roads for a "
                f"{device_class.name} have {length_m / 1000:.2g} km, at least {ROADS_M_MIN / 1000:g} km "
                f"are needed ({len(network.node_ids)} of {len(whole.node_ids)} nodes of roads are in "
                "that part)"
            )


def _shares(parameters: SimulationParameters) -> tuple[float, float, float]:
    car, bicycle = parameters.car_share, parameters.bicycle_share
    return car, bicycle, 1.0 - car - bicycle


def _points(
    path: Path, content: _Content, parameters: SimulationParameters, network: Network, frame: Frame
) -> Points | None:
    """Return the places near roads, from a separate file or the map; None if neither has any."""
    points, source = content.places, path
    if parameters.places_file is not None:
        source = parameters.places_file
        points = read_places(source, content.placement)
    if points is None:
        return None
    if not points.places:
        raise MapError(f"{path} has no places: no shop, restaurant, sight or the like with a position")
    found = near_roads(points, network, frame)
    if not found.places:
        roads_text = "its roads" if source is path else f"the roads of {path}"
        raise MapError(
            f"{source} has no places near {roads_text}: all {len(points.places)} are more than "
            f"{ROAD_M_MAX:g} m from the largest connected part"
        )
    return found


def area_about(lons: Floats, lats: Floats) -> Area:
    """Return the bounding box of positions in degrees with a margin, `MARGIN` of its size."""
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
    if width_deg > SPAN_DEG_MAX:
        raise MapError(
            f"{path} spans {width_deg:.0f} degrees of longitude, more than {SPAN_DEG_MAX:g}: it is too "
            "wide, or crosses the antimeridian"
        )
    try:
        return Frame.of(area)
    except ValueError as error:
        raise MapError(f"{path} has no usable area: {error}") from None
