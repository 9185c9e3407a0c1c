"""The file `world.json` of a simulation. It is written last: a folder without it is not complete."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from safe_region.earth.frame import Area
from simulator.errors import SimulationError
from simulator.files import Root, files_at

VERSION = 6
"""The version of the layout of the folder."""

WORLD_FILE = "world.json"


@dataclass(frozen=True, slots=True)
class World:
    """The contents of `world.json`.

    Parameters
    ----------
    name
        Name of the city or the map.
    area
        The service area; everything lies in it.
    seed
        The seed of the simulation.
    seconds, period_ms
        Length of the run and time between ticks.
    start_ms
        Epoch milliseconds of tick 0.
    slice_ticks
        The number of ticks of a slice of the trajectories: slice s has ticks from s * slice_ticks on.
    parameters
        All parameters by name, for the record.
    texts
        The numbers of texts of a file that are used, lie outside of the area, or give no keyword; None
        without a file.
    water
        Outlines of lakes and sea for pictures: rings of (lon, lat); there may be none.
    """

    name: str
    area: Area
    seed: int
    seconds: int
    period_ms: int
    start_ms: int
    slice_ticks: int
    parameters: dict[str, Any]
    texts: dict[str, int] | None
    water: list[list[tuple[float, float]]]

    @property
    def tick_count(self) -> int:
        """The number of ticks of the run, both ends included."""
        return self.seconds * 1000 // self.period_ms + 1

    @property
    def slice_count(self) -> int:
        """The maximum number of slices of the trajectories; a slice without devices does not exist."""
        return -(-self.tick_count // self.slice_ticks)


def write_world(world: World, folder: Root) -> None:
    """Write `world.json`, which completes a simulation, atomically."""
    found = {
        "version": VERSION,
        "name": world.name,
        "area": world.area._asdict(),
        "seed": world.seed,
        "seconds": world.seconds,
        "period_ms": world.period_ms,
        "start_ms": world.start_ms,
        "slice_ticks": world.slice_ticks,
        "parameters": world.parameters,
        "texts": world.texts,
        "water": world.water,
    }
    # One line a key: people read it, and the water is long.
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    files_at(folder / WORLD_FILE).replace(text.encode())


def read_world(folder: Root) -> World:
    """Read `world.json` of a complete simulation.

    Raises
    ------
    SimulationError
        If it is missing, malformed or of another version.
    """
    path = files_at(folder / WORLD_FILE)
    if not path.exists():
        raise SimulationError(f"{path} is missing: the folder is not a simulation, or an incomplete one")
    try:
        found = json.loads(path.read())
        version = found["version"]
        if version != VERSION:
            raise SimulationError(f"{path} has version {version}, this program reads {VERSION}")
        return World(
            name=found["name"],
            area=Area(**found["area"]),
            seed=found["seed"],
            seconds=found["seconds"],
            period_ms=found["period_ms"],
            start_ms=found["start_ms"],
            slice_ticks=found["slice_ticks"],
            parameters=found["parameters"],
            texts=found["texts"],
            water=[[(lon, lat) for lon, lat in ring] for ring in found["water"]],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise SimulationError(f"{path} cannot be read: {error!r}") from None
