"""Pictures of benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.reports import Row

mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})

_PARTS = ("generated", "expired", "moved")
_COLOURS = {"generated": "#2a6f97", "expired": "#e09f3e", "moved": "#9e2a2b"}
_FIELDS = ("k_max", "subscriptions", "objects", "updates", "expired_share", "alpha", "similarity")


def plot_lamps(rows: Sequence[Row], path: Path) -> None:
    """Draw one panel an experiment: bars of the parts of a tick."""
    experiments = list(dict.fromkeys(row["experiment"] for row in rows))
    height = 2.8 * len(experiments)
    figure = Figure(figsize=(8.0, height), layout="constrained")
    panels = figure.subplots(len(experiments), 1, squeeze=False)
    for panel, experiment in zip(panels[:, 0], experiments, strict=True):
        mine = [row for row in rows if row["experiment"] == experiment]
        if "update_ms_median" in mine[0]:
            _bars(panel, mine)
        else:
            _lines(panel, mine)
        panel.set_title(experiment, loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _name(row: Row, rows: Sequence[Row]) -> str:
    """Name a row by its variant and by what was varied."""
    varied = [field for field in _FIELDS if len({str(one.get(field)) for one in rows}) > 1]
    return "\n".join([str(row["variant"]), *(f"{field} {row.get(field)}" for field in varied)])


def _bars(panel: Axes, rows: Sequence[Row]) -> None:
    places = range(len(rows))
    lowest = [0.0] * len(rows)
    for part in _PARTS:
        heights = [row[f"{part}_ms_median"] for row in rows]
        panel.bar(places, heights, bottom=lowest, width=0.6, label=part, color=_COLOURS[part])
        lowest = [low + height for low, height in zip(lowest, heights, strict=True)]
    for place, total in zip(places, lowest, strict=True):
        panel.annotate(f"{total:.3g}", (place, total), ha="center", va="bottom", fontsize=7)
    size = max(4, 8 - len(rows) // 4)
    panel.set_xticks(list(places), [_name(row, rows) for row in rows], fontsize=size)
    if max(lowest) > 30 * min(lowest):
        panel.set_yscale("log")
    panel.set_ylabel("ms a tick (median)")
    panel.legend(frameon=False, ncols=3, fontsize=7)


def _lines(panel: Axes, rows: Sequence[Row]) -> None:
    """Draw what a structure's figure says it measures (`x`, `y` name the columns)."""
    x, y = rows[0]["x"], rows[0]["y"]
    for variant in dict.fromkeys(row["variant"] for row in rows):
        mine = [row for row in rows if row["variant"] == variant]
        panel.plot([row[x] for row in mine], [row[y] for row in mine], marker="o", label=variant)
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    panel.legend(frameon=False, fontsize=7)


PLOTS: dict[str, Callable[[Sequence[Row], Path], None]] = {"lamps": plot_lamps}
