"""Drives on road networks: the paths of the ranges of the suite ap-plus, and the nodes near its objects.

A drive follows fastest paths between successive places and has a position for each second. Many ranges
share a drive: each starts at another position of it and turns round at its ends. So a million ranges move
as vehicles do, on the roads. The drives replace the generator of moving objects that the paper uses.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bench.datasets import required_file
from bench.driving import driven
from index.batches import Floats, Ints
from index.square import Square

_DRIVES = 400
_OLDENBURG_UNIT_M = 2.5
"""Metres of a unit of that map's coordinates, which have none. With it the map is about 25 km wide, as
the town's surroundings are."""

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
        """Return the distance from the westernmost node to the easternmost."""
        return float(self.node_x_m.max() - self.node_x_m.min())

    @property
    def height_m(self) -> float:
        """Return the distance from the southernmost node to the northernmost."""
        return float(self.node_y_m.max() - self.node_y_m.min())

    @property
    def square(self) -> Square:
        """Return a square around all nodes."""
        x_m = float(self.node_x_m.max() + self.node_x_m.min()) / 2.0
        y_m = float(self.node_y_m.max() + self.node_y_m.min()) / 2.0
        return Square(x_m, y_m, max(self.width_m, self.height_m) / 2.0 + 1.0)

    def at(self, drives: Ints, seconds: Ints) -> tuple[Floats, Floats]:
        """Return the position after a number of seconds on each drive, there and back."""
        last = self.x_m.shape[1] - 1
        phases = seconds % (2 * last)
        phases = np.where(phases <= last, phases, 2 * last - phases)
        return self.x_m[drives, phases], self.y_m[drives, phases]


@lru_cache(maxsize=2)
def drives(name: str, seconds: int, seed: int) -> Drives:
    """Drive on roads for a number of seconds.

    Raises
    ------
    BenchError
        If a file does not exist.
    """
    files = ROADS[name]
    path = None if files is None else required_file(files[0])
    unit_m = None if files is None else files[1]
    found = driven(_DRIVES, seconds, seed, path, car_share=1.0, bicycle_share=0.0, unit_m=unit_m)
    graph = found.streets.graph
    return Drives(name, found.x_m, found.y_m, graph.xs_m, graph.ys_m)
