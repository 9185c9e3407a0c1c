"""A map of a simulation: streets, all trajectories, objects, one device's safe regions.

It is drawn in degrees with the aspect of the area's middle latitude. With a highlighted device the
picture has a second panel with a close-up of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from safe_region.earth.frame import Area, Frame
from simulator.pictures import map_style
from simulator.pictures.map_furniture import draw_legend, draw_scale_bar, draw_title, emptiest_corner
from simulator.simulation import Simulation

Ring = Sequence[tuple[float, float]]

TRAJECTORIES_MAX = 2_000
"""More lines only make the map dark."""

_PANEL_IN = 10.0
_WITH_TITLE = 1.06
"""The ratio of the height of a panel with its title to its width."""

_PATH_PT = 1.6
_SCALE_MAX = 3.0
"""The maximum factor of pens in the second panel."""

_DPI = 150
_MARGIN = 0.02
_CLOSE_M_MIN = 1_200.0
_CLOSE_M_MAX = 4_000.0
"""Limits of the width of the second panel."""

_CASING_PT = 0.7
_REGION_ALPHA = 0.22

RANGES_MAX = 40
"""More outlines hide the map."""
_CIRCLE_CORNERS = 64

PLACES_MAX = 200
"""More marks hide the map, too."""


@dataclass(frozen=True, slots=True)
class Highlight:
    """A device to show in close-up.

    Parameters
    ----------
    device_id
        The device.
    path
        Its positions as (lon, lat), in order.
    regions
        The safe regions it received, each a ring of (lon, lat).
    ranges
        Its moving range at its last position, and the range of which it holds all matches; empty if it
        has none.
    """

    device_id: str
    path: Ring
    regions: Sequence[Ring]
    ranges: Sequence[Ring] = ()


def draw_map(simulation: Simulation, highlights: Sequence[Highlight], out_png: Path) -> None:
    """Draw a simulation to a PNG file.

    Parameters
    ----------
    simulation
        The simulation.
    highlights
        Devices to show in close-up, a panel each; the first is also on the map of everything.
    out_png
        The file; replaced if it exists.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    highlights = [one for one in highlights if len(one.path)]
    panel_count = 1 + len(highlights)
    size = (_PANEL_IN * panel_count, _PANEL_IN * _WITH_TITLE)
    figure = Figure(figsize=size, facecolor=map_style.PAPER)
    panels = figure.subplots(1, panel_count, squeeze=False)[0]
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.93, wspace=0.015)
    _draw_city(panels[0], simulation, highlights[0] if highlights else None)
    for panel, highlight in zip(panels[1:], highlights, strict=True):
        near = _neighbourhood(highlight, Frame.of(simulation.world.area))
        _draw_neighbourhood(panel, simulation, highlight, near)
        panels[0].add_patch(_outline(near))
    figure.savefig(out_png, dpi=_DPI, facecolor=map_style.PAPER)


def _draw_city(axes: Axes, simulation: Simulation, highlight: Highlight | None) -> None:
    """Draw the panel that shows everything."""
    shown = _extent(simulation)
    _draw_panel(axes, simulation, shown, 1.0)
    ranges = fixed_ranges(simulation.subscriptions, Frame.of(simulation.world.area))
    axes.add_collection(
        PolyCollection(
            ranges, facecolors="none", edgecolors=map_style.RANGE, linewidths=0.9, alpha=0.6, zorder=5.5
        )
    )
    places = stationary_places(simulation.subscriptions)
    axes.plot(
        *places.T, "D", color=map_style.STATIONARY, markersize=6.0, markeredgecolor="white", zorder=5.6
    )
    if highlight is not None:
        _draw_highlight(axes, highlight, _PATH_PT)
    world = simulation.world
    counts = ", ".join(f"{simulation.row_count(one):,} {one}" for one in ("devices", "objects"))
    text = f"{counts}, {world.seconds / 60.0:.3g} minutes"
    draw_title(axes, world.name, text)
    corner = emptiest_corner(simulation.roads, shown)
    road_classes = set(simulation.roads["road_class"].unique().to_pylist())
    highlighted = highlight.device_id if highlight is not None else None
    draw_legend(
        axes,
        corner,
        road_classes,
        highlighted,
        has_ranges=bool(ranges),
        has_places=bool(len(places)),
    )


