"""Elements beside the map: title, scale bar, legend."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from safe_region.earth.frame import Area, Frame
from simulator.pictures import map_style

Corner = Literal["upper left", "lower left", "upper right"]

_LEGEND_SHARE = 0.27
"""About the fraction of the panel's width and height that the legend takes."""


def draw_title(axes: Axes, head: str, text: str) -> None:
    """Write a head and a line of text above a panel."""
    axes.text(
        0.0, 1.045, head, transform=axes.transAxes, fontsize=19, fontweight="bold", color=map_style.INK
    )
    axes.text(0.0, 1.015, text, transform=axes.transAxes, fontsize=12, color=map_style.INK, alpha=0.75)


def draw_scale_bar(axes: Axes, shown: Area, frame: Frame) -> None:
    """Draw a bar of a round length, about a fifth of the panel."""
    width_m = (shown.lon_max - shown.lon_min) * frame.x_m_per_deg
    power_m = 10.0 ** math.floor(math.log10(width_m / 5.0))
    length_m = max(power_m * step for step in (1.0, 2.0, 5.0) if power_m * step <= width_m / 4.0)
    share = length_m / width_m
    begin, height = 0.97 - share, 0.03
    label = f"{length_m / 1000.0:g} km" if length_m >= 1000.0 else f"{length_m:g} m"  # noqa: PLR2004
    for color, width_pt in (("white", 5.0), (map_style.INK, 2.0)):
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
        color=map_style.INK,
        zorder=10,
        bbox={"facecolor": map_style.PAPER, "alpha": 0.8, "linewidth": 0.0, "pad": 1.5},
    )


def emptiest_corner(roads: pa.Table, shown: Area) -> Corner:
    """Return the corner where a legend covers the fewest streets; the scale bar has the fourth."""
    x = (roads["source_lon"].to_numpy() - shown.lon_min) / (shown.lon_max - shown.lon_min)
    y = (roads["source_lat"].to_numpy() - shown.lat_min) / (shown.lat_max - shown.lat_min)
    covered: dict[Corner, npt.NDArray[np.bool_]] = {
        "upper left": (x < _LEGEND_SHARE) & (y > 1.0 - _LEGEND_SHARE),
        "lower left": (x < _LEGEND_SHARE) & (y < _LEGEND_SHARE),
        "upper right": (x > 1.0 - _LEGEND_SHARE) & (y > 1.0 - _LEGEND_SHARE),
    }
    return min(covered, key=lambda corner: np.count_nonzero(covered[corner]))


def _mark(color: str, marker: str, label: str) -> Line2D:
    return Line2D([], [], color=color, marker=marker, markersize=4, linestyle="none", label=label)


def draw_legend(
    axes: Axes,
    corner: Corner,
    road_classes: set[str],
    highlighted: str | None,
    *,
    has_ranges: bool,
    has_places: bool,
) -> None:
    """Draw the legend: pens of the present road classes, colours, and the highlighted device."""
    handles: list[Artist] = [
        Line2D([], [], color=pen.color, linewidth=max(1.2, pen.width_pt), label=road_class.value)
        for road_class, pen in reversed(map_style.PENS.items())
        if road_class.value in road_classes
    ]
    handles.append(
        Line2D([], [], color=map_style.TRAFFIC, linewidth=1.6, alpha=0.7, label="trajectories")
    )
    handles.append(_mark(map_style.OBJECT, "o", "objects"))
    if has_ranges:
        handles.append(
            Line2D([], [], color=map_style.RANGE, linewidth=1.0, label="fixed ranges (boolean)")
        )
    if has_places:
        handles.append(_mark(map_style.STATIONARY, "D", "stationary subscriptions (top-k)"))
    if highlighted is not None:
        handles.append(Line2D([], [], color=map_style.PATH, linewidth=2.2, label=highlighted))
        handles.append(
            Patch(
                facecolor=map_style.REGION,
                alpha=0.3,
                edgecolor=map_style.REGION,
                label="its safe regions, violet to pink",
            )
        )
    legend = axes.legend(
        handles=handles,
        loc=corner,
        fontsize=10,
        frameon=True,
        facecolor=map_style.PAPER,
        edgecolor=map_style.EDGE,
        framealpha=0.92,
        labelcolor=map_style.INK,
    )
    legend.set_zorder(11)
