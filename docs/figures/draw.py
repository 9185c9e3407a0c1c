"""Draws the figures of the documentation from the code that they explain.

`python -m docs.figures.draw` (`make figures`) writes them beside this file; a test compares them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from docs.figures.folders import folders
from docs.figures.sequences import publication, report
from safe_region.earth.frame import Point
from safe_region.regions.anchored import AnchoredRegion
from safe_region.regions.region import Buffered
from safe_region.scoring.formulas import length
from server.session.states import TRANSITIONS, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matplotlib.axes import Axes

FOLDER = Path(__file__).parent
_STYLE = {
    "svg.hashsalt": "nearcast",  # the same file each time
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_RESULT, _HELD, _ABSENT, _REACH, _REGION = "#0b5cad", "#7a8ca0", "#c4c9cf", "#c2402b", "#dbe9f6"

# -- a safe region -------------------------------------------------------------------------------

_OBJECTS, _K, _EXTRA = 24, 3, 4
_ANCHOR = Point(0.0, 0.0)
_VIEW_M = 470.0
_STEPS = 241
_NEVER_MS = 2**60
_HEADING = np.array([0.86, 0.51])
"""Direction in which the device of the figure walks."""


def _objects() -> list[Buffered]:
    """Return objects around the anchor, nearest by length first."""
    rng = np.random.default_rng(5)
    found = [
        Buffered(i, *rng.uniform(-700.0, 700.0, 2), rng.uniform(40.0, 160.0), _NEVER_MS)
        for i in range(24)
    ]
    return sorted(found, key=lambda entry: _length(entry, _ANCHOR))


def _length(entry: Buffered, place: Point) -> float:
    return length(place.x_m - entry.x_m, place.y_m - entry.y_m, entry.r_m)


def _region(objects: list[Buffered], held: int) -> AnchoredRegion:
    """Return the region of a device that holds so many objects."""
    region = AnchoredRegion(_K)
    first_absent = objects[held]
    region.update(_ANCHOR, _length(first_absent, _ANCHOR), first_absent.object_id, objects[:held])
    return region


def safe_region() -> Figure:
    """Draw lengths along a walk, and the region on a map beside that of a device that holds k objects."""
    objects = _objects()
    region = _region(objects, _K + _EXTRA)
    figure = Figure(figsize=(9.6, 5.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_walk(left, objects, region)
    _draw_map(right, objects, region)
    return figure


def _draw_walk(axes: Axes, objects: list[Buffered], region: AnchoredRegion) -> None:
    way_m = np.linspace(0.0, 420.0, _STEPS)
    places = [Point(*(distance_m * _HEADING)) for distance_m in way_m.tolist()]
    evaluations = [region.evaluate(place.x_m, place.y_m, 0) for place in places]
    for entry in objects[: _K + _EXTRA]:
        axes.plot(way_m, [_length(entry, place) for place in places], color=_HELD, linewidth=0.8)
    kth_m = [evaluation.best[-1][0] for evaluation in evaluations]
    axes.plot(way_m, kth_m, color=_RESULT, linewidth=2.2)
    axes.plot(way_m, region.reach_m - way_m, color=_REACH, linewidth=2.2)
    end_m = next(
        distance_m
        for distance_m, evaluation in zip(way_m.tolist(), evaluations, strict=True)
        if not evaluation.exact
    )
    axes.axvspan(0.0, end_m, color=_REGION, zorder=0)
    axes.axvline(end_m, color="black", linewidth=0.8, linestyle=":")
    axes.set(
        xlabel="distance from the anchor along a walk, m",
        ylabel="length, m",
        xlim=(0.0, way_m[-1]),
        ylim=(0.0, region.reach_m * 1.12),
        title=f"The device is silent for {end_m:.0f} m, then it reports",
    )
    axes.text(way_m[-1], kth_m[-1], " k-th best held", color=_RESULT, va="center")
    axes.text(way_m[-1], region.reach_m - way_m[-1], " bound on\n all others", color=_REACH, va="center")
    axes.text(6.0, region.reach_m * 1.03, "reach", color=_REACH)
    axes.text(6.0, region.reach_m * 0.06, "inside the safe region", color=_RESULT)


def _draw_map(axes: Axes, objects: list[Buffered], region: AnchoredRegion) -> None:
    line = np.linspace(-_VIEW_M, _VIEW_M, _STEPS)
    small = _region(objects, _K)
    axes.contourf(line, line, _margins(region, line), levels=[0.0, np.inf], colors=[_REGION])
    axes.contour(line, line, _margins(region, line), levels=[0.0], colors=[_RESULT], linewidths=1.6)
    axes.contour(
        line, line, _margins(small, line), levels=[0.0], colors=["black"], linewidths=1.0, linestyles="--"
    )
    groups = (
        (objects[:_K], _RESULT, "o", f"the result at the anchor (k = {_K})"),
        (objects[_K : _K + _EXTRA], _HELD, "o", f"held as well (b = {_EXTRA})"),
        (objects[_K + _EXTRA :], _ABSENT, "x", "not held"),
    )
    for group, color, marker, label in groups:
        axes.scatter(
            [one.x_m for one in group],
            [one.y_m for one in group],
            c=color,
            marker=marker,
            label=label,
            s=26,
        )
    axes.plot(0.0, 0.0, marker="+", markersize=12, color="black", linestyle="none", label="anchor")
    axes.plot([], [], color=_RESULT, linewidth=1.6, label="safe region")
    axes.plot(
        [], [], color="black", linewidth=1.0, linestyle="--", label="Lamps' ellipses: k objects held"
    )
    axes.set(
        aspect="equal",
        xlim=(-_VIEW_M, _VIEW_M),
        ylim=(-_VIEW_M, _VIEW_M),
        xlabel="east, m",
        ylabel="north, m",
        title="The same region on a map",
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)


def _margins(region: AnchoredRegion, line: np.ndarray) -> np.ndarray:
    """Return by how much the region's test holds, at places of a grid: below zero outside."""
    return np.array([[region.evaluate(x_m, y_m, 0).margin_m for x_m in line] for y_m in line])


