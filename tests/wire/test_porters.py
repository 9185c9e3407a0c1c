"""Processes that hold connections: what is said through them is what the server's own would say."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from hypothesis import given
from hypothesis import strategies as st

import nearcast
from nearcast import GeoObject, RefusedError, SubscriptionState, TopK, UnavailableError
from nearcast.v1 import device_service_pb2
from server.main import Server
from server.porter.frames import WINDOW, Frame, Kind, Wire, packed, unpacked
from server.settings import load_settings
from server.transport.listener import PortError
from server.transport.porters import PorterError
from tests.sdk.conftest import until
from tests.wire.conftest import settings
from tests.wire.test_bad_input import attached
from tests.wire.test_lifecycle import everything_refused, stubs_on

SPEC = TopK({"sushi"}, k=3, alpha=0.9)
CONNECTIONS = 12
"""Enough that one of two porters has none of them once in 2,000 runs."""


@pytest.fixture
async def server():
    server = Server(settings(porters=2))
    await server.start()
    yield server
    with contextlib.suppress(ProcessLookupError):
        await server.stop()


def processes(server):
    return {process.pid for process in server._listener._porters._processes}


def row(count, start=14.0):
    return [GeoObject({"sushi"}, start + 0.01 * i, 35.5, 3600.0) for i in range(count)]


async def crowd(stack, server):
    """Attach devices, each with a connection and a subscription of its own."""
    found = []
    for i in range(CONNECTIONS):
        client = await stack.enter_async_context(nearcast.connect(f"127.0.0.1:{server.port}"))
        device = await client.attach(f"d{i}", lon=14.5, lat=35.5)
        found.append((client, device, await device.subscribe(SPEC)))
    return found


def ids(subscription):
    return [match.object.id for match in subscription.results()]


async def test_devices_of_all_porters_are_told(server):
    async with contextlib.AsyncExitStack() as stack:
        devices = await crowd(stack, server)
        relays = server._listener._porters.relays
        assert all(relay.call_count for relay in relays), "the system divides connections"
        client = devices[0][0]
        object_ids = await client.publisher().publish(row(100))
        for other, _, subscription in devices:
            await other.sync()
            found = await client.search(SPEC, lon=14.5, lat=35.5)
            assert ids(subscription) == [match.object.id for match in found]
        await client.publisher().retract(*object_ids)
        await asyncio.gather(*(other.sync() for other, _, _ in devices))
        assert all(ids(subscription) == [] for _, _, subscription in devices)
    await until(lambda: not any(relay.call_count for relay in server._listener._porters.relays))


async def test_a_refusal_arrives_whole(server):
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        with pytest.raises(RefusedError, match="must be"):
            await client.search(TopK({"x" * 1000}), lon=14.5, lat=35.5)
        with pytest.raises(RefusedError):
            await client.publisher().retract(17)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await channel.unary_unary("/nearcast.v1.DeviceService/Nothing")(b"")
        assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_porter_that_is_killed_is_replaced_and_its_devices_come_back(server):
    async with contextlib.AsyncExitStack() as stack:
        devices = await crowd(stack, server)
        before = processes(server)
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        await until(lambda: len(processes(server) - before) == 1)
        (news,) = await devices[0][0].publisher().publish(row(1, start=14.5))
        await until(lambda: all(one.state is SubscriptionState.EXACT for _, _, one in devices))
        await until(lambda: all(ids(one) == [news] for _, _, one in devices))
        await until(lambda: len(server._listener._porters.relays) == 2)
        server.switchboard.check()


async def test_when_the_server_ends_so_do_its_porters(server):
    pids = processes(server)
    assert len(pids) == 2
    async with contextlib.AsyncExitStack() as stack:
        devices = await crowd(stack, server)
        await server.stop()
        await until(lambda: all(one.state is SubscriptionState.OFFLINE for _, _, one in devices))
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_whoever_is_broken_off_is_told_so(server, monkeypatch):
    monkeypatch.setattr("server.main._DRAIN_S", 0.2)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        stopping = asyncio.create_task(server.stop())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await watch.read()
        assert failed.value.code() in {grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE}
        await stopping


async def test_while_it_drains_everything_is_refused(server):
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stubs = stubs_on(channel)
        server._pump.drain()
        assert await everything_refused(stubs) == {(grpc.StatusCode.UNAVAILABLE, "ERROR_REASON_DRAINING")}


MESSAGE_BYTES = 64_000
BUFFERED_MAX = 48 << 20
"""What the sockets' buffers may hold on a machine with much memory, 36 MB, and gRPC."""


