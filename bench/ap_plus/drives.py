"""Drives on road networks: where ranges of the suite ap-plus go, and where its objects lie.

A drive follows fastest paths from place to place, a position a second. Many ranges share one: each is
somewhere else on it, and turns round at its ends. So a million of them move as vehicles do, on the roads.
That stands in for the generator of moving objects that the paper uses.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bench.benchmark import silent
from bench.datasets import required_file
from index.batches import Floats, Ints
from index.square import Square
from safe_region.frame import Frame

_DRIVES = 400
_OLDENBURG_UNIT_M = 2.5
"""Metres of a unit of that map's coordinates, which have none: it is about 25 km wide then, as the town's
surroundings are."""

ROADS: dict[str, tuple[str, float | None] | None] = {
    "city": None,
    "oldenburg": ("roads/OL.cnode", _OLDENBURG_UNIT_M),
    "bay-area": ("roads/bayarea_nodes.csv.gz", None),
}
"""Files by name, and the metres of a unit; `city` is generated."""


class Drives(NamedTuple):
    """Drives, and the nodes of the roads, in plane metres."""

    name: str
    x_m: Floats
    """Shape (drives, seconds + 1)."""
    y_m: Floats
    node_x_m: Floats
    node_y_m: Floats

    @property
    def width_m(self) -> float:
        """From the westernmost node to the easternmost."""
        return float(self.node_x_m.max() - self.node_x_m.min())

    @property
    def height_m(self) -> float:
        """From the southernmost node to the northernmost."""
        return float(self.node_y_m.max() - self.node_y_m.min())

    @property
    def square(self) -> Square:
        """A square about all nodes."""
        x_m = float(self.node_x_m.max() + self.node_x_m.min()) / 2.0
        y_m = float(self.node_y_m.max() + self.node_y_m.min()) / 2.0
        return Square(x_m, y_m, max(self.width_m, self.height_m) / 2.0 + 1.0)

    def at(self, drives: Ints, seconds: Ints) -> tuple[Floats, Floats]:
        """Return where someone is who has been on each drive for so long, there and back."""
        last = self.x_m.shape[1] - 1
        phases = seconds % (2 * last)
        phases = np.where(phases <= last, phases, 2 * last - phases)
        return self.x_m[drives, phases], self.y_m[drives, phases]


@lru_cache(maxsize=2)
def drives(name: str, seconds: int, seed: int) -> Drives:
    """Drive on roads for so long.

    Raises
    ------
    BenchError
        If a file is not there.
    """
    from simulator.city import generate_city  # noqa: PLC0415 - an extra
    from simulator.maps.reading import read_map  # noqa: PLC0415
    from simulator.movement.streets import Streets  # noqa: PLC0415
    from simulator.movement.trajectories import drive  # noqa: PLC0415
    from simulator.parameters import SimulationParameters  # noqa: PLC0415

    files = ROADS[name]
    path = None if files is None else required_file(files[0])
    parameters = SimulationParameters(
        map_file=path,
        seed=seed,
        devices=_DRIVES,
        seconds=seconds,
        car_share=1.0,
        bicycle_share=0.0,
        unit_m=None if files is None else files[1],
    )
    terrain = generate_city(parameters) if path is None else read_map(path, parameters, silent)
    frame = Frame.of(terrain.area)
    streets = Streets.of(terrain, parameters)
    numbers = np.arange(_DRIVES, dtype=np.int64)
    table = drive(streets, numbers, parameters)
    lon, lat = table["lon"].to_numpy(), table["lat"].to_numpy()
    return Drives(
        name,
        ((lon - frame.lon0_deg) * frame.x_m_per_deg).reshape(_DRIVES, -1),
        ((lat - frame.lat0_deg) * frame.y_m_per_deg).reshape(_DRIVES, -1),
        streets.graph.xs_m,
        streets.graph.ys_m,
    )
