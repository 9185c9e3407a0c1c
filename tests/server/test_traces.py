"""Traces: the way of an object from its publisher to its devices, and nothing that was sent."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import nearcast
from nearcast import GeoObject, TopK
from server import object_traces
from server.command import Publish
from server.errors import TracingError
from server.model import Cause, Delta
from server.monitoring.tracing import Tracing
from server.object_traces import ObjectTraces, Span
from server.session import VersionedDelta
from tests.cli.test_serve import AREA, Process
from tests.gateway.town import until
from tests.support.servers import serving
from tests.wire.conftest import settings

STEPS = ["publish", "wait", "commit", "match"]


class Collector(ThreadingHTTPServer):
    """What receives traces."""

    def __init__(self) -> None:
        self.received = []
        self.status = 200

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                self.server.received.append(body)
                self.send_response(self.server.status)
                self.end_headers()

            def log_message(self, *_arguments) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        Thread(target=self.serve_forever, daemon=True).start()

    def spans(self):
        for body in self.received:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    yield from scope.spans


@pytest.fixture
def collector():
    with Collector() as collector:
        yield collector
        collector.shutdown()


def facts(span):
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


async def test_the_way_of_an_object(collector):
    endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    async with (
        serving(settings(trace_share=1.0, trace_endpoint=endpoint)) as server,
        nearcast.connect(f"127.0.0.1:{server.port}") as client,
        client.fleet() as fleet,
    ):
        for name in ("near", "far"):
            device = await fleet.attach(name, lon=14.5, lat=35.5)
            await device.subscribe(TopK({"tea" if name == "near" else "books"}))
        new = [GeoObject({"tea"}, 14.5123456, 35.5, 60.0, payload=b"secret") for _ in range(2)]
        first, _ = await client.publisher().publish(new)
        await client.sync()
    spans = [span for span in collector.spans() if facts(span)["nearcast.object_id"] == first]
    assert Counter(span.name for span in spans) == Counter([*STEPS, "deliver"])
    by_name = {span.name: span for span in spans}
    root = by_name["publish"]
    assert not root.parent_span_id
    assert {span.trace_id for span in spans} == {root.trace_id}
    assert all(span.parent_span_id == root.span_id for span in spans if span is not root)
    times = [by_name[name] for name in ("wait", "commit", "match", "deliver")]
    for before, after in pairwise(times):
        assert before.end_time_unix_nano == after.start_time_unix_nano
    assert facts(root)["nearcast.objects_of_request"] == 2
    assert facts(by_name["deliver"])["nearcast.device_id"] == "near"
    sent = b"".join(collector.received)
    for secret in (b"secret", b"14.51", b"tea"):
        assert secret not in sent
    allowed = {"object_id", "objects_of_request", "device_id", "subscription_id", "cause"}
    assert {key for span in spans for key in facts(span)} <= {f"nearcast.{name}" for name in allowed}


async def test_by_default_nothing_is_followed(collector):
    endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    async with (
        serving(settings(trace_endpoint=endpoint)) as server,
        nearcast.connect(f"127.0.0.1:{server.port}") as client,
    ):
        await client.publisher().publish([GeoObject({"tea"}, 14.5, 35.5, 60.0)])
    await asyncio.sleep(0)
    assert not collector.received


@pytest.mark.processes
async def test_the_log_has_no_address_of_a_collector_only_that_it_fails():
    options = ("--port=0", "--store=:memory:", "--log-level=DEBUG", "--trace-share=1")
    process = Process(AREA, *options, "--trace-endpoint=http://user:geheim@127.0.0.1:1/geheim?key=geheim")
    async with nearcast.connect(process.target) as client:
        await client.publisher().publish([GeoObject({"tea"}, 14.5, 35.5, 60.0)])
        await client.sync()
    assert process.signal(signal.SIGTERM) == 0
    assert "geheim" not in process.output
    assert process.output.count("spans cannot be sent to trace_endpoint") == 1


async def test_the_log_tells_when_spans_are_sent_again(collector, caplog, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    caplog.set_level("INFO", "server.monitoring.tracing")
    tracing = Tracing(f"http://127.0.0.1:{collector.server_port}/v1/traces")
    collector.status = 400
    for object_id in (1, 2):
        tracing.export([Span(object_id, "publish", 1, 2, {})])
        await until(lambda: len(collector.received) == object_id)  # noqa: B023 - awaited here
    await until(lambda: "cannot be sent" in caplog.text)
    collector.status = 200
    tracing.export([Span(3, "publish", 1, 2, {})])
    tracing.close()
    own = [one.getMessage() for one in caplog.records if one.name == "server.monitoring.tracing"]
    assert own == [
        "spans cannot be sent to trace_endpoint, and are lost until they can",
        "spans are sent to trace_endpoint again",
    ]


async def test_without_the_library_there_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "server.monitoring.tracing", raising=False)
    with pytest.raises(TracingError, match=r"traces need opentelemetry.*: pip install '\.\[tracing\]'"):
        async with serving(settings(trace_share=0.5)):
            pass


class Fresh:
    """As much of an object as is followed."""

    def __init__(self, object_id) -> None:
        self.object_id = object_id


def publish(traces, object_id):
    command = Publish(())
    traces.read(command, 0)
    traces.begin_commit()
    traces.committed(command, [Fresh(object_id)])
    traces.matched()


def test_an_object_that_is_followed_no_more_when_it_has_been_matched():
    """It was in the first slice of a request, and has reached many devices before the last one."""
    exported = []
    traces = ObjectTraces(1.0, exported.extend)
    command = Publish(())
    traces.read(command, 0)
    traces.begin_commit()
    traces.committed(command, [Fresh(1)])
    delta = Delta(1, Cause.PUBLISHED, (0.0, 0.0), None, 0, add=[(Fresh(1), 0.0)])
    traces.written([(f"d{i}", VersionedDelta(1, 1, 0, delta, 0)) for i in range(200)])
    assert not len(traces)
    traces.matched()
    assert Counter(span.name for span in exported)["publish"] == 1


def test_a_share_is_followed():
    found = []
    traces = ObjectTraces(0.25, found.extend, lambda: 0)
    for object_id in range(2_000):
        publish(traces, object_id)
    assert 380 <= len(found) / len(STEPS) <= 620


def test_few_are_followed_and_not_for_ever(monkeypatch):
    monkeypatch.setattr(object_traces, "FOLLOWED_MAX", 10)
    now_ns = 0
    traces = ObjectTraces(1.0, lambda _spans: None, lambda: now_ns)
    for object_id in range(100):
        publish(traces, object_id)
    assert len(traces) == 10
    now_ns = object_traces.FOLLOWED_NS + 1
    command = Publish(())
    traces.read(command, now_ns)
    traces.committed(command, [Fresh(100)])
    assert len(traces) == 1


def test_refused_and_known_objects_are_not_traced():
    found = []
    traces = ObjectTraces(1.0, found.extend, lambda: 0)
    command = Publish(())
    traces.read(command, 0)
    traces.committed(command, [])
    traces.committed(command, [Fresh(1)])  # its second end is none
    traces.matched()
    assert not found
