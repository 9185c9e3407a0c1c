"""The benchmark of neighbours: it runs, honest callers are served, and acts are what they are called."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from bench.neighbours import acting, messages, tenants
from bench.neighbours.acts import ACTS, NOTHING, chosen
from bench.neighbours.experiments import NEIGHBOURS
from bench.neighbours.honest import Publications
from bench.neighbours.http2 import RawConnection, header_block
from bench.neighbours.rows import BOUNDS, exceeded
from bench.neighbours.run import _CALLERS
from bench.neighbours.summaries import recovery_s, summary
from nearcast.v1 import device_service_pb2, publisher_service_pb2

SMALL = ["rounds=1", "objects=300", "before_s=0.3", "during_s=2", "after_s=0.5"]
PATH = "/test.Service/Method"


def test_the_experiments(run_experiments):
    names = ["search-keywords", "health-watches"]
    found = run_experiments("neighbours/devices", settings=[f"acts={','.join(names)}", *SMALL])
    rows = found["neighbours/devices"]
    assert [row["variant"] for row in rows] == names
    for row in rows:
        assert row["objects"] == 300
        assert row["rounds"] == 1
        assert row["acts_sent"] > 0
        assert row["honest_answered"] > 0
        assert row["honest_refused"] == row["honest_broken"] == row["servers_ended"] == 0
        for kind in ("report", "publish"):
            assert row[f"{kind}_count"] == pytest.approx(40, abs=1)
            assert len(row[f"{kind}_runs_ms_p99"]) == 1
            assert 0 < row[f"{kind}_ms_p50"] <= row[f"{kind}_ms_p99"] <= row[f"{kind}_ms_max"]
            assert 0 < row[f"{kind}_ms_p50_without"] <= row[f"{kind}_ms_p99_without"]
            assert row[f"{kind}_p99_ratio"] > 0
        assert row["pause_ms"] >= max(row["report_ms_max"], row["publish_ms_max"])
        assert row["rss_mb"] > 50
        assert row["exceeded"] == exceeded(row)
        assert row["rss_mb_more"] >= row["rss_mb_more_after"]
        assert row["server_counts"]["reports_accepted"] > 0
        if row["variant"] != "health-watches":  # a stream may be refused before its request is sent
            assert row["acts_answered"] + row["acts_refused"] <= row["acts_sent"]


@pytest.mark.slow
def test_operators_who_watch_are_measured(run_experiments):
    found = run_experiments("neighbours/operators", settings=[*SMALL, "during_s=3"])
    rows = found["neighbours/operators"]
    assert [row["variant"] for row in rows] == ["watch", "watch-fast"]
    for row in rows:
        assert row["acts_sent"] == 1
        assert row["acts_answered"] > 0
        assert row["acts_refused"] == row["honest_refused"] == row["servers_ended"] == 0


@pytest.mark.slow
def test_tenants_that_behave_are_measured_beside_one_that_does_not(run_experiments):
    found = run_experiments("neighbours/tenants", settings=["acts=search-keywords", *SMALL])
    rows = found["neighbours/tenants"]
    assert [row["variant"] for row in rows] == ["tenants, closed loop", "tenants, at a rate"]
    members = 3 * 6
    for row in rows:
        assert row["honest_accepted"] >= 2 * members  # of both trials: each was served once before
        for kind in ("reports", "publishes"):
            found = [row[f"{kind}_per_s{one}"] for one in ("_without", "_silent", "", "_after")]
            assert min(found) >= 0
        assert row["ratio"] == min(row["reports_ratio"], row["publishes_ratio"])
        assert 0 <= row["least_share"] <= 1
        assert row["honest_refused"] == row["servers_ended"] == 0
        assert row["acts_counts"]["search-keywords"]["sent"] > 0


@pytest.mark.slow
def test_two_servers_are_compared(run_experiments):
    rows = run_experiments("neighbours/versions", settings=["rounds=2", "objects=300"])[
        "neighbours/versions"
    ]
    assert [row["variant"] for row in rows] == ["reports", "publishes"]
    for row in rows:
        assert row["pairs"] == 2
        assert min(row[f"{name}{one}"] for name in ("per_s", "cpu_us") for one in ("", "_other")) > 0
        assert row["cpu_ratio_q1"] <= row["cpu_ratio"] <= row["cpu_ratio_q3"]


def test_every_act_is_of_some_experiment():
    callers = {one.changes["callers"] for one in NEIGHBOURS.experiments if "callers" in one.changes}
    assert {_CALLERS[act.role] for act in ACTS.values()} == callers


def test_all_acts_are_chosen_but_nothing():
    assert [one.name for one in chosen(())] == [name for name in ACTS if name != NOTHING]
    assert [one.name for one in chosen(("durable", "report-ids"))] == ["report-ids", "durable"]


# -- messages ------------------------------------------------------------------------------------


def parsed(message, data):
    """A message, which has no field that is not known."""
    found = message.FromString(data)
    assert found.SerializeToString()
    return found


def test_messages_written_by_hand_are_of_their_types(monkeypatch):
    monkeypatch.setattr(messages, "PUBLISHER_BYTES", 1_000)
    monkeypatch.setattr(messages, "DEVICE_BYTES", 1_000)
    report = parsed(messages.AttachRequest, messages.report_of_one_id(7)).report
    assert report.sequence == 7
    assert list(report.subscription_ids) == 800 * [1]
    search = device_service_pb2.SearchRequest
    boolean = [
        parsed(search, make()).spec.boolean
        for make in (messages.search_of_clauses, messages.search_of_vertices, messages.search_of_holes)
    ]
    assert len(boolean[0].clauses) == 400
    assert boolean[0].circle.radius_m == 100.0
    assert len(boolean[1].polygon.outer.vertices) == 400
    assert len(boolean[2].polygon.holes) == 400
    assert len(parsed(search, messages.search_of_keywords()).spec.top_k.keywords) == 400
    publish = publisher_service_pb2.PublishRequest
    (wide,) = parsed(publish, messages.publication_of_vertices()).objects
    assert len(wide.area.polygon.vertices) == 400
    assert len(parsed(publish, messages.publication_of_empty_objects()).objects) == 200
    retract = parsed(publisher_service_pb2.RetractRequest, messages.retraction_of_ids())
    assert list(retract.ids) == 800 * [1]
    fleet = device_service_pb2.AttachFleetRequest
    assert len(parsed(fleet, messages.fleet_of_empty_entries()).entries) == 400
    requests = [messages.hello("d"), messages.report(3)]
    entries = parsed(fleet, messages.fleet("d", requests)).entries
    assert [one.request.SerializeToString() for one in entries] == requests


def test_large_messages_are_within_the_bound_of_older_servers():
    for make, most in (
        (lambda: messages.report_of_one_id(1), 2**20),
        (messages.search_of_clauses, 2**20),
        (messages.publication_of_empty_objects, 2**25),
        (messages.retraction_of_ids, 2**25),
    ):
        assert most - 300 < len(make()) <= most


def test_polygons_have_their_number_of_corners():
    assert len(messages.comb(512)) == len(set(messages.comb(512))) == 512
    assert len(messages.comb(63)) == 63
    assert len(messages.fan().boolean.polygon.holes) == 168


# -- figures -------------------------------------------------------------------------------------


def test_a_summary_has_the_messages_due_within_the_span():
    latencies = [(0.1 * i, 0.001 * i) for i in range(100)]
    found = summary(latencies, 1.0, 5.0)
    assert found == (40, 30.0, 49.0, 49.0)
    assert summary(latencies, 50.0, 60.0) == (0, 0.0, 0.0, 0.0)


def test_latencies_are_as_before_once_nine_of_ten_are():
    slow = [(0.05 * i, 0.3 if 0.05 * i < 2.0 else 0.01) for i in range(200)]
    assert recovery_s(slow, 0.008, 0.0, 10.0) == pytest.approx(1.9, abs=0.11)
    assert recovery_s(slow, 0.2, 0.0, 10.0) == 0.0
    assert recovery_s(slow, 0.001, 0.0, 10.0) is None
    assert recovery_s([], 1.0, 0.0, 10.0) is None


def test_bounds_that_are_exceeded_are_named():
    row = dict(BOUNDS)
    assert exceeded(row) == []
    row |= {"pause_ms": 50.1, "recovery_s": None}
    assert exceeded(row) == ["pause_ms", "recovery_s"]


def test_rates_are_those_of_the_tenants_that_behave():
    def counts(*reports):
        return {name: [10 * n, n] for name, n in zip(tenants.TENANTS, reports, strict=True)}

    samples = [(1.0, counts(0, 0, 0, 0)), (2.0, counts(1, 2, 3, 900)), (3.0, counts(2, 4, 6, 9_000))]
    found = tenants.rates(samples, 0.5, 3.5)
    assert found.by_kind == {"reports": 60.0, "publishes": 6.0}
    assert found.least_share == pytest.approx(0.5)


@pytest.mark.slow
def test_messages_that_a_stream_does_not_take_count_as_waiting():
    """A server that reads nothing: the stream is full long before all that is due was written."""
    per_s = 50_000.0

    async def act(address, _metadata):
        async with grpc.aio.insecure_channel(address) as channel:
            paced = Publications(channel, "", per_s)
            task = asyncio.create_task(paced.run())
            sent = -1
            while sent < 0 or paced.written_count > sent:  # until nothing more was sent for a while
                sent = paced.written_count
                await asyncio.sleep(0.5)
            found = paced.result()
            task.cancel()
        dues = [due_s for due_s, _ in found["latencies"]]
        assert found["answered"] == found["refused"] == found["broken"] == 0
        assert len(dues) == found["unanswered"] > sent + 0.4 * per_s
        assert dues == sorted(dues)
        assert dues[-1] - dues[0] == pytest.approx((len(dues) - 1) / per_s)

    asyncio.run(_served(act))


# -- HTTP/2 --------------------------------------------------------------------------------------


async def _eventually(condition):
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event to offer
            await asyncio.sleep(0.005)


async def _served(act):
    """Let `act` have a real server: one method returns a kilobyte, the other reads nothing."""
    metadata = []

    async def method(request, context):
        metadata.append(dict(context.invocation_metadata()))
        return request + bytes(1_000)

    server = grpc.aio.server()

    async def reads_nothing(_requests, _context):
        await asyncio.Event().wait()

    handlers = [
        grpc.method_handlers_generic_handler(service, {name: handler})
        for service, name, handler in (
            ("test.Service", "Method", grpc.unary_unary_rpc_method_handler(method)),
            (
                "nearcast.v1.PublisherService",
                "Publish",
                grpc.stream_stream_rpc_method_handler(reads_nothing),
            ),
        )
    ]
    server.add_generic_rpc_handlers(handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        await act(f"127.0.0.1:{port}", metadata)
    finally:
        await server.stop(None)


def test_calls_on_a_raw_connection_are_calls():
    async def act(address, metadata):
        connection = await RawConnection.open(address)
        block = header_block(PATH, 200 * "t")
        for _ in range(200):  # more than the windows of a connection let through at once
            await connection.call(block, b"x", ahead_max=50)
        await _eventually(lambda: connection.ended == 200)
        assert metadata[-1]["authorization"] == "Bearer " + 200 * "t"
        await connection.call(block, b"x", is_reset=True)
        assert connection.ended == connection.sent == 201
        connection.close()

    asyncio.run(_served(act))


def test_without_a_window_a_response_does_not_arrive():
    async def act(address, metadata):
        connection = await RawConnection.open(address, window=0)
        await connection.call(header_block(PATH), b"x")
        await _eventually(lambda: metadata and connection.frames[1])  # its headers have come
        other = await RawConnection.open(address)
        await other.call(header_block(PATH), b"x")
        await _eventually(lambda: other.ended == 1)
        assert connection.ended == 0
        assert connection.frames[0] == 0
        connection.close()
        other.close()

    asyncio.run(_served(act))


def test_a_connection_that_the_server_has_closed_takes_no_call():
    async def act(address, _metadata):
        connection = await RawConnection.open(address)
        connection.writer.write(b"\0\0\0\xff")  # no frame of HTTP/2
        connection.writer.write(bytes(64))
        await _eventually(lambda: connection.is_closed)
        with pytest.raises(ConnectionError):
            await connection.call(header_block(PATH), b"x")
        connection.close()

    asyncio.run(_served(act))


def test_an_act_that_the_server_ends_is_repeated():
    """The server knows nothing of devices: it ends each stream at once."""

    async def act(address, _metadata):
        orders = [{"act": "report-ids", "name": "d", "token": ""}]
        counts = (await acting.act(address, 2.0, orders))["report-ids"]
        assert counts["refused"] > 1

    asyncio.run(_served(act))
