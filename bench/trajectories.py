"""Movement of devices in benchmarks: pieces of real trajectories that start at any position.

A trajectory is a series of offsets in metres, one a second. `roads` are drives through a generated city's
streets (`simulator.city`); `gps` are taxi traces, straight between fixes. Devices share them, each
shifted to its first position and turned by a multiple of 90 degrees. So a million devices move as
vehicles do, without a road map of a continent; but places no longer lie beside roads.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from pathlib import Path

import numpy as np

from bench.datasets import data_folder
from bench.driving import driven
from bench.errors import BenchError
from engine import Positions
from index.batches import Floats, Ints
from safe_region.earth.frame import Area, Frame

JOURNEYS = 2_000
STILL_M: Floats = np.zeros((1, 2, 2))
"""Offsets without movement."""
_TAXIS = "traj/porto_taxi_1000.parquet"
_PORTO = Area(-8.8, 41.0, -8.3, 41.4)


class Trajectories:
    """Positions of devices at each second.

    Parameters
    ----------
    offsets_m
        Shape (trajectories, seconds + 1, 2); the first offset of each is zero.
    x_m, y_m
        First positions of devices.
    chance
        Draws a trajectory and a direction for each device.
    """

    def __init__(self, offsets_m: Floats, x_m: Floats, y_m: Floats, chance: np.random.Generator) -> None:
        self._offsets_m = offsets_m
        self._start = np.stack([x_m, y_m], axis=1)
        self._journey = chance.integers(0, len(offsets_m), len(x_m))
        self._turn = chance.integers(0, 4, len(x_m))

    def first(self, count: int) -> Trajectories:
        """Return the trajectories of the first devices."""
        some = copy(self)
        some._start = self._start[:count]  # noqa: SLF001 - a copy of this object
        some._journey, some._turn = self._journey[:count], self._turn[:count]  # noqa: SLF001
        return some

    def at(self, second: int) -> tuple[Floats, Floats]:
        """Return all positions at a second; trajectories repeat there and back when they end."""
        last = self._offsets_m.shape[1] - 1
        phase = second % (2 * last)
        steps = self._offsets_m[self._journey, phase if phase <= last else 2 * last - phase]
        for turn in (1, 2, 3):
            chosen = self._turn == turn
            along, across = steps[chosen, 0].copy(), steps[chosen, 1].copy()
            cosine, sine = ((0, 1), (-1, 0), (0, -1))[turn - 1]
            steps[chosen, 0] = cosine * along - sine * across
            steps[chosen, 1] = sine * along + cosine * across
        positions = self._start + steps
        return np.ascontiguousarray(positions[:, 0]), np.ascontiguousarray(positions[:, 1])

    def positions(self, handles: Ints, second: int) -> Positions:
        """Return the positions of some devices (handle i + 1 is device i), and their last movements."""
        before = self.at(max(0, second - 1))
        x_m, y_m = self.at(second)
        rows = handles - 1
        east, north = x_m[rows] - before[0][rows], y_m[rows] - before[1][rows]
        moved_m = np.hypot(east, north)
        heading = np.where(moved_m > 0.0, np.arctan2(east, north), np.nan)
        return Positions(handles, x_m[rows], y_m[rows], heading, moved_m)


@lru_cache(maxsize=1)
def offsets(trajectories: str, seconds: int, seed: int) -> Floats:
    """Return trajectories as offsets: "roads" or "gps".

    Raises
    ------
    BenchError
        If a file does not exist, or no taxi trip lasts long enough.
    """
    return _gps_offsets(seconds) if trajectories == "gps" else _road_offsets(seconds, seed)


def _road_offsets(seconds: int, seed: int) -> Floats:
    """Drive through a generated city."""
    found = driven(JOURNEYS, seconds, seed)
    return _from_start(np.stack([found.x_m, found.y_m], axis=2))


def _gps_offsets(seconds: int) -> Floats:
    """Read taxi trips that last long enough, straight between fixes 15 seconds apart."""
    import pandas as pd  # noqa: PLC0415 - an extra

    path: Path = data_folder() / _TAXIS
    if not path.is_file():
        raise BenchError(
            f"{path} does not exist: set NEARCAST_DATA to the folder with {_TAXIS}, or use the "
            "trajectories roads"
        )
    frame = Frame.of(_PORTO)
    found = []
    longest = 0
    for _, trip in pd.read_parquet(path).groupby("trip"):
        times = trip["t"].to_numpy() - trip["t"].iloc[0]
        longest = max(longest, int(times[-1]))
        if times[-1] < seconds:
            continue
        wanted = np.arange(seconds + 1)
        x_m = (trip["lon_e6"].to_numpy() / 1e6 - frame.lon0_deg) * frame.x_m_per_deg
        y_m = (trip["lat_e6"].to_numpy() / 1e6 - frame.lat0_deg) * frame.y_m_per_deg
        found.append(np.stack([np.interp(wanted, times, x_m), np.interp(wanted, times, y_m)], axis=1))
    if not found:
        raise BenchError(f"seconds is {seconds}, must be at most {longest}: no taxi trace is longer")
    return _from_start(np.array(found))


def _from_start(positions: Floats) -> Floats:
    """Subtract the first position of each trajectory."""
    found: Floats = positions - positions[:, :1]
    return found
