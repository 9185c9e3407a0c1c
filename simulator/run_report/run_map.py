"""The map of a replay: roads, paths of devices, objects, and one device's safe regions.

Roads, paths and objects are drawn as pixels, because there may be very many; outlines on top as vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from safe_region.earth.frame import Frame
from simulator.network.traffic import RoadClass
from simulator.replay.processes import Replayed
from simulator.run_report import theme
from simulator.run_report.charts import Chart
from simulator.world import World

_WIDTH_IN = 8.4
_ASPECT_MAX = 1.4
"""The maximum ratio of the longer side of a map to the shorter."""
_MARGIN = 0.02

_WIDTHS_PT = {
    RoadClass.MOTORWAY: 1.5,
    RoadClass.PRIMARY: 1.2,
    RoadClass.SECONDARY: 0.9,
    RoadClass.TERTIARY: 0.6,
}
_WIDTH_PT = 0.3
"""The width of the other roads."""

Ring = Sequence[tuple[float, float]]
Floats = npt.NDArray[np.float64]


def run_map(world: World, roads: pa.Table, objects: Floats, replayed: Replayed) -> Chart:
    """Draw the map.

    Parameters
    ----------
    world
        The simulation.
    roads
        The table.
    objects
        The positions of some of the objects, (lon, lat) a row.
    replayed
        The paths of devices.
    """
    frame = Frame.of(world.area)
    paths = [np.array(one) for one in replayed.track.paths() if one]
    shown = _extent(roads, paths)
    aspect = frame.y_m_per_deg / frame.x_m_per_deg
    height = (shown[3] - shown[1]) * aspect / (shown[2] - shown[0])
    size = (_WIDTH_IN, _WIDTH_IN * min(max(height, 1.0 / _ASPECT_MAX), _ASPECT_MAX))
    with mpl.rc_context(theme.STYLE):
        figure = Figure(figsize=size)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(shown[0], shown[2])
        axes.set_ylim(shown[1], shown[3])
        axes.set_aspect(aspect)
        _draw_roads(axes, roads)
        _draw_devices(axes, paths)
        _dots(axes, objects, theme.OBJECT, 5.0, zorder=4)
        _draw_highlights(axes, replayed)
        _draw_scale(axes, frame)
        _draw_legend(axes)
    title = "Map"
    text = f"{len(roads):,} edges of roads, paths of {len(paths):,} devices, {len(objects):,} objects."
    return Chart("map", title, text, theme.svg_of(figure, "map", f"Map of {world.name}"))


def _extent(roads: pa.Table, paths: Sequence[Floats]) -> tuple[float, float, float, float]:
    """Return the rectangle of all roads and paths with a margin: west, south, east, north."""
    lons = [roads[name].to_numpy() for name in ("source_lon", "target_lon")]
    lats = [roads[name].to_numpy() for name in ("source_lat", "target_lat")]
    lon, lat = (np.concatenate(one) for one in (lons, lats))
    if paths:
        lon = np.concatenate([lon, *(one[:, 0] for one in paths)])
        lat = np.concatenate([lat, *(one[:, 1] for one in paths)])
    dlon, dlat = _MARGIN * np.ptp(lon) + 1e-9, _MARGIN * np.ptp(lat) + 1e-9
    return (
        float(lon.min() - dlon),
        float(lat.min() - dlat),
        float(lon.max() + dlon),
        float(lat.max() + dlat),
    )


def _draw_roads(axes: Axes, roads: pa.Table) -> None:
    begins = np.column_stack([roads["source_lon"].to_numpy(), roads["source_lat"].to_numpy()])
    ends = np.column_stack([roads["target_lon"].to_numpy(), roads["target_lat"].to_numpy()])
    classes = np.asarray(roads["road_class"].to_pylist())
    for road_class in RoadClass:
        is_it = classes == road_class.value
        axes.add_collection(
            LineCollection(
                list(np.stack([begins[is_it], ends[is_it]], axis=1)),
                colors=theme.ROAD,
                linewidths=_WIDTHS_PT.get(road_class, _WIDTH_PT),
                alpha=0.8,
                zorder=1,
                rasterized=True,
            )
        )


def _draw_devices(axes: Axes, paths: Sequence[Floats]) -> None:
    axes.add_collection(
        LineCollection(
            list(paths), colors=theme.TRAFFIC, linewidths=1.0, alpha=0.4, zorder=2, rasterized=True
        )
    )
    ends = np.array([one[-1] for one in paths]).reshape(-1, 2)
    _dots(axes, ends, theme.TRAFFIC, 9.0, zorder=3)


def _dots(axes: Axes, places: Floats, color: str, area_pt: float, zorder: int) -> None:
    lons, lats = places.T
    axes.scatter(lons, lats, area_pt, color, alpha=0.8, linewidths=0.0, zorder=zorder, rasterized=True)


def _draw_highlights(axes: Axes, replayed: Replayed) -> None:
    """Draw the paths of two devices, the safe regions of one and the range of the other."""
    tracks = replayed.track, replayed.range_track
    for track, color in zip(tracks, (theme.PATH, theme.SECOND), strict=True):
        device_id = track.most_telling()
        if not device_id:
            continue
        _draw_rings(axes, track.regions(device_id), color)
        for ring, style in zip(track.ranges(device_id), ("-", "--"), strict=False):
            axes.plot(*np.array(ring).T, style, color=color, linewidth=1.3, zorder=6)
        path = np.array(track.path(device_id))
        axes.plot(*path.T, color=theme.SURFACE, linewidth=4.0, zorder=7, solid_capstyle="round")
        axes.plot(*path.T, color=color, linewidth=2.0, zorder=8, solid_capstyle="round")
        axes.plot(*path[:1].T, "o", color=theme.SURFACE, markeredgecolor=color, markersize=6.0, zorder=9)
        axes.plot(*path[-1:].T, "o", color=color, markeredgecolor=theme.SURFACE, markersize=7.0, zorder=9)


def _draw_rings(axes: Axes, rings: Sequence[Ring], color: str) -> None:
    shapes = [np.array(ring) for ring in rings]
    axes.add_collection(PolyCollection(shapes, facecolors=color, alpha=0.06, zorder=5))
    axes.add_collection(
        PolyCollection(
            shapes, facecolors="none", edgecolors=color, linewidths=0.8, alpha=0.75, zorder=5.5
        )
    )


def _draw_scale(axes: Axes, frame: Frame) -> None:
    """Draw a bar of a round length, at most a quarter of the map."""
    low, high = axes.get_xlim()
    width_m = (high - low) * frame.x_m_per_deg
    power_m = 10.0 ** math.floor(math.log10(width_m / 4.0))
    length_m = max(power_m * step for step in (1.0, 2.0, 5.0) if power_m * step <= width_m / 4.0)
    label = f"{length_m / 1000.0:g} km" if length_m >= 1000.0 else f"{length_m:g} m"  # noqa: PLR2004
    begin = 0.97 - length_m / width_m
    axes.plot(
        [begin, 0.97], [0.03, 0.03], transform=axes.transAxes, color=theme.INK, linewidth=2.0, zorder=10
    )
    middle = (begin + 0.97) / 2.0
    axes.text(middle, 0.038, label, ha="center", transform=axes.transAxes, color=theme.INK, zorder=10)


def _draw_legend(axes: Axes) -> None:
    handles = [
        Line2D([], [], color=theme.TRAFFIC, linewidth=2.0, label="devices"),
        Line2D([], [], color=theme.OBJECT, marker="o", linestyle="none", label="objects"),
        Line2D([], [], color=theme.PATH, linewidth=2.0, label="a device, its safe regions"),
        Line2D([], [], color=theme.SECOND, linewidth=2.0, label="a device, its moving range"),
    ]
    legend = axes.legend(
        handles=handles,
        loc="upper left",
        frameon=True,
        facecolor=theme.SURFACE,
        edgecolor=theme.GRID,
        framealpha=0.9,
    )
    legend.set_zorder(11)