def _draw_neighbourhood(axes: Axes, simulation: Simulation, highlight: Highlight, near: Area) -> None:
    """Draw the close-up panel."""
    shown = _extent(simulation)
    zoom = (shown.lon_max - shown.lon_min) / (near.lon_max - near.lon_min)
    scale = min(_SCALE_MAX, math.sqrt(zoom))
    _draw_panel(axes, simulation, near, scale)
    _draw_highlight(axes, highlight, _PATH_PT * math.sqrt(scale))
    text = f"{len(highlight.regions):,} safe regions in all"
    if highlight.ranges:
        text += "; green: its range, dashed: the range of the matches that it holds"
    draw_title(axes, highlight.device_id, text)


def _outline(area: Area) -> Rectangle:
    width, height = area.lon_max - area.lon_min, area.lat_max - area.lat_min
    corner = (area.lon_min, area.lat_min)
    return Rectangle(corner, width, height, fill=False, edgecolor=map_style.PATH, linewidth=1.0, zorder=9)


def _extent(simulation: Simulation) -> Area:
    """Return the square, on the ground, that contains all streets."""
    roads = simulation.roads
    lons, lats = roads["source_lon"].to_numpy(), roads["source_lat"].to_numpy()
    return _square(lons, lats, Frame.of(simulation.world.area), 0.0)


def _neighbourhood(highlight: Highlight, frame: Frame) -> Area:
    """Return a square about the middle of a device's path, of limited size.

    If the device has a moving range, the square contains all of it.
    """
    lons, lats = np.array(highlight.path).T
    if highlight.ranges:
        rings = np.concatenate([highlight.path, *highlight.ranges])
        return _square(rings[:, 0], rings[:, 1], frame, _CLOSE_M_MIN)
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
    """Draw the elements of both panels; `scale` widens pens for the closer one."""
    axes.set_xlim(shown.lon_min, shown.lon_max)
    axes.set_ylim(shown.lat_min, shown.lat_max)
    frame = Frame.of(simulation.world.area)
    axes.set_aspect(frame.y_m_per_deg / frame.x_m_per_deg)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_facecolor(map_style.PAPER)
    for spine in axes.spines.values():
        spine.set(color=map_style.EDGE, linewidth=0.8)
    axes.add_collection(
        PolyCollection(
            [np.asarray(ring) for ring in simulation.world.water],
            facecolors=map_style.WATER,
            edgecolors=map_style.WATER,  # rings may touch: no seams
            linewidths=0.5,
            zorder=0.5,
        )
    )
    _draw_roads(axes, simulation.roads, scale)
    paths = paths_of(simulation)
    alpha = float(np.clip(60.0 / len(paths), 0.10, 0.5))
    axes.add_collection(
        LineCollection(paths, colors=map_style.TRAFFIC, linewidths=0.9 * scale, alpha=alpha, zorder=4)
    )
    objects = simulation.objects
    axes.scatter(
        objects["lon"].to_numpy(),
        objects["lat"].to_numpy(),
        s=4.0 * scale**2,
        color=map_style.OBJECT,
        alpha=0.55,
        linewidths=0.0,
        zorder=5,
    )
    draw_scale_bar(axes, shown, frame)


def _draw_roads(axes: Axes, roads: pa.Table, scale: float) -> None:
    begins = np.column_stack([roads["source_lon"].to_numpy(), roads["source_lat"].to_numpy()])
    ends = np.column_stack([roads["target_lon"].to_numpy(), roads["target_lat"].to_numpy()])
    segments = np.stack([begins, ends], axis=1)
    classes = np.asarray(roads["road_class"].to_pylist())
    # All casings first, so that crossings stay open.
    for cased in (True, False):
        for order, (road_class, pen) in enumerate(map_style.PENS.items()):
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


