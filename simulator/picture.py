"""A map of a simulation: streets, everybody's trajectories, objects, one device's safe regions.

Drawn in degrees with the aspect of the area's middle latitude. With a highlighted device the picture
has a second panel that looks closely at it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from safe_region.frame import Area, Frame
from simulator.simulation import Simulation
from simulator.traffic import RoadClass

Ring = Sequence[tuple[float, float]]

TRAJECTORIES_MAX = 2_000
"""More lines than this only make the map dark."""

_PAPER = "#f6f4ef"
_INK = "#33302b"
_WATER = "#d5e5ea"
_TRAFFIC = "#0f8b8d"
_OBJECT = "#e4572e"
_PATH = "#3d2b8f"
_REGION = "#7a5cff"
_PANEL_IN = 10.0
_DPI = 150
_MARGIN = 0.02
_CLOSE_M_MIN = 1_200.0
_CLOSE_M_MAX = 4_000.0
"""Limits of what the second panel shows."""


class _Pen(NamedTuple):
    """How a class of road is drawn, on the map of the whole city."""

    color: str
    width_pt: float
    casing: str


_PENS = {
    RoadClass.RESIDENTIAL: _Pen("#d3ccbf", 0.5, ""),
    RoadClass.TERTIARY: _Pen("#c4bbaa", 0.9, ""),
    RoadClass.SECONDARY: _Pen("#f8ebc2", 1.6, "#cdbd8d"),
    RoadClass.PRIMARY: _Pen("#f8d9a4", 2.1, "#cfa96c"),
    RoadClass.MOTORWAY: _Pen("#f0b4a0", 3.0, "#c27c66"),
}
"""Least important first: later ones lie on top."""

_CASING_PT = 0.7


@dataclass(frozen=True, slots=True)
class Highlight:
    """A device to look at closely.

    Parameters
    ----------
    device_id
        Which one.
    path
        Where it was, as (lon, lat), in order.
    regions
        The safe regions it was given, each a ring of (lon, lat).
    """

    device_id: str
    path: Ring
    regions: Sequence[Ring]


def draw_map(simulation: Simulation, highlight: Highlight | None, out_png: Path) -> None:
    """Draw a simulation to a PNG file.

    Parameters
    ----------
    simulation
        What to draw.
    highlight
        A device to look at closely, or None.
    out_png
        Where to write; replaced if it exists.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    world = simulation.world
    shown = _extent(simulation)
    close = highlight is not None and len(highlight.path) > 0
    figure = Figure(figsize=(_PANEL_IN * (2 if close else 1), _PANEL_IN * 1.06), facecolor=_PAPER)
    panels = figure.subplots(1, 2 if close else 1, squeeze=False)[0]
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.93, wspace=0.015)
    _draw_panel(panels[0], simulation, shown, 1.0)
    minutes = world.seconds / 60.0
    devices = _device_count(simulation.trajectories)
    title = f"{devices:,} devices, {simulation.objects.num_rows:,} objects, {minutes:.0f} minutes"
    _title(panels[0], world.name, title)
    if highlight is not None and close:
        near = _neighbourhood(highlight, Frame.of(world.area))
        scale = min(3.0, math.sqrt((shown.lon_max - shown.lon_min) / (near.lon_max - near.lon_min)))
        _draw_panel(panels[1], simulation, near, scale)
        _draw_highlight(panels[1], highlight, 2.6)
        _draw_highlight(panels[0], highlight, 1.6)
        corner, width, height = near[:2], near.lon_max - near.lon_min, near.lat_max - near.lat_min
        frame = Rectangle(corner, width, height, fill=False, edgecolor=_PATH, linewidth=1.0, zorder=9)
        panels[0].add_patch(frame)
        _title(panels[1], highlight.device_id, f"{len(highlight.regions):,} safe regions in all")
    _legend(panels[0], highlight)
    figure.savefig(out_png, dpi=_DPI, facecolor=_PAPER)


def _extent(simulation: Simulation) -> Area:
    """Return the square, on the ground, that holds all streets."""
    roads = simulation.roads
    lons, lats = roads["source_lon"].to_numpy(), roads["source_lat"].to_numpy()
    return _square(lons, lats, Frame.of(simulation.world.area), 0.0)


