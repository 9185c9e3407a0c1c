"""The picture of `bench dskype`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench.panels import grouped_bars, lines
from bench.reports import Row


def plot_dskype(rows: Sequence[Row], path: Path) -> None:
    """Draw one panel an experiment and data set: lines where something is varied, else bars."""
    keys = list(dict.fromkeys((row["experiment"], row["data"]) for row in rows))
    figure = Figure(figsize=(8.0, 2.8 * len(keys)), layout="constrained")
    panels = figure.subplots(len(keys), 1, squeeze=False)
    for panel, (experiment, data) in zip(panels[:, 0], keys, strict=True):
        mine = [row for row in rows if (row["experiment"], row["data"]) == (experiment, data)]
        if "x" in mine[0]:
            lines(panel, mine)
        else:
            grouped_bars(panel, mine, ("messages_per_s",))
            panel.set_xticks(range(len(mine)), [row["variant"] for row in mine])
            panel.set_ylabel("messages a second")
        panel.set_title(f"{experiment}, {data}", loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
