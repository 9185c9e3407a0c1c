"""From the start of a server to its end: what it says of itself, whom it refuses, what it finishes."""

from __future__ import annotations

import asyncio
import threading

import grpc
import pytest
from grpc_health.v1 import health_pb2

import nearcast
from nearcast.errors import Reason
from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    errors_pb2,
    publisher_service_pb2,
)
from server import command as c
from server.limits import Limits
from server.main import Server
from server.store import SqliteStore
from server.transport.listener import PortError
from tests.support.servers import HeldCommits, serving
from tests.wire.conftest import served, settings, stubs_on
from tests.wire.test_bad_input import HERE, a_spec, an_object, attached, exchange, hello, subscribe

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
Status = control_service_pb2.StatusRequest


async def is_healthy(stubs):
    return (await stubs.health.Check(health_pb2.HealthCheckRequest())).status == SERVING


async def refusal_of(call):
    """Return with which status and reason a call fails."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    error = errors_pb2.Error.FromString(dict(failed.value.trailing_metadata())["nearcast-error-bin"])
    return failed.value.code(), errors_pb2.ErrorReason.Name(error.reason)


async def sent_away(call):
    """Return with which status and reason a stream fails that is told to go away first."""
    assert (await call.read()).HasField("go_away")
    await call.done_writing()
    return await refusal_of(call.read())


async def everything_refused(stubs):
    """Return how all kinds of calls are refused."""
    attach, fleet, publish = (
        stubs.devices.Attach(),
        stubs.devices.AttachFleet(),
        stubs.publishers.Publish(),
    )
    search = device_service_pb2.SearchRequest(spec=a_spec(), position=HERE)
    retract = publisher_service_pb2.RetractRequest(ids=[1])
    calls = [
        publish.read(),
        stubs.devices.Search(search),
        stubs.publishers.Retract(retract),
        stubs.control.Sync(control_service_pb2.SyncRequest()),
        stubs.control.AdvanceClock(control_service_pb2.AdvanceClockRequest(time_ms=1)),
    ]
    streams = [await sent_away(call) for call in (attach, fleet)]
    return {*streams, *[await refusal_of(call) for call in calls]}


class SlowToRecover(Server):
    """A server whose store takes as long to read as the test wants."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.go_on = threading.Event()

    def _recover(self):
        self.go_on.wait()
        return super()._recover()


async def test_a_recovering_server_reports_it_and_refuses(tmp_path, monkeypatch):
    monkeypatch.setattr("server.transport.device_service._RECOVERY_S", 0.1)
    server = SlowToRecover(settings(store=str(tmp_path / "s.db")))
    starting = asyncio.create_task(server.start())
    async with asyncio.timeout(20):
        while not server.port:  # noqa: ASYNC110 - what is waited for has no event to offer
            await asyncio.sleep(0.01)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            stubs = stubs_on(channel)
            status = await stubs.control.Status(Status())
            assert status.state == control_service_pb2.SERVER_STATE_RECOVERING
            assert status.time_ms == 0
            assert not await is_healthy(stubs)
            assert await everything_refused(stubs) == {
                (grpc.StatusCode.UNAVAILABLE, "ERROR_REASON_RECOVERING")
            }
            assert not starting.done()
            server.go_on.set()
            await starting
            assert await is_healthy(stubs)
            status = await stubs.control.Status(Status())
            assert status.state == control_service_pb2.SERVER_STATE_SERVING
            assert status.counters["rejected.RECOVERING"] == 7
            device = await attached(stubs)
            device.cancel()
    finally:
        server.go_on.set()
        await server.stop()


@pytest.mark.parametrize("kind", ["Attach", "AttachFleet"])
async def test_streams_of_devices_wait_for_a_server_that_recovers(kind):
    server = SlowToRecover(settings())
    starting = asyncio.create_task(server.start())
    async with asyncio.timeout(20):
        while not server.port:  # noqa: ASYNC110 - what is waited for has no event to offer
            await asyncio.sleep(0.01)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            stubs = stubs_on(channel)
            call = getattr(stubs.devices, kind)()
            entry = device_service_pb2.AttachFleetRequest.Entry(device_id="device", request=hello())
            fleet = device_service_pb2.AttachFleetRequest(entries=[entry])
            await call.write(hello() if kind == "Attach" else fleet)
            reply = asyncio.create_task(call.read())
            status = await stubs.control.Status(Status())
            assert status.state == control_service_pb2.SERVER_STATE_RECOVERING
            assert not reply.done()
            server.go_on.set()
            await starting
            found = await reply
            response = found if kind == "Attach" else found.entries[0].response
            assert response.HasField("welcome")
            status = await stubs.control.Status(Status())
            assert status.counters["rejected.RECOVERING"] == 0
            call.cancel()
    finally:
        server.go_on.set()
        await server.stop()


