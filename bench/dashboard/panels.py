"""Draw the panels of the dashboard: each query over the time of a recording."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl

from bench.dashboard.queries import evaluated
from bench.dashboard.recording import Labels, Scrape

FILE = Path(__file__).resolve().parents[2] / "ops" / "grafana" / "nearcast.json"
_COLUMNS = 3
_NAMED_MAX = 4
"""Lines in the legend of a panel in which all lines are 0."""


def panels(file: Path = FILE) -> list[dict[str, Any]]:
    """Return the panels of a dashboard's file."""
    found: list[dict[str, Any]] = json.loads(file.read_text())["panels"]
    return found


def draw(recording: Sequence[Scrape], file: Path) -> None:
    """Draw the panels of one server into a PNG: all but those that compare the nodes of a cluster."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend is chosen

    shown = [panel for panel in panels() if not _compares_nodes(panel)]
    rows = math.ceil(len(shown) / _COLUMNS)
    figure, axes = plt.subplots(rows, _COLUMNS, figsize=(6 * _COLUMNS, 3.2 * rows), squeeze=False)
    for axis in axes.flat[len(shown) :]:
        axis.set_axis_off()
    for axis, panel in zip(axes.flat, shown, strict=False):
        _draw_panel(axis, panel, recording)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=80)
    plt.close(figure)


def _compares_nodes(panel: dict[str, Any]) -> bool:
    return all("{{instance}}" in target["legendFormat"] for target in panel["targets"])


def _draw_panel(axis: Any, panel: dict[str, Any], recording: Sequence[Scrape]) -> None:  # noqa: ANN401
    axis.set_title(panel["title"], fontsize=10)
    axis.grid(visible=True, alpha=0.3)
    if panel["type"] == "heatmap":
        _draw_heatmap(axis, panel, recording)
        return
    for target in panel["targets"]:
        for name, times_s, values in lines(target, recording):
            axis.plot(times_s, values, label=name, linewidth=1.2)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(f"s   ({panel['fieldConfig']['defaults']['unit']})", fontsize=8)
    labelled = [line for line in axis.lines if any(line.get_ydata())] or axis.lines[:_NAMED_MAX]
    if labelled:
        axis.legend(handles=labelled, fontsize=7, loc="upper left")


def lines(
    target: dict[str, Any], recording: Sequence[Scrape]
) -> list[tuple[str, list[float], list[float]]]:
    """Return the lines of a query: name, seconds since the first scrape, values."""
    found: dict[Labels, tuple[list[float], list[float]]] = {}
    for at, scrape in enumerate(recording):
        for labels, value in evaluated(target["expr"], recording, at).items():
            times_s, values = found.setdefault(labels, ([], []))
            times_s.append(scrape.at_s - recording[0].at_s)
            values.append(value)
    named = {labels: _named(target["legendFormat"], dict(labels)) for labels in found}
    return [(named[labels], *found[labels]) for labels in sorted(found, key=lambda one: named[one])]


def _named(legend: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), legend)


def _draw_heatmap(axis: Any, panel: dict[str, Any], recording: Sequence[Scrape]) -> None:  # noqa: ANN401
    """Draw the number of values in each bucket, computed from cumulative counts."""
    target = panel["targets"][0]
    columns = []
    bounds: list[float] = []
    for at in range(len(recording)):
        found = evaluated(target["expr"], recording, at)
        counts = sorted((float(dict(labels)["le"]), count) for labels, count in found.items())
        bounds = [bound for bound, _ in counts]
        below = [0.0, *(count for _, count in counts)]
        columns.append([after - before for before, after in pairwise(below)])
    if not columns or not bounds:
        return
    times_s = [scrape.at_s - recording[0].at_s for scrape in recording]
    extent = (times_s[0], max(times_s[-1], 1.0), 0, len(bounds))
    axis.imshow(list(map(list, zip(*columns, strict=True))), aspect="auto", origin="lower", extent=extent)
    ticks = range(0, len(bounds), max(1, len(bounds) // 6))
    axis.set_yticks(
        [tick + 0.5 for tick in ticks], [f"{bounds[tick]:.3g} s" for tick in ticks], fontsize=7
    )
    axis.grid(visible=False)