def _neighbourhood(highlight: Highlight, frame: Frame) -> Area:
    """Return a square about the middle of a device's path, no larger than can be looked at."""
    lons, lats = np.array(highlight.path).T
    whole = _square(lons, lats, frame, _CLOSE_M_MIN)
    if (whole.lon_max - whole.lon_min) * frame.x_m_per_deg <= _CLOSE_M_MAX:
        return whole
    middle = slice(len(lons) // 2, len(lons) // 2 + 1)
    return _square(lons[middle], lats[middle], frame, _CLOSE_M_MAX / (1.0 + 4.0 * _MARGIN))


def _square(
    lons: npt.NDArray[np.float64], lats: npt.NDArray[np.float64], frame: Frame, side_m_min: float
) -> Area:
    width_m = float(np.ptp(lons)) * frame.x_m_per_deg
    height_m = float(np.ptp(lats)) * frame.y_m_per_deg
    half_m = max(width_m, height_m, side_m_min) * (0.5 + 2.0 * _MARGIN)
    lon, lat = float(lons.min() + lons.max()) / 2.0, float(lats.min() + lats.max()) / 2.0
    dlon, dlat = half_m / frame.x_m_per_deg, half_m / frame.y_m_per_deg
    return Area(lon - dlon, lat - dlat, lon + dlon, lat + dlat)


def _draw_panel(axes: Axes, simulation: Simulation, shown: Area, scale: float) -> None:
    """Draw what both panels have; `scale` widens pens for the closer one."""
    axes.set_xlim(shown.lon_min, shown.lon_max)
    axes.set_ylim(shown.lat_min, shown.lat_max)
    axes.set_aspect(1.0 / math.cos(math.radians((shown.lat_min + shown.lat_max) / 2.0)))
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_facecolor(_PAPER)
    for spine in axes.spines.values():
        spine.set(color="#cfc8ba", linewidth=0.8)
    axes.add_collection(
        PolyCollection(
            [np.asarray(ring) for ring in simulation.world.water], facecolors=_WATER, zorder=0.5
        )
    )
    _draw_roads(axes, simulation.roads, scale)
    paths = _paths(simulation.trajectories)
    alpha = float(np.clip(60.0 / len(paths), 0.10, 0.5))
    axes.add_collection(
        LineCollection(list(paths), colors=_TRAFFIC, linewidths=0.9 * scale, alpha=alpha, zorder=4)
    )
    objects = simulation.objects
    axes.scatter(
        objects["lon"].to_numpy(),
        objects["lat"].to_numpy(),
        s=4.0 * scale**2,
        color=_OBJECT,
        alpha=0.55,
        linewidths=0.0,
        zorder=5,
    )
    _scale_bar(axes, shown, Frame.of(simulation.world.area))


def _draw_roads(axes: Axes, roads: pa.Table, scale: float) -> None:
    begins = np.column_stack([roads["source_lon"].to_numpy(), roads["source_lat"].to_numpy()])
    ends = np.column_stack([roads["target_lon"].to_numpy(), roads["target_lat"].to_numpy()])
    segments = np.stack([begins, ends], axis=1)
    classes = np.asarray(roads["road_class"].to_pylist())
    # All casings first, so that crossings stay open.
    for cased in (True, False):
        for order, (road_class, pen) in enumerate(_PENS.items()):
            if cased and not pen.casing:
                continue
            axes.add_collection(
                LineCollection(
                    list(segments[classes == road_class.value]),
                    colors=pen.casing if cased else pen.color,
                    linewidths=(pen.width_pt + (_CASING_PT if cased else 0.0)) * scale,
                    capstyle="round",
                    zorder=1.0 + 0.1 * order + (0.0 if cased else 1.0),
                )
            )


def _device_count(trajectories: pa.Table) -> int:
    ticks = trajectories["tick"].to_numpy()
    return int(np.count_nonzero(ticks == 0))


def _paths(trajectories: pa.Table) -> npt.NDArray[np.float64]:
    """Return positions of shape (devices, ticks, 2); of many devices only some."""
    devices = _device_count(trajectories)
    positions = np.column_stack([trajectories["lon"].to_numpy(), trajectories["lat"].to_numpy()])
    # Sorted by (tick, device), every device at every tick.
    by_device = positions.reshape(-1, devices, 2).transpose(1, 0, 2)
    found: npt.NDArray[np.float64] = by_device[:: -(-devices // TRAJECTORIES_MAX)]
    return found


def _draw_highlight(axes: Axes, highlight: Highlight, width_pt: float) -> None:
    """Draw a path, where it begins and ends, and the regions below it."""
    rings = [np.asarray(ring) for ring in highlight.regions]
    # The more regions, the thinner each: they overlap along the way.
    alpha = float(np.clip(1.6 / max(1, len(rings)), 0.06, 0.25))
    axes.add_collection(PolyCollection(rings, facecolors=_REGION, alpha=alpha, zorder=3))
    axes.add_collection(
        PolyCollection(rings, facecolors="none", edgecolors=_REGION, linewidths=0.7, alpha=0.7, zorder=6)
    )
    lons, lats = np.array(highlight.path).T
    for color, extra_pt, order in (("white", 1.8, 7), (_PATH, 0.0, 8)):
        axes.plot(
            lons,
            lats,
            color=color,
            linewidth=width_pt + extra_pt,
            solid_capstyle="round",
            solid_joinstyle="round",
            zorder=order,
        )
    size_pt = 3.0 * width_pt
    axes.plot(lons[:1], lats[:1], "o", color="white", markeredgecolor=_PATH, markersize=size_pt, zorder=9)
    axes.plot(
        lons[-1:], lats[-1:], "o", color=_PATH, markeredgecolor="white", markersize=size_pt, zorder=9
    )


def _title(axes: Axes, head: str, text: str) -> None:
    axes.text(0.0, 1.045, head, transform=axes.transAxes, fontsize=19, fontweight="bold", color=_INK)
    axes.text(0.0, 1.015, text, transform=axes.transAxes, fontsize=12, color=_INK, alpha=0.75)


def _scale_bar(axes: Axes, shown: Area, frame: Frame) -> None:
    """Draw a bar of a round length, about a fifth of the panel."""
    width_m = (shown.lon_max - shown.lon_min) * frame.x_m_per_deg
    power_m = 10.0 ** math.floor(math.log10(width_m / 5.0))
    length_m = max(power_m * step for step in (1.0, 2.0, 5.0) if power_m * step <= width_m / 4.0)
    share = length_m / width_m
    begin, height = 0.97 - share, 0.03
    label = f"{length_m / 1000.0:g} km" if length_m >= 1000.0 else f"{length_m:g} m"  # noqa: PLR2004
    for color, width_pt in (("white", 5.0), (_INK, 2.0)):
        axes.plot(
            [begin, 0.97],
            [height, height],
            transform=axes.transAxes,
            color=color,
            linewidth=width_pt,
            zorder=10,
        )
    axes.text(
        begin + share / 2.0,
        height + 0.009,
        label,
        transform=axes.transAxes,
        ha="center",
        fontsize=10,
        color=_INK,
        zorder=10,
        bbox={"facecolor": _PAPER, "alpha": 0.8, "linewidth": 0.0, "pad": 1.5},
    )


def _legend(axes: Axes, highlight: Highlight | None) -> Legend:
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=pen.color, linewidth=max(1.2, pen.width_pt), label=road_class.value)
        for road_class, pen in reversed(_PENS.items())
    ]
    handles.append(Line2D([], [], color=_TRAFFIC, linewidth=1.6, alpha=0.7, label="trajectories"))
    handles.append(
        Line2D([], [], color=_OBJECT, marker="o", markersize=4, linestyle="none", label="objects")
    )
    if highlight is not None:
        handles.append(Line2D([], [], color=_PATH, linewidth=2.2, label=highlight.device_id))
        handles.append(Patch(facecolor=_REGION, alpha=0.3, edgecolor=_REGION, label="its safe regions"))
    legend = axes.legend(
        handles=handles,
        loc="lower left",
        fontsize=10,
        frameon=True,
        facecolor=_PAPER,
        edgecolor="#cfc8ba",
        framealpha=0.92,
        labelcolor=_INK,
    )
    legend.set_zorder(11)
    return legend
