"""Pictures of benchmarks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.ap_plus.draw import plot_ap_plus
from bench.berlinmod.draw import plot_berlinmod
from bench.dskype.draw import plot_dskype
from bench.neighbours.draw import plot_neighbours
from bench.panels import LOG_FROM, lines
from bench.reports import Row
from bench.rt_tree.draw import plot_rt_tree
from bench.skype.draw import plot_skype

mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})

_CURVE = re.compile(r"anchored-[\d.]+$")


def plot_ap_tree(rows: Sequence[Row], path: Path) -> None:
    """Draw one panel an experiment and data set: lines where something is varied, else bars."""
    rows = [row for row in rows if "skipped" not in row]
    keys = list(dict.fromkeys((row["experiment"], row["data"]) for row in rows))
    figure = Figure(figsize=(8.0, 2.8 * len(keys)), layout="constrained")
    panels = figure.subplots(len(keys), 1, squeeze=False)
    for panel, (experiment, data) in zip(panels[:, 0], keys, strict=True):
        mine = [row for row in rows if (row["experiment"], row["data"]) == (experiment, data)]
        if experiment == "rebuild":
            _slices(panel, mine[0])
        elif "x" in mine[0]:
            lines(panel, mine)
            if mine[0]["x"] in {"area_max", "theta_kl"}:
                panel.set_xscale("log")
        else:
            _variant_bars(panel, mine)
        panel.set_title(f"{experiment}, {data}", loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _variant_bars(panel: Axes, rows: Sequence[Row]) -> None:
    """Draw microseconds an object, a bar a variant, in groups by the side of ranges."""
    heights = [row["us_per_object_batch"] for row in rows]
    names = [
        "\n".join(
            [str(row["variant"]), *([f"sides to {row['side_max']:g}"] if "side_max" in row else [])]
        )
        for row in rows
    ]
    panel.bar(range(len(rows)), heights, color="C0")
    for place, height in enumerate(heights):
        panel.annotate(f"{height:,.3g}", (place, height), ha="center", va="bottom", fontsize=6)
    panel.set_xticks(range(len(rows)), names, fontsize=6, rotation=30, ha="right")
    panel.set_yscale("log")
    panel.set_ylabel("us an object, in a batch")


def _slices(panel: Axes, row: Row) -> None:
    """Draw how long the slices of a rebuild take."""
    limits = [name for name in row if name.startswith("slices_under_")]
    counts = [row[name] for name in limits]
    panel.bar(range(len(limits)), [b - a for a, b in zip([0, *counts], counts, strict=False)], color="C0")
    labels = [name.removeprefix("slices_under_").replace("_", " ") for name in limits]
    panel.set_xticks(range(len(limits)), [f"< {label}" for label in labels], fontsize=7)
    panel.set_ylabel("slices")


def plot_match(rows: Sequence[Row], path: Path) -> None:
    """Draw the time per object by the number of subscriptions, a line a variant."""
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    panel = figure.subplots()
    for number, variant in enumerate(dict.fromkeys(row["variant"] for row in rows)):
        mine = [row for row in rows if row["variant"] == variant]
        sizes = [row["subscriptions"] for row in mine]
        one, all_of_them = ([row[f"us_per_object_{way}"] for row in mine] for way in ("median", "batch"))
        panel.plot(sizes, one, marker="o", color=f"C{number}", label=variant)
        panel.plot(sizes, all_of_them, marker=".", linestyle=":", color=f"C{number}")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("subscriptions")
    panel.set_ylabel("us an object")
    panel.set_title(
        f"{rows[0]['experiment']}: median of single calls; dotted: mean in a batch", loc="left"
    )
    panel.legend(frameon=False, fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def plot_retrieve(rows: Sequence[Row], path: Path) -> None:
    """Draw the time per subscription by b, and how fast objects come and go."""
    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    times, rates = figure.subplots(1, 2)
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    for number, variant in enumerate(variants):
        mine = [row for row in rows if row["variant"] == variant]
        for way, style in (("mean", "o-"), ("median", "o--"), ("batch", ".:")):
            values = [row[f"us_per_subscription_{way}"] for row in mine]
            label = variant if way == "mean" else None
            times.plot([row["extra"] for row in mine], values, style, color=f"C{number}", label=label)
        for place, kind in enumerate(("inserts", "removes")):
            rates.bar(
                number + 0.4 * place - 0.2, mine[0][f"{kind}_per_s"], 0.4, color=("C7", "C8")[place]
            )
    times.set_yscale("log")
    times.set_xlabel("b")
    times.set_ylabel("us a subscription")
    times.set_title("mean; dashed: median; dotted: batch", loc="left")
    times.legend(frameon=False, fontsize=7)
    rates.set_xticks(range(len(variants)), variants, fontsize=7)
    rates.set_yscale("log")
    rates.set_title("inserts (left) and removes (right) a second", loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def plot_silence(rows: Sequence[Row], path: Path) -> None:
    """Draw reports against objects sent: the anchored variants as a curve over b, others as points."""
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    panel = figure.subplots()
    _reports_and_objects(panel, rows)
    first = rows[0]
    flow = f"+{first['arrivals_per_s']:g} -{first['expiries_per_s']:g} a second"
    title = f"{first['data']}, {first['trajectories']}, {first['objects']:,} objects, {flow}"
    panel.set_title(title, loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def plot_ranges(rows: Sequence[Row], path: Path) -> None:
    """Draw reports against objects sent, a panel a radius: fixed slacks are a curve."""
    radii = list(dict.fromkeys(row["radius_m"] for row in rows))
    figure = Figure(figsize=(7.0, 4.0 * len(radii)), layout="constrained")
    panels = figure.subplots(len(radii), 1, squeeze=False)[:, 0]
    for panel, radius_m in zip(panels, radii, strict=True):
        mine = [row for row in rows if row["radius_m"] == radius_m]
        _reports_and_objects(panel, mine)
        where = f"{mine[0]['data']}, {mine[0]['trajectories']}"
        title = f"{radius_m:g} m, {where}, {mine[0]['objects']:,} objects"
        panel.set_title(title, loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _reports_and_objects(panel: Axes, rows: Sequence[Row]) -> None:
    """Draw reports against objects sent; what is fixed in anchored variants makes a curve."""
    pairs = [(row["reports_per_device_hour"], row["objects_per_device_hour"]) for row in rows]
    curve = [pair for pair, row in zip(pairs, rows, strict=True) if _CURVE.match(row["variant"])]
    panel.plot([x for x, _ in curve], [y for _, y in curve], color="C0", marker="o")
    for pair, row in zip(pairs, rows, strict=True):
        below = -10 if not _CURVE.match(row["variant"]) else 4
        name = str(row["variant"])
        if row["stale_share"] > 0.0:
            name += f" ({row['stale_share']:.0%} stale)"
        if below < 0:
            panel.plot(*pair, marker="s", color="C7" if row["stale_share"] > 0.0 else "C1")
        panel.annotate(name, pair, xytext=(5, below), textcoords="offset points", fontsize=7)
    for axis, set_scale in enumerate((panel.set_xscale, panel.set_yscale)):
        values = [pair[axis] for pair in pairs]
        if max(values) > LOG_FROM * min(values):
            set_scale("log" if min(values) > 0.0 else "symlog")
    panel.margins(0.15)
    panel.set_xlabel("reports per device and hour")
    panel.set_ylabel("objects sent per device and hour")


def plot_publish(rows: Sequence[Row], path: Path) -> None:
    """Draw objects a second by the size of a request, a line a variant."""
    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    panel = figure.subplots()
    for variant in dict.fromkeys(row["variant"] for row in rows):
        mine = [row for row in rows if row["variant"] == variant]
        sizes = [row["objects_per_request"] for row in mine]
        panel.plot(sizes, [row["objects_per_s"] for row in mine], marker="o", label=variant)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("objects a request")
    panel.set_ylabel("durable objects a second")
    panel.legend(frameon=False, fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def plot_recovery(rows: Sequence[Row], path: Path) -> None:
    """Draw where the time goes, and the memory, by size."""
    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    times, memory = figure.subplots(1, 2)
    places = range(len(rows))
    for panel, columns in (
        (times, ("open_s", "objects_s", "subscriptions_s")),
        (memory, ("bytes_per_object", "bytes_per_subscription")),
    ):
        below = [0.0] * len(rows)
        for column in columns:
            values = [row[column] for row in rows]
            panel.bar(places, values, 0.6, bottom=below, label=column)
            below = [low + value for low, value in zip(below, values, strict=True)]
        panel.set_xticks(places, [f"{row['subscriptions']:,}" for row in rows])
        panel.set_xlabel("objects, and as many subscriptions")
        panel.legend(frameon=False, fontsize=7)
    times.set_ylabel("seconds")
    memory.set_ylabel("bytes resident, each")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


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
    "ap_plus": plot_ap_plus,
    "berlinmod": plot_berlinmod,
    "skype": plot_skype,
    "dskype": plot_dskype,
    "ap_tree": plot_ap_tree,
    "match": plot_match,
    "neighbours": plot_neighbours,
    "publish": plot_publish,
    "ranges": plot_ranges,
    "recovery": plot_recovery,
    "retrieve": plot_retrieve,
    "rt_tree": plot_rt_tree,
    "server": plot_server,
    "silence": plot_silence,
}
