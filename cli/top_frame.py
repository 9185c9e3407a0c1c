"""One frame of `nearcast top`, computed from two responses of `Status` and drawn by rich."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from cli.server_time import status_time_text

if TYPE_CHECKING:
    from nearcast import ServerStatus

_RATES = {
    "reports": "reports_accepted",
    "deltas": "deltas_sent",
    "snapshots": "snapshots_sent",
    "late deltas": "deltas_late",
    "lost deltas": "deltas_dropped",
    "objects published": "objects_published",
    "objects removed": "objects_gone",
    "hellos": "hellos",
}
_ALARMING = {"late deltas", "lost deltas", "rejected"}
_LATENCIES = {
    "report to response": "report_latency_us",
    "delta in outbox": "delta_delay_ms",
    "publish to disk": "publication_us",
    "commit": "commit_us",
    "look-ups": "retrieval_us",
    "evaluation": "evaluation_us",
    "event loop slice": "slice_us",
    "silence, now": "silence_ms",
}
_UNITS_S = {"us": 1e-6, "ms": 1e-3}
_QUEUES = {
    "commands": "commands_waiting",
    "events": "events_waiting",
    "unwritten rows": "late_mutations_waiting",
    "for the sink": "sink_waiting",
}
_STATES = {"IN_SYNC": "green", "CATCHING_UP": "red", "DETACHED": "yellow", "PARKED": "blue"}
_STEPS = " ▁▂▃▄▅▆▇█"
_BAR_WIDTH = 24
_REMEMBERED = 32
_CALLERS_MAX = 5
_MUCH = 0.25
"""A caller with at least this fraction of the server's time is shown in red."""


class Sample(NamedTuple):
    """A response of `Status`, and its time."""

    at_s: float
    status: ServerStatus


class History:
    """The latest responses, and recent rates."""

    def __init__(self) -> None:
        self._last: Sample | None = None
        self._before: Sample | None = None
        self._rates: dict[str, deque[float]] = {}

    def add(self, sample: Sample) -> None:
        """Add a response. After a restart of the server the rates start again."""
        self._before, self._last = self._last, sample
        if self._before is not None and _has_restarted(self._before.status, sample.status):
            self._before = None
        for name, rate in self.rates().items():
            self._rates.setdefault(name, deque(maxlen=_REMEMBERED)).append(rate)

    @property
    def has_response(self) -> bool:
        """Whether there is a response to show."""
        return self._last is not None

    @property
    def is_ready(self) -> bool:
        """Whether there are two responses to compare."""
        return self._before is not None

    def rates(self) -> dict[str, float]:
        """Return the rates of events per second between the last two responses."""
        if self._before is None or self._last is None:
            return {}
        seconds = max(1e-9, self._last.at_s - self._before.at_s)
        now, before = self._last.status.counters, self._before.status.counters

        def rate(*names: str) -> float:
            return sum(now.get(name, 0) - before.get(name, 0) for name in names) / seconds

        rejected = [name for name in now if name.startswith("rejected.")]
        return {title: rate(name) for title, name in _RATES.items()} | {"rejected": rate(*rejected)}

    def frame(self, target: str) -> RenderableType:
        """Return the frame."""
        if self._last is None:
            return Panel(Text("no response yet"), title=f"nearcast {target}")
        status = self._last.status
        panels = Table.grid(padding=(0, 1))
        panels.add_row(
            Panel(self._rates_table(), title="a second"),
            Panel(self._latencies_table(), title="milliseconds, below"),
        )
        panels.add_row(
            Panel(_devices(status.gauges), title="devices"),
            Panel(_queues(status.gauges), title="waiting"),
        )
        panels.add_row(
            Panel(_named(status.gauges, "subscriptions_by_kind", 1.0), title="objects, subscriptions"),
            Panel(_named(status.gauges, "memory_bytes", 1e6), title="MB"),
        )
        if status.callers:
            panels.add_row(
                Panel(_callers(status), title="callers: server time, streams and calls, unread")
            )
        return Group(_head(target, status), panels)

    def _rates_table(self) -> Table:
        table = _grid()
        for name, rate in self.rates().items():
            style = "red" if name in _ALARMING and rate > 0 else ""
            table.add_row(name, Text(f"{rate:,.1f}", style), Text(_sparkline(self._rates[name]), "cyan"))
        return table

    def _latencies_table(self) -> Table:
        table = _grid()
        table.add_row("", Text("p50", "dim"), Text("p99", "dim"))
        for title, name in _LATENCIES.items():
            now = self._last.status.distributions.get(name) if self._last is not None else None
            if now is None:
                continue
            if self._before is not None and name != "silence_ms":
                now = now.since(self._before.status.distributions[name])
            unit_ms = 1e3 * _UNITS_S[name.rpartition("_")[2]]
            table.add_row(title, *(_shown_ms(now.quantile(share) * unit_ms) for share in (0.5, 0.99)))
        return table


