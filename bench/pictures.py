"""Draw pictures of results: a panel for each plot that an experiment's data declare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.benchmark import Row
from bench.experiment import Bars, Course, Lines, Plot, Scatter
from bench.results import Result

mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})

_LOG_FROM = 10.0
"""A panel whose largest value exceeds its least by this factor has a logarithmic scale."""
_COLUMNS = 2
_STYLES = ("o-", "s--", ".:")
_HEIGHT = 3.2


def draw(results: Sequence[tuple[Result, Sequence[Plot]]], path: Path) -> None:
    """Draw all plots of results that have rows for them, into a PNG."""
    panels = [
        (f"{result.experiment}{named}", plot, rows, result.metrics)
        for result, plots in results
        for plot in plots
        for named, rows in _parts(result.rows, plot)
    ]
    columns = min(_COLUMNS, max(1, len(panels)))
    lines = max(1, -(-len(panels) // columns))
    height = _HEIGHT * lines + max((_extra(plot, rows) for _, plot, rows, _ in panels), default=0.0)
    figure = Figure(figsize=(8.0 * columns, height), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, (title, plot, rows, units) in zip(axes.flat, panels, strict=False):
        _drawn(axis, plot, rows)
        axis.set_title(title, loc="left")
        if isinstance(plot, Lines):
            named = [f"{y}, {units[y]}" if y in units else y for y in plot.y]
            axis.set_ylabel("\n".join(named), fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150 if lines * _HEIGHT < 200 else 60)  # noqa: PLR2004 - 65,536 pixels at most


def _drawn(axis: Axes, plot: Plot, rows: Sequence[Row]) -> None:
    """Draw a plot of rows that have its columns."""
    match plot:
        case Lines():
            _lines(axis, plot, rows)
        case Bars():
            _bars(axis, plot, rows)
        case Scatter():
            _scatter(axis, plot, rows)
        case Course():
            _course(axis, plot, rows)


def _parts(rows: Sequence[Row], plot: Plot) -> list[tuple[str, list[Row]]]:
    """Divide the rows of a plot by the column that has panels of its own; name the parts."""
    rows = [row for row in rows if all(row.get(name) is not None for name in _needed(plot))]
    each = plot.each if isinstance(plot, Scatter) else "data"
    values = list(dict.fromkeys(row.get(each) for row in rows))
    named = [f", {value}" if len(values) > 1 or each != "data" else "" for value in values]
    return [
        (name, [row for row in rows if row.get(each) == value])
        for name, value in zip(named, values, strict=True)
    ]


def _needed(plot: Plot) -> tuple[str, ...]:
    if isinstance(plot, Bars):
        return plot.heights
    if isinstance(plot, Course):
        return (plot.samples,)
    return (plot.x, *plot.y) if isinstance(plot, Lines) else (plot.x, plot.y)


def _extra(plot: Plot, rows: Sequence[Row]) -> float:
    """Return the additional inches of a panel with many names."""
    return max(0.0, 0.35 * len(rows) - _HEIGHT) if isinstance(plot, Bars) and plot.is_flat else 0.0


def _lines(axis: Axes, plot: Lines, rows: Sequence[Row]) -> None:
    """Draw a line for each name and y."""
    for number, name in enumerate(dict.fromkeys(row[plot.by] for row in rows)):
        mine = [row for row in rows if row[plot.by] == name]
        for style, y in zip(_STYLES, plot.y, strict=False):
            label = str(name) if y == plot.y[0] else None
            xs, ys = [row[plot.x] for row in mine], [row[y] for row in mine]
            axis.plot(xs, ys, style, color=f"C{number}", label=label)
    values = [row[y] for row in rows for y in plot.y]
    if max(values) > _LOG_FROM * min(values) and max(values) > 0:
        axis.set_yscale("log" if min(values) > 0 else "symlog")
    else:
        axis.set_ylim(0.0, 1.15 * max(values) or 1.0)
    if plot.log == "x":
        axis.set_xscale("log")
    axis.set_xlabel(plot.x)
    axis.legend(frameon=False, fontsize=7)


def _bars(axis: Axes, plot: Bars, rows: Sequence[Row]) -> None:
    """Draw a group of bars for each row."""
    count = 1 if plot.is_stacked else len(plot.heights)
    width = 0.8 / count
    floors = [0.0] * len(rows)
    for number, name in enumerate(plot.heights):
        heights = [max(0.0, row[name]) for row in rows]
        shift = 0.0 if plot.is_stacked else (number - (count - 1) / 2.0) * width
        places = [place + shift for place in range(len(rows))]
        if plot.is_flat:
            axis.barh(places, heights, height=width, left=floors, label=name)
        else:
            axis.bar(places, heights, width=width, bottom=floors, label=name)
        for place, floor, height in zip(places, floors, heights, strict=True):
            point = (height, place) if plot.is_flat else (place, floor + height)
            ha, va = ("left", "center") if plot.is_flat else ("center", "bottom")
            axis.annotate(f"{height:,.3g}", point, ha=ha, va=va, fontsize=6)
        if plot.is_stacked:
            floors = [floor + height for floor, height in zip(floors, heights, strict=True)]
    names = ["\n".join(str(row[name]) for name in plot.names if name in row) for row in rows]
    if plot.is_flat:
        axis.set_yticks(range(len(rows)), names, fontsize=7)
        axis.invert_yaxis()
    else:
        axis.set_xticks(range(len(rows)), names, fontsize=6, rotation=30, ha="right")
    if not plot.is_stacked:
        (axis.set_xscale if plot.is_flat else axis.set_yscale)("log")
    axis.legend(frameon=False, fontsize=7, loc="lower left", bbox_to_anchor=(0.3, 1.0), ncols=3)


def _scatter(axis: Axes, plot: Scatter, rows: Sequence[Row]) -> None:
    """Draw a point for each row; some are joined. Stale variants are grey, with their stale share."""
    pairs = [(row[plot.x], row[plot.y]) for row in rows]
    is_joined = [re.match(plot.curve, row["variant"]) is not None for row in rows]
    curve = [pair for pair, joined in zip(pairs, is_joined, strict=True) if joined]
    axis.plot([x for x, _ in curve], [y for _, y in curve], color="C0", marker="o")
    for pair, row, joined in zip(pairs, rows, is_joined, strict=True):
        stale = row.get("stale_share", 0.0)
        name = f"{row['variant']} ({stale:.0%} stale)" if stale > 0.0 else str(row["variant"])
        if not joined:
            axis.plot(*pair, marker="s", color="C7" if stale > 0.0 else "C1")
        below = 4 if joined else -10
        axis.annotate(name, pair, xytext=(5, below), textcoords="offset points", fontsize=7)
    for side, set_scale in enumerate((axis.set_xscale, axis.set_yscale)):
        values = [pair[side] for pair in pairs]
        if max(values) > _LOG_FROM * min(values):
            set_scale("log" if min(values) > 0.0 else "symlog")
    axis.margins(0.15)
    axis.set_xlabel(plot.x)
    axis.set_ylabel(plot.y)


def _course(axis: Axes, plot: Course, rows: Sequence[Row]) -> None:
    """Draw samples over time."""
    for row in rows:
        axis.plot(*zip(*row[plot.samples], strict=True), label=str(row["variant"]))
    axis.set_xlabel("seconds")
    axis.set_ylabel(plot.what)
    axis.set_ylim(0.0, None)
