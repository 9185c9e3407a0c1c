"""The picture of `bench skype`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench.panels import grouped_bars, lines
from bench.reports import Row


def plot_skype(rows: Sequence[Row], path: Path) -> None:
    """Draw one panel an experiment and data set: lines where something is varied, else bars."""
    keys = list(dict.fromkeys((row["experiment"], row["data"]) for row in rows))
    figure = Figure(figsize=(8.0, 2.8 * len(keys)), layout="constrained")
    panels = figure.subplots(len(keys), 1, squeeze=False)
    for panel, (experiment, data) in zip(panels[:, 0], keys, strict=True):
        mine = [row for row in rows if (row["experiment"], row["data"]) == (experiment, data)]
        varied = [row for row in mine if "x" in row]
        for x in dict.fromkeys(row["x"] for row in varied):
            lines(panel, [row for row in varied if row["x"] == x])
        if not varied:
            grouped_bars(panel, mine, ("amp_us", "emp_us"))
            names = [f"{row['variant']}\n{row['buffer_size']:g} held" for row in mine]
            panel.set_xticks(range(len(mine)), names, fontsize=6)
            panel.set_ylabel("us a message")
        panel.set_title(f"{experiment}, {data}", loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