# -- the states of a device ----------------------------------------------------------------------

_PLACES = {
    State.IN_SYNC: (0.0, 1.0),
    State.CATCHING_UP: (2.2, 1.0),
    State.DETACHED: (0.0, 0.0),
    State.PARKED: (2.2, 0.0),
}

_LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}


def states() -> Figure:
    """Draw what moves a session from state to state."""
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.subplots()
    for begin, end, label in _arrows():
        (x0, y0), (x1, y1) = _PLACES[begin], _PLACES[end]
        bend = 0.0 if (end, begin) not in {(a, b) for a, b, _ in _arrows()} else 0.22
        axes.annotate(
            "",
            xy=(x1, y1),
            xytext=(x0, y0),
            arrowprops={
                "arrowstyle": "-|>",
                "color": "black",
                "shrinkA": 34,
                "shrinkB": 34,
                "connectionstyle": f"arc3,rad={bend}",
            },
        )
        side = np.array([y1 - y0, x0 - x1])
        shift = side / max(float(np.hypot(*side)), 1e-9) * (0.32 * bend / 0.22 if bend else 0.16)
        if x0 != x1 and y0 != y1:  # diagonals cross in the middle
            x, y = x0 + 0.36 * (x1 - x0), y0 + 0.36 * (y1 - y0)
        else:
            x, y = (x0 + x1) / 2 + shift[0], (y0 + y1) / 2 + 0.5 * shift[1]
        axes.text(x, y, label, ha="center", va="center", fontsize=8, bbox=_LABEL)
    for state, (x, y) in _PLACES.items():
        box = {"boxstyle": "round,pad=0.6", "facecolor": _REGION, "edgecolor": _RESULT}
        axes.text(x, y, state.value, ha="center", va="center", bbox=box)
    axes.set(xlim=(-0.7, 2.9), ylim=(-0.35, 1.35))
    axes.axis("off")
    return figure


def _arrows() -> Iterator[tuple[State, State, str]]:
    """Yield arrows between different states, and what moves a session along them."""
    labels: dict[tuple[State, State], list[str]] = {}
    for (begin, command), end in TRANSITIONS.items():
        if begin is not end:
            labels.setdefault((begin, end), []).append(command.value)
    for (begin, end), commands in labels.items():
        yield begin, end, ", ".join(commands)


FIGURES: dict[str, Callable[[], Figure]] = {
    "safe-region.svg": safe_region,
    "states.svg": states,
    "report.svg": report,
    "publication.svg": publication,
    "folders.svg": folders,
}


def draw(folder: Path) -> None:
    """Write all figures into a folder."""
    with mpl.rc_context(_STYLE):
        for name, make in FIGURES.items():
            make().savefig(folder / name, metadata={"Date": None})


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--to", type=Path, default=FOLDER, help="folder [beside this file]")
    draw(parser.parse_args().to)


if __name__ == "__main__":
    main()
