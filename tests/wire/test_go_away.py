"""A server that drains sends `GoAway`, and discards what it reads until streams are half-closed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import grpc
import pytest

from nearcast.v1 import device_service_pb2, errors_pb2, publisher_service_pb2
from tests.sdk.conftest import until
from tests.support.servers import HeldCommits, serving
from tests.wire.conftest import served, settings, stubs_on
from tests.wire.test_bad_input import a_spec, an_object, hello, subscribe
from tests.wire.test_lifecycle import SlowToRecover, refusal_of

DRAINING = errors_pb2.ERROR_REASON_DRAINING
Attach = device_service_pb2.AttachRequest
Fleet = device_service_pb2.AttachFleetRequest


@asynccontextmanager
async def a_server(tmp_path):
    """Run a server with a store; yield it and stubs."""
    async with served(store=str(tmp_path / "s.db")) as stubs:
        yield stubs.server, stubs


@asynccontextmanager
async def held_commits(server):
    """Hold commits until the test says so, or ends."""
    commits = HeldCommits(server.store)
    try:
        yield commits
    finally:
        commits.go_on.set()


async def kept(tmp_path):
    """Return the objects and the subscriptions that a server on the same store knows."""
    async with serving(settings(store=str(tmp_path / "s.db"))) as again:
        objects = sorted(again.coordinator.matching.objects)
        return objects, sorted(
            (device, number)
            for device, session in again.coordinator.sessions.items()
            for number in session.handles
        )


def a_request(sequence):
    return publisher_service_pb2.PublishRequest(sequence=sequence, objects=[an_object()])


async def ended(call):
    """Return what comes before the end of a stream, and its status."""
    found = []
    while (message := await call.read()) is not grpc.aio.EOF:
        found.append(message)
    return found, await call.code()


# -- publishers ----------------------------------------------------------------------------------


async def test_a_publisher_gets_the_number_of_admitted_requests_and_their_responses(tmp_path):
    async with a_server(tmp_path) as (server, stubs), held_commits(server) as commits:
        call = stubs.publishers.Publish()
        await call.write(a_request(1))
        await until(lambda: server.coordinator.latest_object_id > 0)
        for sequence in range(2, 71):
            await call.write(a_request(sequence))
        await until(lambda: server.command_loop.waiting_count == 63)
        stopping = asyncio.create_task(server.stop())
        message = await call.read()
        assert message.go_away.admitted_count == 64
        assert message.go_away.error.reason == DRAINING
        assert (message.sequence, list(message.ids)) == (0, [])
        for sequence in range(71, 200):
            await call.write(a_request(sequence))
        commits.go_on.set()
        responses = [await call.read() for _ in range(64)]
        assert [response.sequence for response in responses] == list(range(1, 65))
        ids = [object_id for response in responses for object_id in response.ids]
        assert len(ids) == 64
        await call.write(a_request(200))
        await asyncio.sleep(0.05)
        assert not stopping.done(), "it reads on"
        await call.done_writing()
        assert await refusal_of(call.read()) == (grpc.StatusCode.UNAVAILABLE, "ERROR_REASON_DRAINING")
        await stopping
    assert await kept(tmp_path) == (ids, [])


async def test_an_idle_publisher_is_notified(tmp_path):
    async with a_server(tmp_path) as (server, stubs):
        call = stubs.publishers.Publish()
        await call.initial_metadata()
        stopping = asyncio.create_task(server.stop())
        assert (await call.read()).go_away.admitted_count == 0
        await call.done_writing()
        assert await refusal_of(call.read()) == (grpc.StatusCode.UNAVAILABLE, "ERROR_REASON_DRAINING")
        await stopping


async def test_a_publisher_that_has_half_closed_before_gets_its_responses_and_the_end(tmp_path):
    async with a_server(tmp_path) as (server, stubs), held_commits(server) as commits:
        call = stubs.publishers.Publish()
        await call.write(a_request(1))
        await call.done_writing()
        await until(lambda: server.coordinator.latest_object_id > 0)
        stopping = asyncio.create_task(server.stop())
        assert (await call.read()).go_away.admitted_count == 1
        commits.go_on.set()
        assert len((await call.read()).ids) == 1
        assert await refusal_of(call.read()) == (grpc.StatusCode.UNAVAILABLE, "ERROR_REASON_DRAINING")
        await stopping


async def test_a_publisher_that_does_not_half_close_does_not_hold_up_the_stop(tmp_path, monkeypatch):
    monkeypatch.setattr("server.main._DRAIN_S", 0.2)
    async with a_server(tmp_path) as (server, stubs):
        call = stubs.publishers.Publish()
        await call.write(a_request(1))
        (object_id,) = (await call.read()).ids
        stopping = asyncio.create_task(server.stop())
        assert (await call.read()).go_away.admitted_count == 1
        await call.write(a_request(2))
        assert await refusal_of(call.read()) == (grpc.StatusCode.UNAVAILABLE, "ERROR_REASON_DRAINING")
        await stopping
    assert await kept(tmp_path) == ([object_id], [])


# -- devices -------------------------------------------------------------------------------------


async def test_go_away_comes_after_queued_events_of_a_device(tmp_path):
    async with a_server(tmp_path) as (server, stubs):
        call = stubs.devices.Attach()
        await call.write(hello())
        assert (await call.read()).HasField("welcome")
        await call.write(Attach(subscribe=subscribe(1, a_spec())))
        assert (await call.read()).delta.version == 1
        publish = stubs.publishers.Publish()
        await publish.write(a_request(1))
        (object_id,) = (await publish.read()).ids
        stopping = asyncio.create_task(server.stop())
        news, message = await call.read(), await call.read()
        assert [entry.object.id for entry in news.delta.add] == [object_id]
        assert message.go_away.error.reason == DRAINING
        await call.write(Attach(subscribe=subscribe(2, a_spec())))
        await call.write(Attach(ping=device_service_pb2.Ping(number=1)))
        await asyncio.sleep(0.05)
        assert not stopping.done(), "it reads on"
        await call.done_writing()
        assert await ended(call) == ([], grpc.StatusCode.OK)
        await stopping
    assert await kept(tmp_path) == ([object_id], [("device", 1)])


def an_entry(device_id, request):
    return Fleet(entries=[Fleet.Entry(device_id=device_id, request=request)])


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b", "c")])
async def test_go_away_comes_once_for_a_fleet(tmp_path, names):
    """Also without devices; a hello that comes later is discarded."""
    async with a_server(tmp_path) as (server, stubs):
        call = stubs.devices.AttachFleet()
        for name in names:
            await call.write(an_entry(name, hello(device_id=name)))
            assert (await call.read()).entries[0].response.HasField("welcome")
            await call.write(an_entry(name, Attach(subscribe=subscribe(1, a_spec()))))
            assert (await call.read()).entries[0].response.HasField("delta")
        await until(lambda: len(server.listener.devices.senders) == 1)
        stopping = asyncio.create_task(server.stop())
        message = await call.read()
        assert message.go_away.error.reason == DRAINING
        assert not message.entries
        for name in (*names, "late"):
            await call.write(an_entry(name, hello(device_id=name)))
            await call.write(an_entry(name, Attach(subscribe=subscribe(2, a_spec()))))
        await asyncio.sleep(0.05)
        assert not stopping.done(), "it reads on"
        await call.done_writing()
        assert await ended(call) == ([], grpc.StatusCode.OK)
        await stopping
    assert await kept(tmp_path) == ([], [(name, 1) for name in names])


@pytest.mark.parametrize("kind", ["Attach", "AttachFleet"])
async def test_a_device_that_does_not_half_close_does_not_hold_up_the_stop(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("server.main._DRAIN_S", 0.2)
    async with a_server(tmp_path) as (server, stubs):
        call = getattr(stubs.devices, kind)()
        await call.write(hello() if kind == "Attach" else an_entry("device", hello()))
        await call.read()
        stopping = asyncio.create_task(server.stop())
        assert (await call.read()).go_away.error.reason == DRAINING
        assert await ended(call) == ([], grpc.StatusCode.OK)
        await stopping


# -- streams that are refused --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Attach", "AttachFleet"])
async def test_a_refused_stream_gets_go_away(tmp_path, kind, monkeypatch):
    """Its client sends a hello at once, and must not miss the reason."""
    monkeypatch.setattr("server.transport.device_service._RECOVERY_S", 0.1)
    server = SlowToRecover(settings(store=str(tmp_path / "s.db")))
    starting = asyncio.create_task(server.start())
    await until(lambda: server.port)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            call = getattr(stubs_on(channel).devices, kind)()
            greeting = hello() if kind == "Attach" else an_entry("device", hello())
            await call.write(greeting)
            assert (await call.read()).go_away.error.reason == errors_pb2.ERROR_REASON_RECOVERING
            await call.write(greeting)
            await call.done_writing()
            recovering = (grpc.StatusCode.UNAVAILABLE, "ERROR_REASON_RECOVERING")
            assert await refusal_of(call.read()) == recovering
            server.go_on.set()
            await starting
            assert "device" not in server.coordinator.sessions
    finally:
        server.go_on.set()
        await server.stop()


async def test_a_refused_stream_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("server.transport.device_service._HALF_CLOSE_S", 0.1)
    async with a_server(tmp_path) as (server, stubs):
        server.command_loop.drain()
        call = stubs.devices.Attach()
        assert (await call.read()).go_away.error.reason == DRAINING
        assert await refusal_of(call.read()) == (grpc.StatusCode.UNAVAILABLE, "ERROR_REASON_DRAINING")
