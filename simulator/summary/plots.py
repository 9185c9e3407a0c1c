"""The plots of a simulation: `map.png`, `speeds.png`, `load.png`, with a second simulation if given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from safe_region.earth.frame import Frame
from simulator.simulation import Simulation
from simulator.summary.figures import SPEED_BIN_MPS, Figures, cell_m

_DPI = 130
_KMH = 3.6
_TRIP_BINS = 40
_ROADS_MAX = 400_000
"""If there are more roads, only some are drawn."""

_PANEL = (8.0, 5.0)
_LINE_PT = 1.8


def draw_plots(
    simulation: Simulation,
    found: Figures,
    folder: Path,
    beside: tuple[Simulation, Figures] | None = None,
) -> list[Path]:
    """Draw the plots of a simulation into a folder; return the paths of the files.

    Parameters
    ----------
    simulation, found
        The simulation and its figures.
    folder
        The folder; created if it does not exist.
    beside
        Another simulation; its speeds and trips are drawn over those of the first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {
        "map.png": _map(simulation, found),
        "speeds.png": _speeds(simulation, found, beside),
        "load.png": _load(simulation, found, beside),
    }
    for name, figure in drawn.items():
        figure.savefig(folder / name, dpi=_DPI)
    return [folder / name for name in drawn]


def _map(simulation: Simulation, found: Figures) -> Figure:
    """Draw streets, and the positions of moving devices over them."""
    area, frame = simulation.world.area, Frame.of(simulation.world.area)
    figure = Figure(figsize=(9.0, 9.0), layout="constrained")
    axes = figure.add_subplot()
    roads = simulation.roads
    if roads.num_rows:
        shown = roads.take(np.arange(0, roads.num_rows, -(-roads.num_rows // _ROADS_MAX)))
        ends = [
            shown[name].to_numpy() for name in ("source_lon", "source_lat", "target_lon", "target_lat")
        ]
        lines = np.stack(ends, axis=1).reshape(-1, 2, 2)
        axes.add_collection(LineCollection(list(lines), colors="#b8b8b0", linewidths=0.3))
    cells = np.ma.masked_equal(found.cells, 0)
    if cells.count():
        norm = LogNorm(1, max(2, int(found.cells.max())))
        side_m = cell_m(simulation)
        lons = area.lon_min + np.arange(cells.shape[1] + 1) * side_m / frame.x_m_per_deg
        lats = area.lat_min + np.arange(cells.shape[0] + 1) * side_m / frame.y_m_per_deg
        mesh = axes.pcolormesh(lons, lats, cells, norm=norm, cmap="viridis", alpha=0.85)
        figure.colorbar(mesh, ax=axes, shrink=0.7, label="moving positions in a cell")
    axes.set_xlim(area.lon_min, area.lon_max)
    axes.set_ylim(area.lat_min, area.lat_max)
    axes.set_aspect(frame.y_m_per_deg / frame.x_m_per_deg)
    axes.set_title(f"{simulation.world.name}: density of moving devices")
    axes.set_xlabel("longitude, degrees")
    axes.set_ylabel("latitude, degrees")
    return figure


def _speeds(simulation: Simulation, found: Figures, beside: tuple[Simulation, Figures] | None) -> Figure:
    figure = Figure(figsize=_PANEL, layout="constrained")
    axes = figure.add_subplot()
    _draw_speeds(axes, found, "", "-")
    if beside is not None:
        _draw_speeds(axes, beside[1], f"{beside[0].path.name}: ", "--")
    axes.set_xlabel("speed of moving devices, km/h")
    axes.set_ylabel("share of their positions per km/h")
    axes.set_title(_title(simulation, beside, "speeds"))
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    axes.legend(frameon=False)
    return figure


def _draw_speeds(axes: Axes, found: Figures, prefix: str, style: str) -> None:
    for name, one in found.classes.items():
        total = one.speed_counts.sum()
        if not total:
            continue
        # Four bins a step: some 1 m/s, so that single limits do not hide the shape.
        padded = np.pad(one.speed_counts, (0, -len(one.speed_counts) % 4)).reshape(-1, 4).sum(axis=1)
        width_kmh = 4 * SPEED_BIN_MPS * _KMH
        edges = np.arange(len(padded) + 1) * width_kmh
        axes.stairs(
            padded / total / width_kmh,
            edges,
            label=f"{prefix}{name}",
            linestyle=style,
            linewidth=_LINE_PT,
        )


def _load(simulation: Simulation, found: Figures, beside: tuple[Simulation, Figures] | None) -> Figure:
    """Draw load over time, and lengths of trips."""
    figure = Figure(figsize=(_PANEL[0], 2 * _PANEL[1]), layout="constrained")
    above, below = figure.subplots(2, 1)
    hours = found.times_s / 3600.0
    unit, times = ("hours", hours) if hours.max(initial=0.0) > 2.0 else ("minutes", hours * 60.0)  # noqa: PLR2004
    above.plot(times, found.present, label="there", linewidth=_LINE_PT)
    above.plot(times, found.moving, label="moving", linewidth=_LINE_PT)
    above.set_ylim(bottom=0.0)
    above.set_xlabel(f"time, {unit}")
    above.set_ylabel("devices")
    above.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    above.set_title(_title(simulation, None, "load over time"))
    above.legend(frameon=False)
    others = [] if beside is None else [(beside[0].path.name, beside[1].trips_m, "--")]
    lengths = [(simulation.path.name, found.trips_m, "-"), *others]
    longest_m = max((np.quantile(one, 0.99) for _, one, _ in lengths if len(one)), default=1000.0)
    edges = np.linspace(0.0, longest_m / 1000.0, _TRIP_BINS + 1)
    for name, trips_m, style in lengths:
        if len(trips_m):
            counts, _ = np.histogram(trips_m / 1000.0, edges)
            label = f"{name}: {len(trips_m):,} trips, median {np.median(trips_m) / 1000.0:.1f} km"
            below.stairs(
                counts / len(trips_m) / np.diff(edges),
                edges,
                label=label,
                linestyle=style,
                linewidth=_LINE_PT,
            )
    below.set_xlabel("length of trips, km")
    below.set_ylabel("share of trips per km")
    below.set_title(_title(simulation, beside, "trip lengths"))
    below.legend(frameon=False)
    return figure


def _title(simulation: Simulation, beside: tuple[Simulation, Figures] | None, what: str) -> str:
    other = "" if beside is None else f" beside {beside[0].path.name}"
    return f"{simulation.world.name}: {what}{other}"
