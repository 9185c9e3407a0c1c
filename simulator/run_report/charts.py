"""The charts of a replay: reports and silence over time, latency, audits, bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator, PercentFormatter

from simulator.replay.report import ReplayReport
from simulator.replay.timeline import Timeline
from simulator.run_report import theme

_SIZE_IN = (5.4, 2.5)
_HOUR_S = 3_600.0
_MINUTES_FROM_S = 300.0
"""Longer runs are shown in minutes."""
_HOURS_FROM_S = 3.0 * _HOUR_S
_LATENCY_BINS = 48
_SHOWN_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of the page.

    Parameters
    ----------
    name
        Short, for the page's code.
    title, text
        The title and a description, which may be empty.
    svg
        The picture.
    """

    name: str
    title: str
    text: str
    svg: str


def charts(report: ReplayReport) -> list[Chart]:
    """Return the charts of a run, in the order of the page.

    Charts over time need at least two moments: for a run of a single tick there is only the latency.
    """
    found = []
    if len(report.timeline.ticks) > 1:
        found += [_reports(report), _silence(report), _bytes(report), _publications(report)]
        found.append(_audits(report))
    found.append(_latency(report))
    if report.late_ms_max > 0.0 and len(report.timeline.ticks) > 1:
        found.append(_late(report))
    return found


def _drawn(name: str, title: str, text: str, draw: Callable[[Axes], None]) -> Chart:
    with mpl.rc_context(theme.STYLE):
        figure = Figure(figsize=_SIZE_IN, layout="constrained")
        axes = figure.subplots()
        draw(axes)
    return Chart(name, title, text, theme.svg_of(figure, name, title))


def _over_time(axes: Axes, timeline: Timeline) -> Floats:
    """Label the axis of time; return the times of moments, in its unit."""
    times_s = np.array(timeline.times_s())
    unit_s, unit = 1.0, "simulated seconds"
    if times_s[-1] > _HOURS_FROM_S:
        unit_s, unit = _HOUR_S, "simulated hours"
    elif times_s[-1] > _MINUTES_FROM_S:
        unit_s, unit = 60.0, "simulated minutes"
    axes.set_xlabel(unit)
    axes.set_xlim(0.0, times_s[-1] / unit_s)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    found: Floats = times_s / unit_s
    return found


def _gains(timeline: Timeline, name: str) -> Floats:
    """Return the increase of a sum between moments; the first tick does not count."""
    return np.array(timeline.gains(name)[1:], np.float64)


def _steps_s(timeline: Timeline) -> Floats:
    found: Floats = np.diff(timeline.times_s())
    return found


def _line(axes: Axes, times: Floats, values: Floats, color: str, label: str | None = None) -> None:
    axes.plot(times[1:], values, color=color, linewidth=1.6, label=label, solid_joinstyle="round")


def _filled(axes: Axes, times: Floats, values: Floats, color: str) -> None:
    _line(axes, times, values, color)
    axes.fill_between(times[1:], values, color=color, alpha=0.14, linewidth=0.0)
    axes.set_ylim(bottom=0.0)


def _reports(report: ReplayReport) -> Chart:
    timeline = report.timeline
    hours = np.maximum(_gains(timeline, "moves"), 1.0) * timeline.period_s / _HOUR_S
    rates = _gains(timeline, "reports") / hours

    def draw(axes: Axes) -> None:
        _filled(axes, _over_time(axes, timeline), rates, theme.FIRST)

    text = f"Per device and hour; {report.reports_per_device_hour:,.1f} on average."
    return _drawn("reports", "Reports over time", text, draw)


def _silence(report: ReplayReport) -> Chart:
    timeline = report.timeline
    moves, reports = _gains(timeline, "moves"), _gains(timeline, "reports")
    shares = 1.0 - reports / np.maximum(moves, 1.0)

    def draw(axes: Axes) -> None:
        _line(axes, _over_time(axes, timeline), shares, theme.SECOND)
        low = float(shares.min(initial=1.0))
        axes.set_ylim(max(0.0, low - (1.0 - low) * 0.3 - 0.001), 1.0 + (1.0 - low) * 0.05)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))

    text = f"Moves without a report; {100.0 * report.silent_share:.2f} % of all."
    return _drawn("silence", "Silence", text, draw)


