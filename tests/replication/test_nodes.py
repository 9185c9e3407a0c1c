"""Whole servers over servers of a log: side by side, late, killed; and the log's own servers killed."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import time
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import nearcast
from cluster.local_servers import wait_until_healthy
from cluster.log import LogError
from nearcast import GeoObject, Last, RefusedError, TopK
from safe_region import oracle
from server.errors import StoreError
from server.main import Server
from server.settings import ServerSettings
from tests.replication.conftest import log_servers
from tests.support.amounts import SEED
from tests.support.ports import free_port
from tests.support.stuck import STUCK_S

pytestmark = pytest.mark.processes

AREA = "14,35,15,36"
PLACES = ((14.5, 35.5), (14.2, 35.8))
TEA = TopK({"tea", "ice"}, k=20)
POLL_S = 0.02


def settings_of(logs, store, **more):
    replicas = len(logs)
    return ServerSettings(
        **{
            "area": AREA,
            "port": 0,
            "store": store,
            "create": True,
            "log": ",".join(one.url for one in logs),
            "log_monitor": ",".join(one.monitor_url for one in logs),
            "log_replicas": replicas,
            **more,
        }
    )


@asynccontextmanager
async def node(logs, store, **more):
    """Run a node in this process."""
    server = Server(settings_of(logs, store, **more))
    await server.start()
    try:
        async with failing_with(server):
            yield server
    finally:
        if server.is_running:
            await server.stop()


@asynccontextmanager
async def failing_with(server):
    """Raise what ends a task of a node: a test would wait for ever for what the node does no more."""
    test, ended = asyncio.current_task(), []

    def note(task):
        if server.is_running and not task.cancelled():
            ended.append(task)
            test.cancel()

    tasks = server.node.tasks
    for task in tasks:
        task.add_done_callback(note)
    try:
        yield
    except asyncio.CancelledError:
        for task in ended:
            task.result()
        raise
    finally:
        for task in tasks:
            task.remove_done_callback(note)


@asynccontextmanager
async def client(server):
    async with nearcast.connect(f"127.0.0.1:{server.port}") as one:
        yield one


async def until(is_so):
    """Wait for something that must happen."""
    end_s = time.monotonic() + STUCK_S
    while not is_so():  # what is waited for has no event to offer
        assert time.monotonic() < end_s, "never so"
        await asyncio.sleep(POLL_S)


async def digest_of(*nodes):
    """Return the digest of nodes when they have applied the same, which they must reach."""
    appliers = [one.command_loop.applier for one in nodes]
    await until(
        lambda: len({one.offset for one in appliers}) == 1 and all(one.is_whole for one in appliers)
    )
    (digest,) = {one.digest() for one in appliers}  # nothing is applied meanwhile: there was no await
    return digest


def expected(server):
    """Return the results by the definition: place and ids."""
    return [(lon, lat, best(server, lon, lat)) for lon, lat in PLACES]


def best(server, lon, lat, wanted=TEA):
    """Return the ids of a result by the definition."""
    coordinator = server.coordinator
    frame, now_ms = coordinator.frame, coordinator.now_ms
    objects = [
        oracle.OracleObject(
            item.object_id, *item.point, frozenset(item.keywords), item.created_ms, item.expiry_ms
        )
        for item in coordinator.log_objects.all()
    ]
    count = wanted.window.count if wanted.window else None
    window = oracle.OracleWindow(None, count, coordinator.latest_object_id)
    words = frozenset(wanted.keywords)
    spec = oracle.OracleSubscription(words, wanted.k, wanted.alpha, "jaccard", window=window)
    found = oracle.top_k(spec, *frame.project(lon, lat), frame.maxdist_m, objects, now_ms)
    return [one.object_id for one in found]


def none_expires(server):
    """Return whether a node has only objects that live for long."""
    coordinator = server.coordinator
    items = coordinator.log_objects.all()
    return all(item.expiry_ms > coordinator.now_ms + 600_000 for item in items)


def ids_of(matches):
    return [match.object.id for match in matches]


async def walk(caller, device_id, rng):
    """Let a device move while objects come and go; return its place and its subscription."""
    lon, lat = 14.5, 35.5
    device = await caller.attach(device_id, lon=lon, lat=lat)
    window = rng.choice((None, Last(count=10), Last(count=60)))
    offers = await device.subscribe(TopK({"tea", "ice"}, k=rng.choice((1, 5, 20)), window=window))
    for _ in range(30):
        lon, lat = lon + rng.uniform(-0.02, 0.02), lat + rng.uniform(-0.02, 0.02)
        await device.move(lon=lon, lat=lat)
        await asyncio.sleep(0.01)
    return (lon, lat, offers.spec), offers


async def searched(*nodes):
    """Return the results of nodes: place and ids."""
    found = []
    for one in nodes:
        async with client(one) as caller:
            for lon, lat in PLACES:
                matches = await caller.search(TEA, lon=lon, lat=lat)
                found.append((lon, lat, ids_of(matches)))
    return found


async def load(publisher, rng, count):
    """Publish and retract at random; return the replies to what was published."""
    replies = []
    for _ in range(count):
        if rng.random() < 0.15:
            with contextlib.suppress(RefusedError):
                await publisher.retract(key=f"k{rng.randrange(8)}")
            continue
        items = [
            GeoObject(
                {rng.choice(("tea", "ice")), "open"},
                lon=14.5 + rng.uniform(-0.4, 0.4),
                lat=35.5 + rng.uniform(-0.4, 0.4),
                ttl_s=rng.choice((0.001, 0.05, 3_600.0)),
                payload=bytes(rng.randrange(3)),
                key=key,
            )
            for key in rng.sample([f"k{i}" for i in range(8)] + [""] * 8, rng.randrange(1, 5))
        ]
        replies.append(await publisher.publish(items))
    return replies


async def test_nodes_side_by_side_and_later_are_the_same(tmp_path):
    """Two nodes take publishers and a device at once; a third reads all of it later; one comes back."""
    rng = random.Random(SEED)
    with log_servers(tmp_path / "log", 1) as logs:
        async with node(logs, tmp_path / "a.db") as a, node(logs, tmp_path / "b.db") as b:
            async with (
                client(a) as to_a,
                client(b) as to_b,
                to_a.publisher() as one,
                to_b.publisher() as two,
            ):
                device = await to_b.attach("phone", lon=14.5, lat=35.5)
                offers = await device.subscribe(TEA)
                walks = [
                    asyncio.create_task(walk(to, f"d{i}", random.Random(rng.random())))
                    for i, to in enumerate((to_a, to_b) * 5)
                ]
                replies = await asyncio.gather(
                    *(load(publisher, random.Random(rng.random()), 60) for publisher in (one, two, one))
                )
                walkers = await asyncio.gather(*walks)
                await digest_of(a, b)
                last = await one.publish(GeoObject({"tea", "ice"}, lon=14.5, lat=35.5, ttl_s=3_600))
                await digest_of(a, b)
                await to_b.sync()
                await until(lambda: none_expires(a) and none_expires(b))
                results = best(b, 14.5, 35.5)
                assert results[:1] == last
                await until(lambda: ids_of(offers.results()) == results)
                await to_a.sync()
                for place, found in walkers:
                    ids = best(a, *place)
                    assert best(b, *place) == ids
                    await until(lambda found=found, ids=ids: ids_of(found.results()) == ids)
            async with node(logs, tmp_path / "late.db") as late:
                digest = await digest_of(a, b, late)
                found = await searched(a, b, late)
                assert found[:2] == found[2:4] == found[4:] == expected(a)
                assert found[0][2] == results
                ids = [object_id for some in replies for reply in some for object_id in reply]
                assert max(ids) < late.coordinator.latest_object_id + 1
            await b.stop()
            async with node(logs, tmp_path / "b.db") as again:
                assert again.command_loop.applier.offset >= b.command_loop.applier.offset
                assert await digest_of(a, again) != digest, "time goes on"
                assert await searched(a, again) == [*expected(a), *expected(again)]


class NodeProcess:
    """`nearcast serve` with a log, on a fixed port."""

    def __init__(self, logs, store, program=("cli",), flags=()) -> None:
        self.port = free_port()
        self._program = program
        chosen = settings_of(logs, store)
        self._flags = [
            f"--area={AREA}",
            f"--port={self.port}",
            f"--store={store}",
            "--create",
            f"--log={chosen.log}",
            f"--log-monitor={chosen.log_monitor}",
            f"--log-replicas={chosen.log_replicas}",
            *flags,
        ]

    async def start(self):
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *self._program, "serve", *self._flags),
            stdout=asyncio.subprocess.PIPE,
        )
        line = await self._process.stdout.readline()
        assert line.startswith(b"serving on "), line

    def signal(self, number):
        self._process.send_signal(number)

    async def kill(self):
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def publish(self, number, acknowledged):
        """Publish one object after the other until the node is gone; add those that it acknowledges."""
        with contextlib.suppress(nearcast.NearcastError):
            async with nearcast.connect(f"127.0.0.1:{self.port}") as one, one.publisher() as publisher:
                for i in range(10_000):
                    name = b"%d/%d" % (number, i)
                    item = GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=3_600, payload=name)
                    (object_id,) = await publisher.publish(item)
                    acknowledged[object_id] = name


async def test_a_node_that_is_killed_has_lost_nothing_it_acknowledged(tmp_path):
    """Publishers go on until the node dies; every acknowledged object is at the other node, and back."""
    acknowledged: dict[int, bytes] = {}
    with log_servers(tmp_path / "log", 1) as logs:
        victim = NodeProcess(logs, tmp_path / "victim.db")
        await victim.start()
        try:
            async with node(logs, tmp_path / "other.db") as other:
                publishing = [
                    asyncio.create_task(victim.publish(number, acknowledged)) for number in range(4)
                ]
                await until(lambda: len(acknowledged) > 100)
                await victim.kill()
                for task in publishing:
                    task.cancel()
                await asyncio.gather(*publishing, return_exceptions=True)
                await victim.start()
                async with (
                    nearcast.connect(f"127.0.0.1:{victim.port}") as back,
                    back.publisher() as publisher,
                ):
                    (last,) = await publisher.publish(GeoObject({"ice"}, lon=14.5, lat=35.5, ttl_s=3_600))
                    await until(lambda: other.coordinator.latest_object_id >= last)
                    objects = other.coordinator.matching.objects
                    assert {
                        object_id: objects[object_id].payload for object_id in acknowledged
                    } == acknowledged
                    for lon, lat in PLACES:
                        found = await back.search(TEA, lon=lon, lat=lat)
                        async with client(other) as there:
                            assert found == await there.search(TEA, lon=lon, lat=lat)
                    status = await back.status()
                    assert status.gauges["objects"] == len(objects)
        finally:
            await victim.kill()


async def test_what_was_acknowledged_is_there_when_everything_was_killed(tmp_path):
    with log_servers(tmp_path / "log", 3) as logs:
        only = NodeProcess(logs, tmp_path / "node.db")
        await only.start()
        try:
            acknowledged: dict[int, bytes] = {}
            publishing = [asyncio.create_task(only.publish(number, acknowledged)) for number in range(4)]
            await until(lambda: len(acknowledged) > 60)
            for log in logs:
                log.kill()
            await only.kill()
            for task in publishing:
                task.cancel()
            await asyncio.gather(*publishing, return_exceptions=True)
            for log in logs:
                log.start()
            for log in logs:
                await asyncio.to_thread(wait_until_healthy, log)
            async with node(logs, tmp_path / "other.db") as other:
                objects = other.coordinator.matching.objects
                assert {
                    object_id: objects[object_id].payload for object_id in acknowledged
                } == acknowledged
        finally:
            await only.kill()


async def test_publishing_resumes_when_the_leader_of_the_log_is_killed(tmp_path):
    acknowledged: list[int] = []

    async def publish(publisher):
        while True:
            item = GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=3_600)
            acknowledged.extend(await publisher.publish(item))

    with log_servers(tmp_path / "log", 3) as logs:
        async with node(logs, tmp_path / "a.db") as a, node(logs, tmp_path / "b.db") as b:
            async with (
                client(a) as to_a,
                client(b) as to_b,
                to_a.publisher() as one,
                to_b.publisher() as two,
            ):
                publishing = [asyncio.create_task(publish(publisher)) for publisher in (one, two)]
                await until(lambda: len(acknowledged) > 50)
                leader = next(server for server in logs if server.leads("nearcast"))
                leader.kill()
                before = len(acknowledged)
                await until(
                    lambda: len(acknowledged) > before + 50 or any(task.done() for task in publishing)
                )
                for task in publishing:
                    assert not task.done(), task.exception()
                    task.cancel()
                await asyncio.gather(*publishing, return_exceptions=True)
            await digest_of(a, b)
            assert sorted(set(acknowledged)) == sorted(acknowledged)
            for one in (a, b):
                assert set(acknowledged) <= set(one.coordinator.matching.objects)


async def test_a_node_without_its_log_is_not_healthy_until_it_has_it_again(tmp_path):
    with log_servers(tmp_path / "log", 1) as (log,):
        async with (
            node([log], tmp_path / "a.db") as a,
            client(a) as caller,
            caller.publisher() as publisher,
        ):
            (first,) = await publisher.publish(GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=3_600))
            await until_health(a, health_pb2.HealthCheckResponse.SERVING)
            log.kill()
            await until_health(a, health_pb2.HealthCheckResponse.NOT_SERVING)
            matches = await caller.search(TEA, lon=14.5, lat=35.5)
            assert ids_of(matches) == [first]
            log.start()
            await asyncio.to_thread(wait_until_healthy, log)
            await until_health(a, health_pb2.HealthCheckResponse.SERVING)
            (second,) = await publisher.publish(GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=3_600))
            assert second == first + 1


async def health(server):
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        found = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    return found.status


async def until_health(server, status):
    while await health(server) != status:  # noqa: ASYNC110
        await asyncio.sleep(POLL_S)


async def test_virtual_time_is_that_of_the_log(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        async with (
            node(logs, tmp_path / "a.db", virtual_time=True) as a,
            node(logs, tmp_path / "b.db", virtual_time=True) as b,
            client(a) as to_a,
            client(b) as to_b,
            to_b.publisher() as publisher,
        ):
            await to_a.advance_clock(5_000)
            await digest_of(a, b)
            await publisher.publish(GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=1))
            with pytest.raises(RefusedError, match="time_ms is 4999, must be at least 5000"):
                await to_b.advance_clock(4_999)
            await to_b.advance_clock(6_000)
            await digest_of(a, b)
            assert not a.coordinator.log_objects.all()
            for generation, weight in ((1, 2.0), (2, 3.0)):
                assert await set_weights(to_a, weight) == generation
            await digest_of(a, b)
            await publisher.publish(GeoObject({"tea", "ice"}, lon=14.5, lat=35.5, ttl_s=9))
            for caller in (to_a, to_b):
                await caller.sync()
                [found] = await caller.search(TEA, lon=14.5, lat=35.5)
                assert found.object.keywords == {"tea", "ice"}
            assert a.coordinator.matching.generation == b.coordinator.matching.generation == 2
        async with node(logs, tmp_path / "a.db", virtual_time=True) as back:
            assert back.coordinator.matching.generation == 2


async def set_weights(caller, weight):
    """Set weights when all nodes are done with the last ones; return the generation."""
    while True:
        try:
            return await caller.set_idf(nearcast.IdfTable({"tea": weight}))
        except RefusedError as error:
            assert "is coming into force" in str(error)  # noqa: PT017 - else it is tried again


async def test_nodes_that_disagree_do_not_start(tmp_path):
    with log_servers(tmp_path / "log", 1) as logs:
        async with (
            node(logs, tmp_path / "a.db") as a,
            client(a) as caller,
            caller.publisher() as publisher,
        ):
            await publisher.publish(GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=1))
        for more, reason in (
            ({"area": "14,35,15,37"}, "area is"),
            ({"virtual_time": True}, "virtual_time is True, must be False as in the log"),
            ({"tenant_objects_max": 5}, "tenant_objects_max is 5, must be 0 as in the log"),
        ):
            with pytest.raises(LogError, match=reason):
                await Server(settings_of(logs, tmp_path / "b.db", **more)).start()
            assert not (tmp_path / "b.db").exists()
        alone = Server(ServerSettings(area=AREA, port=0, store=tmp_path / "a.db"))
        with pytest.raises(StoreError, match="has the objects of a log: give --log"):
            await alone.start()
        with pytest.raises(StoreError, match="has the objects of another log"):
            await Server(settings_of(logs, tmp_path / "a.db", log_stream="other")).start()
