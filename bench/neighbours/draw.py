"""The picture of `bench neighbours`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.reports import Row

_HEIGHT = 0.38
_PANELS = (
    ("99th percentile of reports, ms", "report_ms_p99", "report_ms_p99_without"),
    ("99th percentile of requests to publish, ms", "publish_ms_p99", "publish_ms_p99_without"),
    ("memory more at the peak, MB", "rss_mb_more", "rss_mb_more_without"),
)


def plot_neighbours(rows: Sequence[Row], path: Path) -> None:
    """Draw a bar an act, beside one without it: both latencies, and memory; or rates of tenants."""
    if "ratio" in rows[0]:
        panels = [
            (f"{kind} a second of the other tenants", f"{kind}_per_s", f"{kind}_per_s_without")
            for kind in ("reports", "publishes")
        ]
    else:
        panels = list(_PANELS)
    size = 5.0 * len(panels) + 1.0, max(3.0, 0.4 * len(rows) + 1.0)
    figure = Figure(figsize=size, layout="constrained")
    places = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for panel, (title, name, without) in zip(places, panels, strict=True):
        _bars(panel, rows, name, without)
        panel.set_title(title, loc="left", fontsize=9)
    places[0].set_yticks(range(len(rows)), [str(row["variant"]) for row in rows], fontsize=7)
    places[0].invert_yaxis()
    places[0].legend(frameon=False, fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _bars(panel: Axes, rows: Sequence[Row], name: str, without: str) -> None:
    for shift, column, label in ((-0.5, without, "without the act"), (0.5, name, "with it")):
        widths = [max(0.1, row[column]) for row in rows]
        heights = [place + shift * _HEIGHT for place in range(len(rows))]
        panel.barh(heights, widths, height=_HEIGHT, label=label)
        for height, width in zip(heights, widths, strict=True):
            panel.annotate(f"{width:,.3g}", (width, height), va="center", fontsize=6)
    panel.set_xscale("log")