def _bytes(report: ReplayReport) -> Chart:
    timeline = report.timeline
    seconds = _steps_s(timeline)
    to_devices = _gains(timeline, "bytes_to_devices") / seconds
    from_devices = _gains(timeline, "bytes_from_devices") / seconds

    def draw(axes: Axes) -> None:
        times = _over_time(axes, timeline)
        _line(axes, times, to_devices, theme.FIRST, "to devices")
        _line(axes, times, from_devices, theme.SECOND, "from devices")
        axes.set_ylim(bottom=0.0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{size_text(value)}/s"))
        axes.legend(loc="upper right", ncols=2)

    first = timeline.moments[0].bytes_to_devices
    text = f"All devices, per simulated second. At the start they received {size_text(first)}."
    return _drawn("bytes", "Bytes", text, draw)


def _publications(report: ReplayReport) -> Chart:
    timeline = report.timeline
    rates = _gains(timeline, "published") / _steps_s(timeline)

    def draw(axes: Axes) -> None:
        _filled(axes, _over_time(axes, timeline), rates, theme.SECOND)

    first = timeline.moments[0].published
    text = f"Objects per simulated second. At the start there were {first:,}."
    return _drawn("publications", "Publications", text, draw)


def _audits(report: ReplayReport) -> Chart:
    timeline = report.timeline
    audited = np.array(timeline.gains("audited"), np.float64)
    mismatches = np.array(timeline.gains("mismatches"), np.float64)

    def draw(axes: Axes) -> None:
        times = _over_time(axes, timeline)
        for values, color, label in (
            (audited, theme.GOOD, "audited results"),
            (mismatches, theme.BAD, "mismatches"),
        ):
            shown = values > 0
            axes.vlines(times[shown], 0.0, values[shown], color=color, linewidth=2.2, label=label)
        axes.set_ylim(0.0, 1.25 * max(1.0, float(audited.max())))
        axes.margins(x=0.02)
        axes.set_xlim(-0.01 * times[-1], 1.01 * times[-1])
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:,.0f}"))
        axes.legend(loc="upper right", ncols=2)

    text = f"{report.mismatch_count:,} of {report.audited:,} results differ from those of the oracle."
    if report.undecided:
        text += (
            f" {report.undecided:,} could not be decided: they depend on instants that are not known "
            "precisely enough."
        )
    return _drawn("mismatches", "Audited results and mismatches", text, draw)


def _latency(report: ReplayReport) -> Chart:
    total = report.latencies.total
    if not total:
        text = "No object that was published while a device was attached entered its result."
        return _drawn("latency", "Latency", text, lambda axes: axes.set_axis_off())
    counts, edges_ms = report.latencies.counts, report.latencies.edges_ms()
    filled = np.flatnonzero(counts)
    bounds_ms = np.geomspace(edges_ms[filled[0]], edges_ms[filled[-1] + 1], _LATENCY_BINS + 1)
    middles_ms = np.sqrt(edges_ms[1:] * edges_ms[:-1])
    heights, _ = np.histogram(middles_ms, bounds_ms, weights=counts)
    marks = [(share, report.latency_ms(share)) for share in (0.5, 0.99)]

    def draw(axes: Axes) -> None:
        axes.bar(
            bounds_ms[:-1], heights, width=np.diff(bounds_ms), align="edge", color=theme.FIRST, alpha=0.85
        )
        axes.set_xscale("log")
        axes.set_ylim(0.0, 1.25 * float(heights.max()))
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("milliseconds")
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        for share, value_ms in marks:
            axes.axvline(value_ms, color=theme.BAD, linewidth=1.1, linestyle=(0, (4, 3)))
            axes.text(
                value_ms,
                0.97,
                f" p{100.0 * share:g}",
                transform=axes.get_xaxis_transform(),
                color=theme.INK,
                va="top",
            )

    percentiles = " and ".join(f"p{100.0 * share:g} {value_ms:.1f} ms" for share, value_ms in marks)
    text = f"Real time from a publication to the change of a result, of {total:,}: {percentiles}."
    return _drawn("latency", "Latency", text, draw)


def _late(report: ReplayReport) -> Chart:
    timeline = report.timeline

    def draw(axes: Axes) -> None:
        values = np.array(timeline.column("late_ms")[1:], np.float64) / max(1, report.processes)
        _filled(axes, _over_time(axes, timeline), values, theme.BAD)

    text = f"Milliseconds by which ticks started late; at most {report.late_ms_max:,.0f}."
    return _drawn("late", "Delay of ticks", text, draw)


def size_text(size_bytes: float) -> str:
    """Return a number of bytes as a readable text."""
    unit, name = next((one for one in _SHOWN_BYTES if size_bytes >= one[0]), _SHOWN_BYTES[-1])
    return f"{size_bytes / unit:.3g} {name}"
