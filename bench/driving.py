"""Drive vehicles of the simulator on roads of a generated city or a map, with a position a second."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench.benchmark import silent
from index.batches import Floats
from safe_region.earth.frame import Frame

if TYPE_CHECKING:
    from simulator.movement.streets import Streets
    from simulator.terrain import Terrain


class Driven(NamedTuple):
    """Positions of vehicles in plane metres, and the terrain and streets."""

    x_m: Floats
    """Shape (vehicles, seconds + 1)."""
    y_m: Floats
    terrain: Terrain
    streets: Streets
    frame: Frame


def driven(vehicles: int, seconds: int, seed: int, path: Path | None = None, **more: Any) -> Driven:  # noqa: ANN401
    """Drive shortest paths at the speeds of the roads, including stops.

    Parameters
    ----------
    vehicles, seconds
        Number of vehicles, and length of the drive.
    seed
        Seed of the simulation.
    path
        A map; by default a city is generated.
    more
        Other parameters of a simulation.
    """
    from simulator.city import generate_city  # noqa: PLC0415 - an extra
    from simulator.maps.reading import read_map  # noqa: PLC0415
    from simulator.movement.streets import Streets  # noqa: PLC0415
    from simulator.movement.trajectories import drive  # noqa: PLC0415
    from simulator.parameters import SimulationParameters  # noqa: PLC0415

    wanted = SimulationParameters(map_file=path, seed=seed, devices=vehicles, seconds=seconds, **more)
    terrain = generate_city(wanted) if path is None else read_map(path, wanted, silent)
    frame = Frame.of(terrain.area)
    streets = Streets.of(terrain, wanted)
    table = drive(streets, np.arange(vehicles, dtype=np.int64), wanted)
    x_m = (table["lon"].to_numpy() - frame.lon0_deg) * frame.x_m_per_deg
    y_m = (table["lat"].to_numpy() - frame.lat0_deg) * frame.y_m_per_deg
    return Driven(x_m.reshape(vehicles, -1), y_m.reshape(vehicles, -1), terrain, streets, frame)
