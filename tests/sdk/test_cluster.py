"""Clients of a cluster: devices follow the server that serves them; calls change to another server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

import nearcast
from nearcast import GeoObject, Reason, RefusedError, SubscriptionState, TopK, UnavailableError
from nearcast.transport.channel import Channel
from nearcast.transport.servers import Servers
from tests.sdk.conftest import PATIENCE_S, refusal_of, until
from tests.sdk.test_reconnect import SPEC, is_exact, row
from tests.support.nodes import Nodes, another, reached

EXACT = SubscriptionState.EXACT


@pytest.fixture
async def cluster(place):
    nodes = Nodes(place.target, 3)
    await nodes.start()
    yield nodes
    await nodes.stop()


@pytest.fixture(params=["device", "fleet"])
def attaching(request):
    """Return a context of the function that attaches devices to a client, alone or in a fleet."""

    @asynccontextmanager
    async def attaching(client):
        if request.param == "device":
            yield client.attach
        else:
            async with client.fleet() as fleet:
                yield fleet.attach

    return attaching


def sushi(**fields):
    return GeoObject({"sushi"}, 14.5, 35.5, 3600.0, **fields)


async def test_a_device_follows_and_remembers_its_server(cluster, client, attaching):
    first, _, owner = cluster.nodes
    await client.publisher().publish(row(10, start=14.5))
    async with nearcast.connect(first.address) as far, attaching(far) as attach:
        device = await attach("d", lon=14.5, lat=35.5)
        subscription = await device.subscribe(SPEC)
        assert (first.hellos, owner.hellos) == (["d"], ["d"])
        (conversation,) = owner.conversations
        conversation.emit(None)  # the stream ends
        await until(lambda: owner.hellos == ["d", "d"] and subscription.state is EXACT)
        assert first.hellos == ["d"]
        assert await is_exact(client, subscription, 14.5)


async def test_a_device_that_is_detached_follows(cluster, client, attaching):
    first, second, third = cluster.nodes
    publisher = client.publisher()
    await publisher.publish(row(10, start=14.5))
    async with nearcast.connect(cluster.targets) as far, attaching(far) as attach:
        device = await attach("d", lon=14.5, lat=35.5)
        subscription = await device.subscribe(SPEC)
        for node in (first, second, third, first):
            cluster.redirect("d", node)
            await until(lambda node=node: device.is_online and cluster.last["d"] is node)
            assert await is_exact(far, subscription, 14.5)
        for node in (second, third, first):
            cluster.redirect("d", None)
            await until(lambda: not device.is_online)
            assert subscription.state is SubscriptionState.OFFLINE
            requested = asyncio.create_task(device.subscribe(TopK({"tea"}, k=2)))
            await device.move(lon=14.52, lat=35.5)
            cluster.owners["d"] = node
            await until(lambda node=node: device.is_online and cluster.last["d"] is node)
            await publisher.publish([sushi()])
            await far.sync()
            assert subscription.state is EXACT
            assert await is_exact(client, subscription, 14.52)
            await (await requested).unsubscribe()


async def test_devices_of_a_fleet_are_at_several_servers(cluster, client):
    await client.publisher().publish(row(30, start=14.5))
    for i in range(9):
        cluster.owners[f"d{i}"] = cluster.nodes[i % 3]
    async with nearcast.connect(cluster.targets) as far, far.fleet() as fleet:
        devices = [await fleet.attach(f"d{i}", lon=14.5, lat=35.5) for i in range(9)]
        lists = [await device.subscribe(SPEC) for device in devices]
        assert [len(node.conversations) for node in cluster.nodes] == [3, 3, 3]
        streams = sum(node.calls.count("AttachFleet") for node in cluster.nodes)
        assert streams in (3, 4), "a stream that has no devices any more ends, such as the first one"
        await client.publisher().publish(row(5, start=14.49))
        await far.sync()
        for subscription in lists:
            assert await is_exact(client, subscription, 14.5)
        # A server vanishes, and another one takes its devices.
        await cluster.nodes[0].stop()
        for i in (0, 3, 6):
            cluster.owners[f"d{i}"] = cluster.nodes[1]
        await until(lambda: [len(node.conversations) for node in cluster.nodes[1:]] == [6, 3])
        await until(lambda: all(one.state is EXACT for one in lists))
        await devices[0].detach()
        await until(lambda: len(cluster.nodes[1].conversations) == 5)


async def test_a_server_that_cannot_be_reached_is_left_for_one_of_the_list(cluster, client, attaching):
    first, second, owner = cluster.nodes
    await client.publisher().publish(row(10, start=14.5))
    async with nearcast.connect(first.address) as far, attaching(far) as attach:
        device = await attach("d", lon=14.5, lat=35.5)
        subscription = await device.subscribe(SPEC)
        await owner.stop()
        cluster.owners["d"] = second
        await until(lambda: subscription.state is EXACT and cluster.last["d"] is second)
        assert await is_exact(client, subscription, 14.5)
        assert first.hellos == ["d", "d"]


async def test_a_newcomer_tries_all_servers_of_the_list(cluster):
    cluster.owners["d"] = cluster.nodes[1]
    await cluster.nodes[0].stop()
    await cluster.nodes[2].stop()
    async with nearcast.connect(cluster.targets) as far:
        assert (await far.attach("d", lon=14.5, lat=35.5)).is_online


async def test_a_newcomer_fails_if_no_server_can_be_reached(cluster, attaching):
    await cluster.stop()
    async with nearcast.connect(cluster.targets) as far, attaching(far) as attach:
        with pytest.raises(UnavailableError, match="the server cannot be reached"):
            await attach("d", lon=14.5, lat=35.5)


async def test_a_device_waits_for_an_owner(cluster, attaching):
    cluster.owners["d"] = None
    async with nearcast.connect(cluster.targets) as far, attaching(far) as attach:
        attached = asyncio.create_task(attach("d", lon=14.5, lat=35.5))
        await until(lambda: sum(len(node.hellos) for node in cluster.nodes) >= 3)
        assert not attached.done()
        cluster.owners["d"] = cluster.nodes[1]
        device = await attached
        assert device.is_online
        # While it is attached, it loses its owner.
        cluster.owners["d"] = None
        (conversation,) = cluster.nodes[1].conversations
        conversation.end(another(""))
        await until(lambda: not device.is_online)
        cluster.owners["d"] = cluster.nodes[2]
        await until(lambda: device.is_online)


async def test_a_server_that_names_no_other_is_passed_over(cluster, attaching):
    """It may be cut off from the others, one of which serves the device."""
    first, second, _ = cluster.nodes
    cluster.owners["d"] = None
    targets = [first.address, second.address]
    async with nearcast.connect(targets) as far, attaching(far) as attach:
        attached = asyncio.create_task(attach("d", lon=14.5, lat=35.5))
        await until(lambda: len(first.hellos) + len(second.hellos) >= 4)
        cluster.owners["d"] = second
        await attached
    assert abs(len(first.hellos) - len(second.hellos)) <= 1


async def test_servers_that_name_each_other_do_not_make_a_device_spin(cluster, attaching, monkeypatch):
    monkeypatch.setattr("nearcast.transport.device_streams.PATIENCE_S", 4.0)  # to connect at least once
    first, second, _ = cluster.nodes
    monkeypatch.setattr(
        cluster, "owner_of", lambda _: second if len(first.hellos) > len(second.hellos) else first
    )
    async with nearcast.connect(first.address) as far, attaching(far) as attach:
        with pytest.raises(RefusedError) as refused:
            async with asyncio.timeout(PATIENCE_S):
                await attach("d", lon=14.5, lat=35.5)
    assert refused.value.reason is Reason.ANOTHER_SERVER
    assert 3 <= len(first.hellos) + len(second.hellos) < 40


async def test_messages_of_the_former_server_are_ignored(cluster, client):
    first, second, _ = cluster.nodes
    cluster.owners = {"d": first, "e": first}
    await client.publisher().publish(row(10, start=14.5))
    async with nearcast.connect(first.address) as far, far.fleet() as fleet:
        device = await fleet.attach("d", lon=14.5, lat=35.5)
        other = await fleet.attach("e", lon=14.5, lat=35.5)
        subscription = await device.subscribe(SPEC)
        (former,) = [one for one in first.conversations if one.device_id == "d"]
        cluster.redirect("d", second)
        await until(lambda: device.is_online and cluster.last["d"] is second)
        former.end(RefusedError(Reason.SUPERSEDED, "instance", "former", "of this server"))
        await other.subscribe(SPEC)  # its response follows on the same stream
        await far.sync()
        assert device.is_online
        assert await is_exact(client, subscription, 14.5)


@pytest.mark.parametrize(
    ("address", "limit"),
    [
        ("192.0.2.1:7433", "the token would be sent unencrypted"),
        ("example.org", "the token would be sent unencrypted"),
        ("unix:/run/nearcast.sock", "HOST"),
        ("https://127.0.0.1:1", "HOST"),
    ],
)
async def test_a_token_is_not_sent_to_any_address_that_a_server_names(
    cluster, monkeypatch, address, limit
):
    opened = []
    open_channel = Channel._open  # noqa: SLF001 - to see every connection

    def opening(channel):
        opened.append(channel.target)
        open_channel(channel)

    monkeypatch.setattr(Channel, "_open", opening)
    owner = cluster.nodes[-1]
    owner.address = address
    async with nearcast.connect(cluster.nodes[0].address, token="secret") as far:  # noqa: S106
        with pytest.raises(RefusedError, match=limit) as refused:
            await far.attach("d", lon=14.5, lat=35.5)
    assert refused.value.reason is Reason.ANOTHER_SERVER
    assert address in str(refused.value)
    assert set(opened) == {cluster.nodes[0].address}


async def test_a_device_that_is_sent_to_an_unsafe_address_ends(cluster):
    async with nearcast.connect(cluster.nodes[-1].address, token="secret") as far:  # noqa: S106
        device = await far.attach("d", lon=14.5, lat=35.5)
        (conversation,) = cluster.nodes[-1].conversations
        conversation.end(another("192.0.2.1:7433"))
        assert (await refusal_of(device)).reason is Reason.ANOTHER_SERVER


def test_insecure_allows_other_machines():
    async def channel():
        servers = Servers(["192.0.2.1:1"], "secret", None, 240.0, insecure=True)
        return servers.at("192.0.2.2:1")

    assert asyncio.run(channel()).target == "192.0.2.2:1"


def is_lost(client, publisher, node):
    """Return whether a client has noticed that a node has stopped."""
    servers = client._servers  # noqa: SLF001 - a request that is sent before has an unknown outcome
    is_connected = any(one.is_connected for one in servers.listed if one.target == node.address)
    stream = publisher._stream  # noqa: SLF001
    return not is_connected and (stream.has_ended or servers.current.target != node.address)


async def test_publishers_and_calls_change_to_another_server(cluster, client):
    async with nearcast.connect(",".join(cluster.targets)) as far, far.publisher() as publisher:
        ids = await publisher.publish([sushi()])
        for node in cluster.nodes:
            await node.stop()
            await until(lambda node=node: is_lost(far, publisher, node))
            ids += await publisher.publish([sushi()])
            ids += await far.publisher().publish([sushi()])
            assert (await far.status()).state is nearcast.ServerState.SERVING
            assert len(await far.search(TopK({"sushi"}, k=100), lon=14.5, lat=35.5)) == len(ids)
            await publisher.retract(ids.pop())
            await node.start()
            await reached(far._servers)  # noqa: SLF001 - connections are internal
        found = await client.search(TopK({"sushi"}, k=100), lon=14.5, lat=35.5)
        assert sorted(match.object.id for match in found) == sorted(ids), "each once"


async def test_a_publication_without_keys_is_not_repeated_at_another_server(cluster, client):
    async with nearcast.connect(cluster.targets) as far, far.publisher() as publisher:
        await publisher.publish([sushi()])
        (node,) = [node for node in cluster.nodes if "Publish" in node.calls]
        node.withholds.set()
        publishing = asyncio.create_task(publisher.publish([sushi()]))
        keyed = asyncio.create_task(publisher.publish([sushi(key="k")]))
        await node.withheld.wait()
        await until(lambda: keyed.done() or node.withheld.is_set())
        await node.stop()
        with pytest.raises(UnavailableError):
            await publishing
        await keyed
        found = await client.search(TopK({"sushi"}, k=100), lon=14.5, lat=35.5)
        assert len(found) == 3


async def test_calls_fail_if_no_server_can_be_reached(cluster):
    await cluster.stop()
    async with nearcast.connect(cluster.targets) as far:
        with pytest.raises(UnavailableError, match="the server cannot be reached"):
            await far.status()
        with pytest.raises(UnavailableError, match="the server cannot be reached"):
            await far.publisher().publish([sushi()])


async def test_a_connection_that_nothing_uses_is_closed(cluster):
    first, second, third = cluster.nodes
    async with nearcast.connect(first.address) as far:
        device = await far.attach("d", lon=14.5, lat=35.5)
        servers = far._servers  # noqa: SLF001 - connections are internal
        for node in (second, third, second):
            cluster.redirect("d", node)
            await until(lambda node=node: device.is_online and cluster.last["d"] is node)
            await until(lambda: len(servers._all()) == 2)  # noqa: SLF001


@pytest.mark.parametrize("target", [[], "", ",", ["localhost", ""], ["localhost", 7], 7, [["localhost"]]])
async def test_wrong_targets(target):
    with pytest.raises(RefusedError, match="target is"):
        nearcast.connect(target)


@pytest.mark.parametrize("target", ["localhost, 10.0.0.1", ["localhost", "10.0.0.1:80"]])
async def test_a_token_for_several_servers(target):
    with pytest.raises(RefusedError, match="tls is None"):
        nearcast.connect(target, token="secret")  # noqa: S106


def test_blocking_clients_take_several_servers():
    with nearcast.sync.connect(["127.0.0.1:1", "127.0.0.1:2"]) as client:
        assert repr(client) == "<nearcast.sync.Client of '127.0.0.1:1,127.0.0.1:2'>"
