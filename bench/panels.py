"""Panels that several pictures of benchmarks have."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from bench.reports import Row

LOG_FROM = 10.0
"""A panel whose largest value is so many times its least is drawn to a logarithmic scale."""


def lines(panel: Axes, rows: Sequence[Row]) -> None:
    """Draw a line a variant; `x` and `y` of a row name its columns."""
    x, y = rows[0]["x"], rows[0]["y"]
    for variant in dict.fromkeys(row["variant"] for row in rows):
        mine = [row for row in rows if row["variant"] == variant]
        panel.plot([row[x] for row in mine], [row[y] for row in mine], marker="o", label=variant)
    values = [row[y] for row in rows]
    if max(values) > LOG_FROM * min(values):
        panel.set_yscale("log")
    else:
        panel.set_ylim(0.0, 1.15 * max(values))
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    panel.legend(frameon=False, fontsize=7)


def grouped_bars(panel: Axes, rows: Sequence[Row], names: Sequence[str]) -> None:
    """Draw a group of bars a row, a bar for each column that is named."""
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        heights = [max(0.0, row[name]) for row in rows]
        places = [place + (number - (len(names) - 1) / 2.0) * width for place in range(len(rows))]
        panel.bar(places, heights, width=width, label=name)
        for place, height in zip(places, heights, strict=True):
            panel.annotate(f"{height:,.3g}", (place, height), ha="center", va="bottom", fontsize=6)
    panel.set_yscale("log")
    panel.legend(frameon=False, fontsize=7, ncols=len(names), loc="lower left", bbox_to_anchor=(0.3, 1.0))
