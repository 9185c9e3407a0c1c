"""Pictures of benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.neighbours.draw import plot_neighbours
from bench.reports import Row

mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})


def plot_server(rows: Sequence[Row], path: Path) -> None:
    """Draw memory by time of a soak; else rates beside the echo server's, latencies, memory, storms."""
    figure = Figure(figsize=(13.0, 3.6), layout="constrained")
    if "samples" in rows[0]:
        _soak(figure.subplots(), rows)
    else:
        panels = figure.subplots(1, 4)
        rates, latencies, memory, storms = panels
        _rates(rates, latencies, [row for row in rows if row["variant"] == "connections"])
        for variant in dict.fromkeys(row["variant"] for row in rows):
            sized = [(row["devices"], row["rss_mb"]) for row in rows if row["variant"] == variant]
            memory.plot(*zip(*sized, strict=True), "o-", label=variant)
        _storms(storms, [row for row in rows if "storm_s" in row])
        titles = ("messages a second", "ms", "memory, MB", "storm, seconds")
        for panel, title in zip(panels, titles, strict=True):
            panel.set_xscale("log")
            panel.set_ylim(0.0, None)
            panel.set_xlabel("devices")
            panel.set_title(title, loc="left")
            if panel.has_data():
                panel.legend(frameon=False, fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _soak(panel: Axes, rows: Sequence[Row]) -> None:
    for row in rows:
        panel.plot(*zip(*row["samples"], strict=True), color="C0")
        title = f"{row['devices']:,} devices: rise {row['rise_mb']} MB, noise {row['noise_mb']} MB"
        panel.set_title(title, loc="left")
    panel.set_xlabel("seconds")
    panel.set_ylabel("server's own memory, MB")
    panel.set_ylim(0.0, None)


def _rates(rates: Axes, latencies: Axes, rows: Sequence[Row]) -> None:
    """Draw rates beside the echo server's, and latencies, if there are any."""
    if not rows:
        return
    sizes = [row["devices"] for row in rows]
    for number, kind in enumerate(("pings", "reports")):
        for prefix, style in (("", "o-"), ("echo_", "o:")):
            values = [row[f"{prefix}{kind}_per_s"] for row in rows]
            rates.plot(sizes, values, style, color=f"C{number}", label=f"{prefix}{kind}")
    for number, kind in enumerate(("report", "publish")):
        for part, style in (("p50", "o-"), ("p99", "o:")):
            values = [row[f"{kind}_ms_{part}"] for row in rows]
            latencies.plot(sizes, values, style, color=f"C{number}", label=f"{kind} {part}")


def _storms(panel: Axes, rows: Sequence[Row]) -> None:
    """Draw how long the server took, and how long until all devices were EXACT."""
    for number, variant in enumerate(dict.fromkeys(row["variant"] for row in rows)):
        mine = [row for row in rows if row["variant"] == variant]
        sizes, name = [row["devices"] for row in mine], variant.removeprefix("storm-")
        for column, style, what in (
            ("storm_s", "o-", "hello to snapshot"),
            ("exact_s_max", "o:", "kill to EXACT"),
        ):
            values = [row[column] for row in mine]
            panel.plot(sizes, values, style, color=f"C{number}", label=f"{name}: {what}")


PLOTS: dict[str, Callable[[Sequence[Row], Path], None]] = {
    "neighbours": plot_neighbours,
    "server": plot_server,
}
