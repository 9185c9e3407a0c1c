"""Metrics of a job for Prometheus, over HTTP on a port of their own.

Each batch is recorded when it is complete. Spark's figures of the query are read at each scrape.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from pyspark.sql.streaming.query import StreamingQuery

from nearcast.address import joined_address
from streaming.parameters import ParameterError
from streaming.result.sink import Batch

_PREFIX = "nearcast_stream_"
_ROWS = (
    "published",
    "retracted",
    "duplicates",
    "expired",
    "unknown",
    "started",
    "ended",
    "refused",
)
_CHANGES = "entered", "left"
_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 300.0)
_COUNTERS = {
    "evaluated": "Subscriptions evaluated again because their replicas may have missed objects.",
    "refilled": "Results rebuilt from the window because their buffers had too few objects.",
    "rebuilt": "Partition indexes rebuilt from Spark's state.",
    "received": "Messages received by partitions; a message counts once for each partition.",
    "block_bytes": "Bytes of blocks received by partitions.",
}
_GAUGES = {
    "subscriptions": "Stationary subscriptions.",
    "replicas": "Placements of subscriptions in partitions, including replicas.",
    "index_bytes": "Memory of the indexes of all partitions, without the messages.",
    "window_bytes": "Memory of the messages of all hosts: each host has one window.",
}
_BATCH_SECONDS = "Duration of batches, from Spark's plan of the batch to the manifest."
_PARTITION_SECONDS = (
    "Time that each partition, or its replicas, took for the last batch, in ascending order."
)
_LAG_SECONDS = "Age of the latest message when the last batch was completed."
_US = 1e-6
_MS = 1e-3


_STATE = (
    ("state_rows", "Rows of Spark's state.", "numRowsTotal"),
    ("state_memory_bytes", "Memory of Spark's state store.", "memoryUsedBytes"),
)
_PHASE_SECONDS = "phase_seconds", "Time of the last batch, by Spark's phases."

_Kind = TypeVar("_Kind", Counter, Gauge, Histogram)


class Declared(NamedTuple):
    """A metric of a job.

    Parameters
    ----------
    name
        Its name, without the ending that counters have.
    kind
        `counter`, `gauge` or `histogram`.
    label
        The label that distinguishes its series; empty if there is one series.
    help_text
        Its description.
    """

    name: str
    kind: str
    label: str
    help_text: str


class JobMetrics:
    """The work of a job since this process started, and its present state."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._declared: list[Declared] = []
        self._rows = self._new(Counter, "rows", "Rows of the feeds, by outcome.", "outcome")
        self._changes = self._new(
            Counter, "changes", "Changes of results: objects that entered and left.", "kind"
        )
        self._counters = {name: self._new(Counter, name, text) for name, text in _COUNTERS.items()}
        self._gauges = {name: self._new(Gauge, name, text) for name, text in _GAUGES.items()}
        self._seconds = self._new(Histogram, "batch_seconds", _BATCH_SECONDS, buckets=_SECONDS)
        self._loads = self._new(Gauge, "partition_seconds", _PARTITION_SECONDS, "rank")
        self._last = self._new(Gauge, "last_batch", "Number of the last batch.")
        self._at = self._new(
            Gauge, "last_batch_timestamp_seconds", "Time at which the last batch was completed."
        )
        self._lag = self._new(Gauge, "lag_seconds", _LAG_SECONDS)
        self._query = _QueryState()
        self.registry.register(self._query)

    def _new(self, kind: type[_Kind], name: str, text: str, *labels: str, **options: Any) -> _Kind:  # noqa: ANN401
        """Return a new metric, registered so that it is served."""
        self._declared.append(Declared(f"{_PREFIX}{name}", kind.__name__.lower(), "".join(labels), text))
        return kind(f"{_PREFIX}{name}", text, labels, registry=self.registry, **options)

    def declared(self) -> list[Declared]:
        """Return all metrics, those of Spark's figures last."""
        spark = [(name, "operator", text) for name, text, _ in _STATE]
        name, text = _PHASE_SECONDS
        spark.append((name, "phase", text))
        return [
            *self._declared,
            *(Declared(f"{_PREFIX}{name}", "gauge", label, text) for name, label, text in spark),
        ]

    def note(self, batch: Batch) -> None:
        """Record a batch that is complete."""
        counts, now_s = batch.counts, time.time()
        for name in _ROWS:
            self._rows.labels(name).inc(counts.get(name, 0))
        for name in _CHANGES:
            self._changes.labels(name).inc(counts.get(name, 0))
        for name, counter in self._counters.items():
            counter.inc(counts.get(name, 0))
        for name, gauge in self._gauges.items():
            if name in counts:
                gauge.set(counts[name])
        for rank, load_us in enumerate(sorted(batch.loads_us)):
            self._loads.labels(str(rank)).set(load_us * _US)
        self._seconds.observe(batch.seconds)
        self._last.set(batch.number)
        self._at.set(now_s)
        if now_ms := counts.get("now_ms"):
            self._lag.set(now_s - now_ms * _MS)

    def follow(self, query: StreamingQuery) -> None:
        """Export Spark's figures of this query from now on."""
        self._query.query = query

    @contextmanager
    def served(self, port: int, host: str) -> Iterator[int]:
        """Serve the metrics at a port as long as the block lasts; yield the port.

        Raises
        ------
        ParameterError
            If the port cannot be bound.
        """
        try:
            server, thread = start_http_server(port, host, self.registry)
        except OSError as error:
            limit = "a free port at an address of this host"
            address = joined_address(host, port)
            raise ParameterError(f"metrics port is {address}, must be {limit}: {error}") from None
        try:
            yield int(server.server_port)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _QueryState(Collector):
    """Spark's figures of the query."""

    query: StreamingQuery | None = None

    def collect(self) -> Iterator[Family]:
        """Yield the figures as metric families."""
        query = self.query
        progress = None if query is None or not query.isActive else query.lastProgress
        about: Mapping[str, Any] = progress or {}
        operators = about.get("stateOperators", [])
        for name, text, key in _STATE:
            family = GaugeMetricFamily(f"{_PREFIX}{name}", text, labels=["operator"])
            for number, operator in enumerate(operators):
                family.add_metric([str(number)], float(operator[key]))
            yield family
        name, text = _PHASE_SECONDS
        family = GaugeMetricFamily(f"{_PREFIX}{name}", text, labels=["phase"])
        for phase, took_ms in sorted(about.get("durationMs", {}).items()):
            family.add_metric([phase], took_ms * _MS)
        yield family
