"""Draws the steps of `bench.call_steps` as sequence diagrams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from bench.call_steps import PUBLICATION, REPORT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from bench.call_steps import Step

_LINE, _BOX, _EDGE, _INK = "#c4c9cf", "#dbe9f6", "#0b5cad", "#1a1a1a"
_WIDTH, _STEP = 1.0, 0.46
_LOOP = 0.14
"""Width of the arrow of a step within a part."""


def report() -> Figure:
    """Draw a report that changes a top-k result."""
    return _sequence(REPORT, ("device", "transport", "runtime", "session", "core", "engine", "index"))


def publication() -> Figure:
    """Draw the publication of an object that a device has to hold."""
    parts = ("publisher", "device", "transport", "runtime", "store", "session", "core", "engine", "index")
    return _sequence(PUBLICATION, parts)


def _sequence(steps: Sequence[Step], parts: Sequence[str]) -> Figure:
    places = {part: number * _WIDTH for number, part in enumerate(parts)}
    bottom = -(len(steps) + 1) * _STEP
    figure = Figure(figsize=(1.14 * len(parts) + 0.4, 0.3 * len(steps) + 0.8), layout="constrained")
    axes = figure.subplots()
    for part, x in places.items():
        axes.plot([x, x], [0.0, bottom], color=_LINE, linewidth=1.0, zorder=0)
        box = {"boxstyle": "round,pad=0.4", "facecolor": _BOX, "edgecolor": _EDGE}
        axes.text(x, 0.0, part, ha="center", va="center", bbox=box)
    for number, step in enumerate(steps, start=1):
        _draw_step(axes, step, places[step.sender], places[step.receiver], -number * _STEP - 0.1)
    axes.set(xlim=(-0.6, max(places.values()) + 0.6), ylim=(bottom - 0.1, 0.3))
    axes.axis("off")
    return figure


def _draw_step(axes: Axes, step: Step, begin: float, end: float, y: float) -> None:
    label = {"va": "bottom", "fontsize": 7.5, "color": _INK}
    if begin == end:
        loop = [begin, begin + _LOOP, begin + _LOOP]
        axes.plot(loop, [y + 0.12, y + 0.12, y - 0.02], color=_EDGE, linewidth=1.1)
        axes.annotate("", xy=(begin, y - 0.02), xytext=(begin + _LOOP, y - 0.02), arrowprops=_arrow())
        axes.text(begin + _LOOP + 0.05, y - 0.06, step.text, ha="left", **label)
        return
    axes.annotate("", xy=(end, y), xytext=(begin, y), arrowprops=_arrow())
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.text((begin + end) / 2, y + 0.05, step.text, ha="center", bbox=paper, **label)


def _arrow() -> dict[str, object]:
    return {"arrowstyle": "-|>", "color": _EDGE, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
