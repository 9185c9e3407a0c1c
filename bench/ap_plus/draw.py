"""The picture of `bench ap-plus`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench.panels import grouped_bars, lines
from bench.reports import Row

_BARS = {
    "figure-19": ("us_per_insertion", "us_per_location_update"),
    "figure-20": ("us_per_message_batch", "us_per_move_in_all"),
    "figure-21": ("us_per_message_batch", "us_per_move_in_all"),
}
_OF_DEVICES = ("server_us_per_device_s", "bytes_per_device_hour", "positions_per_device_hour")
_DEVICE_YS = {"figure-26": _OF_DEVICES, "figure-27": _OF_DEVICES}
_LOGARITHMIC = {"area", "devices"}


def _with_y(row: Row) -> list[Row]:
    """Return a row as often as it is drawn, with what is drawn of it."""
    if row["experiment"] not in _DEVICE_YS:
        return [row]
    return [
        {**row, "y": y, "experiment": f"{row['experiment']}{letter}"}
        for letter, y in zip("abc", _DEVICE_YS[row["experiment"]], strict=True)
    ]


def plot_ap_plus(rows: Sequence[Row], path: Path) -> None:
    """Draw one panel an experiment and data set: lines where something is varied, else bars."""
    rows = [drawn for row in rows for drawn in _with_y(row)]
    keys = list(dict.fromkeys((row["experiment"], row["data"]) for row in rows))
    figure = Figure(figsize=(8.0, 2.8 * len(keys)), layout="constrained")
    panels = figure.subplots(len(keys), 1, squeeze=False)
    for panel, (experiment, data) in zip(panels[:, 0], keys, strict=True):
        mine = [row for row in rows if (row["experiment"], row["data"]) == (experiment, data)]
        if "x" in mine[0]:
            lines(panel, mine)
            if mine[0]["x"] in _LOGARITHMIC:
                panel.set_xscale("log")
        else:
            grouped_bars(panel, mine, _BARS[experiment])
            names = [f"{row['variant']}\n{row['subscriptions']:,}" for row in mine]
            panel.set_xticks(range(len(mine)), names, fontsize=6)
            panel.set_ylabel("us")
        panel.set_title(f"{experiment}, {data}", loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
