"""Stores that nodes copy from each other: whole servers, real logs that are trimmed, who may copy."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from contextlib import asynccontextmanager, closing

import grpc
import pytest
from grpc_health.v1 import health_pb2

from cluster.log import LogError
from cluster.ownership import NodeState
from cluster.stream import patiently
from cluster.v1 import snapshot_service_pb2
from cluster.v1.snapshot_service_pb2_grpc import SnapshotServiceStub
from identity.authenticator import node_token
from nearcast import GeoObject, RefusedError
from server.main import Server
from server.replication import joining
from server.replication.joining import CopyError
from server.replication.snapshots import CHUNK_BYTES, Snapshots
from server.store import check
from server.store.adopting import snapshot_facts
from server.transport import snapshot_service
from server.transport.authentication import ACTIONS
from server.transport.snapshot_client import NodeAccess, copy_snapshot
from tests.replication.conftest import log_servers
from tests.replication.test_devices import (
    all_exact,
    publish,
    require_exact,
    settled,
    shared,
    subscribed,
    walkers,
)
from tests.replication.test_nodes import (
    POLL_S,
    NodeProcess,
    client,
    digest_of,
    health,
    load,
    node,
    searched,
    settings_of,
    until,
)
from tests.support.amounts import SEED
from tests.support.identity import Authority, keys_in, token

pytestmark = pytest.mark.processes

LARGE = 16_000
"""Bytes of a payload."""
SMALL_WINDOW = (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_536))
"""Options of a channel that takes little more than what is read. Without them gRPC took 5 to 6 MB
ahead on an idle machine; a whole copy has 16."""


@asynccontextmanager
async def short_log(logs, folder):
    """Run a node, whose log has lost its beginning."""
    async with node(logs, folder / "a.db", log_keep_hours=0.0) as first:
        async with client(first) as caller:
            await publish(caller, 200)
        await trimmed(first)
        yield first


async def trimmed(server):
    """Let a node trim its log up to what was appended before."""
    keeper, log = server.node.slots.placement, server.node._log  # noqa: SLF001
    await server.command_loop.store_all()
    stored = server.command_loop.applier.stored_offset
    await until(lambda: keeper.leases() and min(one.stored_offset for one in keeper.leases()) >= stored)
    await trim(server)
    assert await log.first() > stored


async def trim(server):
    """Let a node trim its log now; on a busy machine the log may respond late."""
    await patiently(server.node._trimmer.trim)  # noqa: SLF001


async def test_a_node_that_joins_late_copies_a_store_while_publishers_and_devices_go_on(tmp_path):
    rng = random.Random(SEED)
    with log_servers(tmp_path / "log", 1) as logs:
        async with short_log(logs, tmp_path) as a, client(a) as to_a:
            await settled(a)
            await subscribed([a], range(12))
            async with to_a.publisher() as publisher:
                loading = asyncio.create_task(load(publisher, rng, 150))
                async with node(logs, tmp_path / "b.db") as b:
                    assert b.node._position.offset > 0, "of the store that it has copied"  # noqa: SLF001
                    await loading
                    await digest_of(a, b)
                    await shared(a, b)
                    await require_exact([a, b], range(12))
                    await to_a.sync()
                    async with client(b) as to_b:
                        await to_b.sync()
                    await digest_of(a, b)
            await settled(a)
        assert check(tmp_path / "b.db", lambda *_: None) == []


@pytest.mark.slow
async def test_a_node_that_was_away_for_too_long_copies_a_store(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        async with short_log(logs, tmp_path) as a, client(a) as caller:
            async with node(logs, tmp_path / "b.db") as b:
                await digest_of(a, b)
                before = b.command_loop.applier.offset
            await publish(caller, 50)
            await trimmed(a)
            async with node(logs, tmp_path / "b.db") as b:
                assert b.command_loop.applier.offset > before
                await digest_of(a, b)
                assert await searched(b) == await searched(a)


async def test_a_node_that_is_there_holds_the_log_back(tmp_path, monkeypatch):
    with log_servers(tmp_path / "log", 1) as logs:
        async with short_log(logs, tmp_path) as a, node(logs, tmp_path / "b.db") as b:
            await until(lambda: len(a.node.slots.placement.leases()) == 2)
            assert {one.state for one in a.node.slots.placement.leases()} == {NodeState.READY}
            monkeypatch.setattr(b.store, "commit", _full)
            stored = b.command_loop.applier.stored_offset
            async with client(a) as caller:
                await publish(caller, 50)
            await a.command_loop.store_all()
            await until(
                lambda: max(one.stored_offset for one in a.node.slots.placement.leases()) > stored
            )
            await trim(a)
            await trim(b)
            assert await a.node._log.first() <= stored + 1  # noqa: SLF001
            monkeypatch.undo()


def _full(*_arguments):
    from server.errors import StoreError  # noqa: PLC0415

    raise StoreError("as if the disk were full")


async def test_a_cluster_of_empty_nodes_does_not_start_without_the_beginning_of_its_log(
    tmp_path, monkeypatch
):
    with log_servers(tmp_path / "log", 1) as logs:
        async with short_log(logs, tmp_path):
            pass
        monkeypatch.setattr(joining, "PATIENCE_S", 1.0)
        servers = [Server(settings_of(logs, tmp_path / f"{name}.db")) for name in ("b", "c")]
        (tmp_path / "b.db.snapshot").write_bytes(b"as a node leaves it that is killed during a copy")
        starts = [asyncio.create_task(one.start()) for one in servers]
        await until(lambda: all(one.port for one in servers))
        for one in servers:
            assert await health(one) == health_pb2.HealthCheckResponse.NOT_SERVING
            assert one.node.slots is None, "it owns nothing"
        for found in await asyncio.gather(*starts, return_exceptions=True):
            assert isinstance(found, LogError)
            assert "no node of the cluster sends its store" in str(found)
        assert not list(tmp_path.glob("b.db*"))
        monkeypatch.undo()
        async with node(logs, tmp_path / "a.db") as a, node(logs, tmp_path / "b.db") as b:
            await digest_of(a, b)
            assert len(a.coordinator.log_objects.all()) == 200


@pytest.mark.slow
async def test_a_copy_of_a_node_that_is_killed_meanwhile_comes_from_another_one(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        victim = NodeProcess(logs, tmp_path / "victim.db")
        async with short_log(logs, tmp_path) as a:
            await victim.start()
            try:
                async with client(a) as caller, caller.publisher() as publisher:
                    for _ in range(40):
                        some = [large_object() for _ in range(25)]
                        await publisher.publish(some)
                target = tmp_path / "copy.db"

                def kill(_stage, done, total):
                    assert total > 20 * CHUNK_BYTES
                    if done == CHUNK_BYTES:
                        victim._process.kill()  # noqa: SLF001

                with pytest.raises(CopyError):
                    await copy_snapshot(NodeAccess(f"127.0.0.1:{victim.port}"), target, kill)
                assert target.stat().st_size < 1_000 * LARGE
                async with node(logs, tmp_path / "b.db") as b:
                    await digest_of(a, b)
            finally:
                await victim.kill()


async def test_a_caller_that_does_not_read_makes_way_for_others(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot_service, "_STALL_S", 0.5)
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as a, client(a) as caller:
            async with caller.publisher() as publisher:
                for _ in range(40):
                    await publisher.publish([large_object() for _ in range(25)])
            address = f"127.0.0.1:{a.port}"
            async with grpc.aio.insecure_channel(address, SMALL_WINDOW) as channel:
                call = SnapshotServiceStub(channel).Copy(snapshot_service_pb2.CopyRequest())
                assert (await call.read()).snapshot.size_bytes > 1_000 * LARGE
                while True:
                    with contextlib.suppress(CopyError):
                        await copy_snapshot(NodeAccess(address), tmp_path / "copy.db")
                        break
                    await asyncio.sleep(POLL_S)
                with pytest.raises(grpc.aio.AioRpcError, match="the copy was not read for"):
                    await read_all(call)


async def read_all(call):
    while await call.read() is not grpc.aio.EOF:
        pass


async def test_a_chunk_that_is_damaged_on_its_way_is_noticed(tmp_path):
    mark, count = b"the payload of an object", 50
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as a, client(a) as caller:
            async with caller.publisher() as publisher:
                item = GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=3_600, payload=mark)
                await publisher.publish([item] * count)
            async with damaging(a.port, mark) as port:
                access = NodeAccess(f"127.0.0.1:{port}")
                with pytest.raises(CopyError, match="others than were sent"):
                    await copy_snapshot(access, tmp_path / "copy.db")
            await copy_snapshot(NodeAccess(f"127.0.0.1:{a.port}"), tmp_path / "copy.db")
            assert (tmp_path / "copy.db").read_bytes().count(mark) == count


@asynccontextmanager
async def damaging(port, mark):
    """Forward connections to a port; change a bit of each mark in what comes back."""
    changed = bytes((mark[0] ^ 1, *mark[1:]))

    async def forward(reader, writer, change):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 20):
                writer.write(change(data))
                await writer.drain()
        writer.close()

    async def connected(reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(
            forward(reader, back, lambda data: data),
            forward(there, writer, lambda data: data.replace(mark, changed)),
        )

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def large_object():
    return GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=3_600, payload=bytes(LARGE))


async def test_one_copy_at_a_time_and_a_copy_has_all_that_was_acknowledged(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db", virtual_time=True) as a, client(a) as caller:
            ids = await publish(caller, 100)
            snapshots, target = Snapshots(a.command_loop), tmp_path / "copy.db"
            async with snapshots.made() as found:
                with pytest.raises(RefusedError, match="one at a time"):
                    await snapshots.made().__aenter__()
                assert found.path.stat().st_mode & 0o777 == 0o600
            await copy_snapshot(NodeAccess(f"127.0.0.1:{a.port}"), target)
            assert check(target, lambda *_: None) == []
            assert snapshot_facts(target).offset == a.command_loop.applier.offset
            with closing(sqlite3.connect(target)) as database:
                rows = database.execute("SELECT object_id FROM objects ORDER BY 1").fetchall()
            assert [object_id for (object_id,) in rows] == ids
            assert not list(tmp_path.glob("*.snapshot*")), "nothing stays beside the store"


async def test_only_operators_and_nodes_may_copy(tmp_path):
    authority = Authority()
    for name, content in zip(("chain.pem", "key.pem"), authority.issue(), strict=True):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "roots.pem").write_bytes(authority.pem)
    flags = {
        "jwks": str(keys_in(tmp_path)),
        "tenants": ["acme"],
        "tls_certificate": str(tmp_path / "chain.pem"),
        "tls_key": str(tmp_path / "key.pem"),
        "tls_node_roots": str(tmp_path / "roots.pem"),
        "tls_client_roots": str(tmp_path / "roots.pem"),
        "reflection": True,
    }
    from server.transport.node_calls import node_credentials  # noqa: PLC0415

    files = {"certificate": "chain.pem", "key": "key.pem", "roots": "roots.pem"}
    tls = node_credentials({name: tmp_path / path for name, path in files.items()})
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db", log_keep_hours=0.0, **flags) as a:
            address = f"127.0.0.1:{a.port}"
            key, own = await a.node.key(), a.node.incarnation

            async def copy(who):
                await copy_snapshot(NodeAccess(address, who, tls), tmp_path / "copy.db")

            for who, reason in (
                ("", "UNAUTHENTICATED"),
                ("node.0", "UNAUTHENTICATED"),
                (node_token(key, b"another node"), "UNAUTHENTICATED"),
                (node_token(b"another key", own), "UNAUTHENTICATED"),
                (token("shop", "publisher", "device", "gateway"), "PERMISSION_DENIED"),
                (token("ops", "operator", tenant="acme"), "PERMISSION_DENIED"),
            ):
                with pytest.raises(CopyError, match=reason):
                    await copy(who)
            await copy(node_token(key, own))
            await refused_calls(address, node_token(key, own), tls)
            await copy(token("ops", "operator"))
            await trimmed(a)
            async with node(logs, tmp_path / "b.db", **flags) as b:
                await digest_of(a, b)


async def refused_calls(address, who, tls):
    """Call every other method that needs a token, and require that it is refused."""
    async with grpc.aio.secure_channel(address, tls) as channel:
        for method in ACTIONS.keys() - {"/cluster.v1.SnapshotService/Copy"}:
            metadata = (("authorization", f"Bearer {who}"),)
            call = channel.stream_stream(method)(metadata=metadata, timeout=30.0)
            assert await call.code() is grpc.StatusCode.PERMISSION_DENIED, method


@pytest.mark.parametrize(
    ("flags", "warns"),
    [
        ({"tokens": ["x"], "advertise": "h1.example:7433"}, True),
        ({"tokens": ["x"]}, False),
        ({"advertise": "h1.example:7433"}, False),
    ],
)
async def test_a_node_warns_if_its_token_is_sent_unencrypted(tmp_path, caplog, flags, warns):
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db", **flags):
            assert caplog.text.count("nodes send each other their tokens unencrypted") == warns


async def test_devices_keep_their_results_while_a_store_is_copied(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        async with short_log(logs, tmp_path) as a:
            await settled(a)
            async with walkers([a], 12) as (caller, offers):
                access = NodeAccess(f"127.0.0.1:{a.port}")
                copying = asyncio.create_task(copy_snapshot(access, tmp_path / "copy.db"))
                await publish(caller, 40)
                await copying
                await all_exact(offers, a)
