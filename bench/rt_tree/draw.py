"""The picture of `bench rt-tree`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.panels import lines
from bench.reports import Row


def plot_rt_tree(rows: Sequence[Row], path: Path) -> None:
    """Draw one panel an experiment and data set: bars in groups of objects, or lines by size."""
    keys = list(dict.fromkeys((row["experiment"], row["data"]) for row in rows))
    figure = Figure(figsize=(8.0, 2.8 * len(keys)), layout="constrained")
    panels = figure.subplots(len(keys), 1, squeeze=False)
    for panel, (experiment, data) in zip(panels[:, 0], keys, strict=True):
        mine = [row for row in rows if (row["experiment"], row["data"]) == (experiment, data)]
        if mine[0].get("x") == "subscriptions":
            lines(panel, [{**row, "variant": row["group"]} for row in mine])
        else:
            _bars(panel, [{"group": "", **row} for row in mine])
        panel.set_title(f"{experiment}, {data}", loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _bars(panel: Axes, rows: Sequence[Row]) -> None:
    """Draw a group of bars a group of objects, a bar a variant."""
    groups = list(dict.fromkeys(row["group"] for row in rows))
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    width = 0.8 / len(variants)
    for number, variant in enumerate(variants):
        mine = [row for row in rows if row["variant"] == variant]
        places = [groups.index(row["group"]) + (number - len(variants) / 2) * width for row in mine]
        heights = [row["us_per_object_batch"] for row in mine]
        panel.bar(places, heights, width=width, label=variant)
        for place, height in zip(places, heights, strict=True):
            panel.annotate(f"{height:,.3g}", (place, height), ha="center", va="bottom", fontsize=6)
    panel.set_xticks(range(len(groups)), groups, fontsize=7)
    panel.set_yscale("log")
    panel.set_ylabel("us an object, in a batch")
    panel.legend(frameon=False, fontsize=7, ncols=4, loc="lower left", bbox_to_anchor=(0.3, 1.0))