async def test_the_sdk_waits_for_a_server_that_recovers(monkeypatch):
    monkeypatch.setattr("server.transport.device_service._RECOVERY_S", 0.01)
    server = SlowToRecover(settings())
    starting = asyncio.create_task(server.start())
    async with asyncio.timeout(20):
        while not server.port:  # noqa: ASYNC110 - what is waited for has no event to offer
            await asyncio.sleep(0.01)
    try:
        async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
            assert (await client.status()).state is nearcast.ServerState.RECOVERING
            requests = [
                client.attach("d", lon=14.5, lat=35.5),
                client.publisher().publish([nearcast.GeoObject({"a"}, 14.5, 35.5, 60.0)]),
                client.search(nearcast.TopK({"a"}), lon=14.5, lat=35.5),
            ]
            tasks = [asyncio.create_task(one) for one in requests]
            rejected = server.coordinator.counters.rejected
            async with asyncio.timeout(20):
                while rejected[Reason.RECOVERING] < 6:  # noqa: ASYNC110 - each has asked, some twice
                    await asyncio.sleep(0.01)
            assert not any(task.done() for task in tasks)
            server.go_on.set()
            device, ids, _ = await asyncio.gather(*tasks)
            subscription = await device.subscribe(nearcast.TopK({"a"}))
            assert [match.object.id for match in subscription.results()] == ids
        await starting
    finally:
        server.go_on.set()
        await server.stop()


async def test_a_store_that_cannot_be_read_stops_the_start(monkeypatch):
    server = Server(settings())
    monkeypatch.setattr(SqliteStore, "recover", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await stubs_on(channel).control.Status(Status())


async def test_a_port_of_another_server():
    """Two servers never divide the connections of a port between them."""
    async with serving(settings()) as server:
        with pytest.raises(PortError, match="must be free"):
            await Server(settings(port=server.port)).start()


async def test_a_draining_server_finishes_responses_and_refuses(tmp_path):
    """A stream that does not end holds the server between draining and stopping, and all can be seen."""
    async with served(store=str(tmp_path / "s.db")) as stubs:
        server, device = stubs.server, await attached(stubs)
        await exchange(device, subscribe=subscribe(1, a_spec()))
        publish, idle = stubs.publishers.Publish(), stubs.publishers.Publish()
        for call in (publish, idle):
            await call.write(publisher_service_pb2.PublishRequest(sequence=1, objects=[an_object()]))
            assert (await call.read()).sequence == 1
        commits = HeldCommits(server.store)
        await publish.write(publisher_service_pb2.PublishRequest(sequence=2, objects=[an_object()]))
        async with asyncio.timeout(20):
            while server.coordinator.latest_object_id < 3:  # noqa: ASYNC110 - until it is planned
                await asyncio.sleep(0.01)
        stopping = asyncio.create_task(server.stop())
        # Deltas that were on their way come first, then the word to reconnect, then the end.
        responses = [await device.read() for _ in range(3)]
        assert [one.WhichOneof("event") for one in responses] == ["delta", "delta", "go_away"]
        assert responses[-1].go_away.error.reason == errors_pb2.ERROR_REASON_DRAINING
        await device.done_writing()
        assert await device.read() is grpc.aio.EOF
        draining = (grpc.StatusCode.UNAVAILABLE, "ERROR_REASON_DRAINING")
        assert await sent_away(idle) == draining
        status = await stubs.control.Status(Status())
        assert status.state == control_service_pb2.SERVER_STATE_DRAINING
        assert not await is_healthy(stubs)
        assert await everything_refused(stubs) == {draining}
        assert (await publish.read()).go_away.admitted_count == 2
        commits.go_on.set()
        (object_id,) = (await publish.read()).ids
        await publish.done_writing()
        assert await refusal_of(publish.read()) == draining
        await stopping
    async with serving(settings(store=str(tmp_path / "s.db"))) as again:
        assert object_id in again.coordinator.matching.objects, "what was answered is there"


async def test_a_device_that_reads_nothing_does_not_hold_up_the_stop(monkeypatch):
    monkeypatch.setattr("server.main._DRAIN_S", 0.2)
    async with served() as stubs:
        server, device = stubs.server, await attached(stubs)
        (sender,) = server.listener.devices.senders

        async def never(_events):
            await asyncio.Event().wait()

        sender.write = never
        await server.stop()
        assert not server.listener.devices.senders
        device.cancel()


async def test_a_client_that_does_not_read_is_not_written_to_for_ever():
    """It pings and reads nothing: answers are kept up to a bound, then the server stops reading, too."""
    async with served(Limits(answers_max=50, queue_max=10, batch_max=10)) as stubs:
        server, device = stubs.server, stubs.devices.Attach()
        await device.write(hello())
        await device.read()
        (sender,) = server.listener.devices.senders
        go_on, write = asyncio.Event(), sender.write

        async def stalled(events):
            await go_on.wait()
            await write(events)

        sender.write = stalled
        for number in range(1, 501):
            ping = device_service_pb2.Ping(number=number)
            await device.write(device_service_pb2.AttachRequest(ping=ping))
        async with asyncio.timeout(20):
            while sender.outbox.answers_count <= 50:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        for _ in range(10):
            await server.command_loop.execute(c.Sync())
        assert sender.outbox.answers_count <= 50 + 10 + 10
        go_on.set()
        assert [(await device.read()).pong.number for _ in range(500)] == list(range(1, 501))
        device.cancel()