def _head(target: str, status: ServerStatus) -> Text:
    style = "bold green" if status.state.name == "SERVING" else "bold red"
    when = f"  server time {status_time_text(status)}"
    return Text.assemble(("nearcast ", "bold"), f"{target}  ", (status.state.name, style), when)


def _devices(gauges: Mapping[str, int]) -> Table:
    counts = {name: gauges.get(f"devices.{name}", 0) for name in _STATES}
    most = max(1, *counts.values())
    table = _grid()
    for name, count in counts.items():
        bar = "█" * math.ceil(_BAR_WIDTH * count / most)
        table.add_row(name, f"{count:,}", Text(bar.ljust(_BAR_WIDTH), _STATES[name]))
    table.add_row("streams", f"{gauges.get('streams', 0):,}", "")
    return table


def _queues(gauges: Mapping[str, int]) -> Table:
    table = _grid()
    for title, name in _QUEUES.items():
        table.add_row(title, f"{gauges.get(name, 0):,}", "")
    return table


def _callers(status: ServerStatus) -> Table:
    """Return a table of the callers that have recently used most of the server's time."""
    table = _grid()
    table.add_column(justify="right")
    for one in status.callers[:_CALLERS_MAX]:
        name = f"{one.tenant}/{one.id}" if one.tenant else one.id
        opened = f"{one.stream_count} streams, {one.call_count} calls"
        share = Text(f"{one.time_share:.1%}", "red" if one.time_share > _MUCH else "")
        table.add_row(name, share, opened, f"{one.unread_bytes / 1e6:,.1f} MB")
    return table


def _named(gauges: Mapping[str, int], name: str, unit: float) -> Table:
    """Return a table of the gauges of a name by label; objects first, or the store last."""
    found = {key.partition(".")[2]: value for key, value in gauges.items() if key.startswith(f"{name}.")}
    rows = sorted(found.items())
    if unit == 1.0:
        rows.insert(0, ("OBJECTS", gauges.get("objects", 0)))
    else:
        rows += [(f"STORE {one}", gauges.get(f"store_bytes.{one}", 0)) for one in ("DATABASE", "LOG")]
    table = _grid()
    for label, value in rows:
        table.add_row(label, f"{value / unit:,.1f}" if unit > 1.0 else f"{value:,}", "")
    return table


def _grid() -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column()
    table.add_column(justify="right")
    table.add_column(justify="right")
    return table


def _sparkline(values: deque[float]) -> str:
    most = max(values, default=0.0) or 1.0
    steps = (math.ceil((len(_STEPS) - 1) * max(0.0, one) / most) for one in values)
    return "".join(_STEPS[step] for step in steps).rjust(_REMEMBERED)


def _shown_ms(value_ms: float) -> str:
    if math.isnan(value_ms):
        return "-"
    return "∞" if math.isinf(value_ms) else f"{value_ms:,.3g}" if value_ms < 1e3 else f"{value_ms:,.0f}"  # noqa: PLR2004


def _has_restarted(before: ServerStatus, now: ServerStatus) -> bool:
    return any(now.counters.get(name, 0) < count for name, count in before.counters.items())