def fixed_ranges(subscriptions: pa.Table, frame: Frame) -> list[npt.NDArray[np.float64]]:
    """Return outlines, (lon, lat) a row, of ranges that are fixed in place; if many, only some."""
    outlines = []
    columns = (subscriptions[name].to_pylist() for name in ("bounds", "center", "radius_m"))
    for bounds, center, radius_m in zip(*columns, strict=True):
        if bounds is not None:
            lon_min, lat_min, lon_max, lat_max = bounds
            lons, lats = [lon_min, lon_max, lon_max, lon_min], [lat_min, lat_min, lat_max, lat_max]
            outlines.append(np.column_stack([lons, lats]))
        elif center is not None:
            turn = np.linspace(0.0, 2.0 * np.pi, _CIRCLE_CORNERS, endpoint=False)
            lon = center[0] + radius_m / frame.x_m_per_deg * np.cos(turn)
            lat = center[1] + radius_m / frame.y_m_per_deg * np.sin(turn)
            outlines.append(np.column_stack([lon, lat]))
    return outlines[:: max(1, -(-len(outlines) // RANGES_MAX))]


def stationary_places(subscriptions: pa.Table) -> npt.NDArray[np.float64]:
    """Return the places of stationary subscriptions, (lon, lat) a row; if many, only some."""
    places = [place for place in subscriptions["place"].to_pylist() if place is not None]
    shown = places[:: max(1, -(-len(places) // PLACES_MAX))]
    return np.array(shown, np.float64).reshape(-1, 2)


def paths_of(simulation: Simulation) -> list[npt.NDArray[np.float64]]:
    """Return the paths of devices, (lon, lat) a row; if many, only some. Reads slice by slice."""
    ids = simulation.devices["device_id"]
    shown = ids.take(pa.array(range(0, len(ids), -(-len(ids) // TRAJECTORIES_MAX))))
    chosen = shown.combine_chunks()
    parts = [found.filter(pc.is_in(found["device_id"], chosen)) for found in simulation.slices()]
    rows = pa.concat_tables(parts)
    devices = pc.index_in(rows["device_id"], chosen).to_numpy()
    order = np.argsort(devices, kind="stable")
    positions = np.column_stack([rows["lon"].to_numpy(), rows["lat"].to_numpy()])[order]
    ends = np.searchsorted(devices[order], np.arange(1, len(shown)))
    return np.split(positions, ends)


def _draw_regions(axes: Axes, rings: Sequence[npt.NDArray[np.float64]]) -> None:
    """Draw regions under the streets, in colours from the first to the last."""
    (x_min, x_max), (y_min, y_max) = axes.get_xlim(), axes.get_ylim()
    panel = (x_max - x_min) * (y_max - y_min)
    coverage = sum(min(1.0, abs(_signed_area(ring)) / panel) for ring in rings)
    # Overlapping regions must not hide the map: large regions are more transparent.
    alpha = float(np.clip(_REGION_ALPHA / max(1.0, coverage), 0.03, 0.2))
    colors = LinearSegmentedColormap.from_list("regions", [map_style.REGION, map_style.REGION_LAST])
    shades = colors(np.linspace(0.0, 1.0, max(1, len(rings))))
    axes.add_collection(PolyCollection(rings, facecolors=shades, alpha=alpha, zorder=0.8))
    axes.add_collection(
        PolyCollection(rings, facecolors="none", edgecolors=shades, linewidths=1.1, alpha=0.85, zorder=6)
    )


def _signed_area(ring: npt.NDArray[np.float64]) -> float:
    x, y = (ring - ring[0]).T
    return float(x[:-1] @ y[1:] - x[1:] @ y[:-1]) / 2.0


def _draw_highlight(axes: Axes, highlight: Highlight, width_pt: float) -> None:
    """Draw a path, its start (open dot) and end (full dot), and the regions below it."""
    _draw_regions(axes, [np.asarray(ring) for ring in highlight.regions])
    for ring, style in zip(highlight.ranges, ("-", "--"), strict=False):
        axes.plot(*np.array(ring).T, style, color=map_style.RANGE, linewidth=1.6, zorder=6.5)
    lons, lats = np.array(highlight.path).T
    for color, extra_pt, order in (("white", 1.8, 7), (map_style.PATH, 0.0, 8)):
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
    axes.plot(
        lons[:1],
        lats[:1],
        "o",
        color="white",
        markeredgecolor=map_style.PATH,
        markersize=size_pt,
        zorder=9,
    )
    axes.plot(
        lons[-1:],
        lats[-1:],
        "o",
        color=map_style.PATH,
        markeredgecolor="white",
        markersize=size_pt,
        zorder=9,
    )
