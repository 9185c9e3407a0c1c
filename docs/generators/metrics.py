"""Writes the reference of metrics from their declarations."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gateway.counters import Counters, GatewayMetrics
from server.monitoring.catalogue import COUNTERS, GAUGES, MEASURES, SILENCE, SILENCE_HELP
from server.monitoring.families import family_name
from streaming.metrics import JobMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """\
# Metrics

The metrics for Prometheus of a server and of a gateway (`--metrics-port`) and of a stream job. `make
reference` writes this page from their declarations (`server/monitoring/catalogue.py`,
`gateway/counters.py`, `streaming/metrics.py`); a test compares them.
[Monitor](../operations.md#monitor) describes the port, a dashboard and alerts.

## A server

`Status` has the same figures under the names of [the protocol](../protocol.md#figures-of-a-server):
`parked.AWAY` is `nearcast_parked_total{reason="AWAY"}`. Durations are in seconds here. In addition
there are `nearcast_state`, `nearcast_time_seconds`, `nearcast_event_loop_delay_seconds`, and the usual
`process_` metrics (CPU, memory, open files).

"""
_GATEWAY = """
## A gateway

In addition there are the usual `process_` metrics.

"""
_JOB = """
## A stream job

"""
_COLUMNS = "| metric | kind | label | meaning |\n|---|---|---|---|\n"


def page() -> str:
    """Return the page."""
    parts = ((_HEAD, _server_rows()), (_GATEWAY, _gateway_rows()), (_JOB, _job_rows()))
    return "".join(head + _COLUMNS + "".join(rows) for head, rows in parts)


def _server_rows() -> Iterator[str]:
    for name, metric in COUNTERS.items():
        yield _row(f"{family_name(name)}_total", "counter", metric.label, metric.help_text)
    for name, metric in GAUGES.items():
        yield _row(family_name(name), "gauge", metric.label, metric.help_text)
    for name, metric in MEASURES.items():
        yield _row(family_name(name), "histogram", "", metric.help_text)
    yield _row(family_name(SILENCE), "histogram of now", "", SILENCE_HELP)


def _gateway_rows() -> Iterator[str]:
    one_refusal = Counters(refused=Counter(reason=1))  # so that each family has a sample with its labels
    for family in GatewayMetrics(one_refusal).collect():
        sample = family.samples[0]
        yield _row(sample.name, family.type, ", ".join(sample.labels), family.documentation)


def _job_rows() -> Iterator[str]:
    for name, kind, label, text in JobMetrics().declared():
        yield _row(f"{name}_total" if kind == "counter" else name, kind, label, text)


def _row(name: str, kind: str, label: str, text: str) -> str:
    return f"| `{name}` | {kind} | {label} | {text} |\n"
