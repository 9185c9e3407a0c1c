"""The picture of `bench berlinmod`: events a second against standing ranges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench.berlinmod.queries import PUBLISHED_PER_S
from bench.reports import Row

_LABELS = {
    "q3": "Q3 within a distance",
    "q4": "Q4 entry into a region",
    "q7": "Q7 first passage of points",
}


def plot_berlinmod(rows: Sequence[Row], path: Path) -> None:
    """Draw a line for each query and size of batches, and the published figures as crosses."""
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    panel = figure.subplots()
    batches = list(dict.fromkeys(row["batch"] for row in rows))
    for number, query in enumerate(dict.fromkeys(row["experiment"] for row in rows)):
        for batch, style in zip(batches, ("o-", "o--", "o:", "o-."), strict=False):
            mine = [row for row in rows if (row["experiment"], row["batch"]) == (query, batch)]
            points = [(row["standing_ranges"], row["events_per_s"]) for row in mine]
            label = f"{_LABELS[query]}, {batch:,} a batch"
            panel.plot(*zip(*points, strict=True), style, color=f"C{number}", label=label)
        value = PUBLISHED_PER_S[query]
        panel.plot([1], [value], "x", color=f"C{number}", markersize=9, label="MobilityFlink, published")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("standing ranges")
    panel.set_ylabel("events a second")
    panel.legend(frameon=False, fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