async def test_a_device_that_reads_nothing_is_written_a_window_at_most(server):
    """What it does not take waits in its session, where it is bounded, and not on the way."""
    async with grpc.aio.insecure_channel(
        f"127.0.0.1:{server.port}", [("grpc.http2.lookahead_bytes", 1024)]
    ) as channel:
        device = await attached(stubs_on(channel))
        (outlet,) = server._listener._devices.outlets
        (context,) = (one.context for relay in server._listener._porters.relays for one in relay.calls)
        written, written_max = 0, WINDOW + BUFFERED_MAX // MESSAGE_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                while written <= written_max:
                    await context.write(bytes(MESSAGE_BYTES))
                    written += 1
        assert 0 < written <= written_max
        device.cancel()
        await until(lambda: outlet not in server._listener._devices.outlets)


async def test_a_port_that_is_taken(server):
    other = Server(settings(porters=1, port=server.port))
    with pytest.raises(PortError, match="must be free"):
        await other.start()
    own = Server(settings(port=server.port))
    with pytest.raises(PortError, match="must be free"):
        await own.start()


async def test_how_many():
    with pytest.raises(ValueError, match="porters"):
        load_settings({"porters": 65})
    with pytest.raises(ValueError, match="porters"):
        load_settings({"porters": -1})


frames = st.lists(
    st.builds(Frame, st.sampled_from(Kind), st.integers(0, 2**64 - 1), st.binary(max_size=300)),
    max_size=20,
)


@given(frames, st.lists(st.integers(1, 50), min_size=1))
def test_frames_arrive_as_they_were_sent_however_they_are_cut(sent, cuts):
    class Writer:
        data = b""

        def is_closing(self):
            return False

        def write(self, data):
            self.data += data

        def close(self):
            pass

    async def run():
        writer, reader = Writer(), asyncio.StreamReader()
        wire = Wire(reader, writer)
        for frame in sent:
            wire.send(*frame)
        wire.close()
        received, data, i = [], writer.data, 0
        reading = wire.frames()
        while data:
            size = cuts[i % len(cuts)]
            reader.feed_data(data[:size])
            data, i = data[size:], i + 1
        reader.feed_eof()
        async for some in reading:
            received += some
        assert received == sent

    asyncio.run(run())


texts = st.text(max_size=20)


@given(st.lists(st.tuples(texts, texts | st.binary(max_size=40))), st.lists(texts | st.integers()))
def test_metadata_arrive_as_they_were(metadata, head):
    assert unpacked(packed(head, metadata)) == (head, metadata)


async def test_a_message_beyond_the_limit_is_refused_by_the_porter(server):
    limit = server._pump.switchboard.limits.message_bytes_max
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        search = channel.unary_unary("/nearcast.v1.DeviceService/Search")
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await search(bytes(limit + 1))
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        with pytest.raises(grpc.aio.AioRpcError):
            await search(device_service_pb2.SearchRequest().SerializeToString())


async def test_nobody_is_there_afterwards(server):
    port = server.port
    await server.stop()
    async with nearcast.connect(f"127.0.0.1:{port}") as client:
        with pytest.raises(UnavailableError):
            await client.search(SPEC, lon=14.5, lat=35.5)


async def test_where_they_cannot_be(monkeypatch):
    monkeypatch.delattr("socket.SO_REUSEPORT")
    with pytest.raises(PorterError, match="porters is 2, must be 0"):
        await Server(settings(porters=2)).start()
