"""Traces through OpenTelemetry, sent over OTLP from a thread of the library; the extra `tracing`."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext

from server.object_traces import Span

_log = logging.getLogger(__name__)

_PARENTS_MAX = 1_024
"""Number of objects whose deliveries find the span of their publication."""


class Tracing:
    """Converts the spans of objects to OpenTelemetry, and sends them.

    Parameters
    ----------
    endpoint
        The address of a collector, `http://host:4318/v1/traces`.
    processor
        Receives the spans; by default it sends them.
    """

    def __init__(self, endpoint: str, processor: SpanProcessor | None = None) -> None:
        # It has no sampler: the exported spans have been sampled before.
        self._provider = TracerProvider(resource=Resource({SERVICE_NAME: "nearcast"}))
        self._provider.add_span_processor(
            processor or BatchSpanProcessor(_LoggedExporter(OTLPSpanExporter(endpoint=endpoint)))
        )
        self._tracer = self._provider.get_tracer("nearcast")
        self._parents: OrderedDict[int, SpanContext] = OrderedDict()

    def export(self, spans: Sequence[Span]) -> None:
        """Export spans of objects: the first span of each is the parent of the others."""
        for one in spans:
            parent = self._parents.get(one.object_id)
            context = None
            if parent is not None:
                context = trace.set_span_in_context(trace.NonRecordingSpan(parent))
            span = self._tracer.start_span(
                one.name,
                context,
                attributes={"nearcast.object_id": one.object_id, **one.facts},
                start_time=one.began_ns,
            )
            span.end(one.ended_ns)
            if parent is None:
                self._parents[one.object_id] = span.get_span_context()
                if len(self._parents) > _PARENTS_MAX:
                    self._parents.popitem(last=False)

    def close(self) -> None:
        """Send the remaining spans, for a few seconds at most."""
        self._provider.shutdown()


class _LoggedExporter(SpanExporter):
    """Logs when spans cannot be sent, and when they can again, without the address, which may be secret.

    Parameters
    ----------
    exporter
        Sends the spans.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans."""
        try:
            result = self._exporter.export(spans)
        except Exception:  # noqa: BLE001 - its message may have the address
            result = SpanExportResult.FAILURE
        is_failing = result is not SpanExportResult.SUCCESS
        if is_failing and not self._is_failing:
            _log.warning("spans cannot be sent to trace_endpoint, and are lost until they can")
        elif self._is_failing and not is_failing:
            _log.info("spans are sent to trace_endpoint again")
        self._is_failing = is_failing
        return result

    def shutdown(self) -> None:
        """Stop sending."""
        self._exporter.shutdown()
