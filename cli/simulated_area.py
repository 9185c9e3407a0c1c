"""The area of a simulation, for options that accept either four numbers or its folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cli.failures import WrongUseError, reported
from cli.paths import is_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safe_region.earth.frame import Area


def area_text(given: str) -> str:
    """Return an area as four numbers: the given text, or the area of the simulation in a given folder."""
    if is_uri(given):
        raise WrongUseError(
            f"--area is {given!r}, must be lon_min,lat_min,lon_max,lat_max in degrees or the folder of "
            "a simulation on this machine's disk, not a URI"
        )
    if not os.path.isdir(given):  # noqa: PTH112 - False for a text that cannot be a path
        if "," not in given:
            raise WrongUseError(
                f"--area is {given!r}, which is no folder; must be the folder of a simulation, or "
                "lon_min,lat_min,lon_max,lat_max in degrees"
            )
        return given
    from simulator.errors import SimulationError  # noqa: PLC0415
    from simulator.world import read_world  # noqa: PLC0415

    with reported(SimulationError):
        return ",".join(map(repr, read_world(Path(given)).area))


def area_at(given: Area | str, spark: SparkSession) -> Area:
    """Return an area: the given one, or the area of the simulation at a given URI."""
    if not isinstance(given, str):
        return given
    from simulator.errors import SimulationError  # noqa: PLC0415
    from simulator.simulation import root_of  # noqa: PLC0415
    from simulator.world import read_world  # noqa: PLC0415

    with reported(SimulationError, OSError):
        return read_world(root_of(given, spark)).area
