"""Simulations as tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast_server.errors import requiring

if TYPE_CHECKING:
    from simulator.simulation import Simulation


def simulate(
    out: str | Path,
    *,
    progress: Callable[[str, int, int], None] | None = None,
    **parameters: Any,  # noqa: ANN401 - the fields of SimulationParameters
) -> Simulation:
    """Simulate a city, or a map, and write its tables to a folder, as `nearcast simulate` does.

    It starts Spark on this machine, and stops it when the tables are written. Tables that are in the
    folder for the same parameters are kept.

    Parameters
    ----------
    out
        Folder of the simulation; it need not exist.
    progress
        Called as ``progress(stage, done, total)``; a total of 0 is not known yet.
    **parameters
        The options of `nearcast simulate`, with underscores: ``devices=200``, ``seconds=600``,
        ``seed=7``, ``map_file=Path("town.osm.pbf")``.

    Returns
    -------
    simulator.simulation.Simulation
        The tables as `pyarrow.Table`, read on first use: ``roads``, ``places``, ``trajectories``,
        ``objects``, ``subscriptions``; and ``world``, with the area and the time of the first tick.

    Raises
    ------
    MissingPackageError
        If the extra ``simulator`` is not installed.
    simulator.parameters.ParameterError
        If a parameter is out of its limits, or unknown.
    simulator.maps.MapError
        If the map cannot be used.

    Examples
    --------
    ::

        city = nearcast_server.simulate("runs/city", devices=50, seconds=60, seed=7)
        positions = city.trajectories.to_pandas()
    """
    with requiring("simulator"):
        from simulator.parameters import SimulationParameters  # noqa: PLC0415
        from simulator.simulation import simulate as run  # noqa: PLC0415
    return run(SimulationParameters(**parameters), Path(out), progress)


def open_simulation(folder: str | Path) -> Simulation:
    """Open the folder of a simulation. It needs no Spark.

    Parameters
    ----------
    folder
        The folder that `simulate` or `nearcast simulate` has written.

    Raises
    ------
    MissingPackageError
        If the extra ``simulator`` is not installed.
    simulator.errors.SimulationError
        If the folder is not a complete simulation.

    Examples
    --------
    ::

        area = nearcast_server.open_simulation("runs/city").world.area
        with nearcast_server.serve(area, virtual_time=True) as server:
            ...
    """
    with requiring("simulator"):
        from simulator.simulation import load  # noqa: PLC0415
    return load(Path(folder))
