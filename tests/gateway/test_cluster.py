"""A gateway in front of a cluster: it follows to the server of a device, and its clients do not."""

from __future__ import annotations

import contextlib
import json

import aiohttp
import pytest
from pydantic import ValidationError

from gateway import fleets
from gateway.settings import GatewaySettings
from nearcast.errors import Reason, RefusedError
from tests.gateway.town import Client, reason_of, running, until
from tests.gateway.web_device import WebDevice
from tests.sdk.conftest import Place
from tests.sdk.test_reconnect import SPEC
from tests.support.nodes import Nodes, another, reached
from tests.wire.test_bad_input import hello


@pytest.fixture
async def cluster(tmp_path):
    place = Place(tmp_path / "store.db")
    await place.start()
    nodes = Nodes(place.target, 3)
    await nodes.start()
    yield nodes
    await nodes.stop()
    await place.stop()


@contextlib.asynccontextmanager
async def a_gateway(*servers):
    """Yield a gateway, HTTP, and the address for WebSockets."""
    settings = GatewaySettings(port=0, server=",".join(servers))
    async with running(settings) as gateway, aiohttp.ClientSession() as http:
        yield gateway, http, f"http://127.0.0.1:{gateway.port}/v1/attach"


@contextlib.asynccontextmanager
async def a_socket(http, address):
    async with http.ws_connect(address, protocols=("nearcast.v1",)) as socket:
        yield Client(socket)


async def test_a_gateway_follows_to_the_server_of_a_device(cluster):
    first, _, owner = cluster.nodes
    async with (
        a_gateway(first.address) as (gateway, http, address),
        a_socket(http, address) as client,
        a_socket(http, address) as other,
    ):
        await client.attach("d")
        await client.subscribe()
        cluster.owners["e"] = first
        await other.attach("e")
        assert (first.hellos, owner.hellos) == (["d", "e"], ["d"])
        assert (gateway.counters.streams, gateway.counters.devices) == (2, 2)


async def test_a_device_whose_server_changes_says_hello_again(cluster):
    first, second, owner = cluster.nodes
    async with (
        a_gateway(first.address) as (gateway, http, address),
        a_socket(http, address) as client,
    ):
        await client.attach("d")
        version = (await client.subscribe()).version
        for node in (second, first, owner):
            cluster.redirect("d", node)
            response = await client.receive()
            assert reason_of(response.detached.error) == "SILENT"
            assert response.detached.error.server == "", "browsers cannot use it"
            before = len(first.hellos)
            welcome = await client.attach("d", version=version, epoch=1)
            assert [one.subscription_id for one in welcome.subscriptions] == [1]
            assert cluster.last["d"] is node
            assert len(first.hellos) == before + (node is first), "the gateway knows the server"
            assert (await client.receive()).delta.snapshot
        assert gateway.counters.devices == 1


async def test_devices_of_a_server_that_vanishes_go_to_another(cluster):
    first, second, owner = cluster.nodes
    async with a_gateway(*cluster.targets) as (_gateway, http, address):
        devices = [WebDevice(http, [address], f"d{i}", 14.5, 35.5) for i in range(6)]
        for i, device in enumerate(devices):
            cluster.owners[f"d{i}"] = cluster.nodes[i % 3]
            await device.until(lambda device=device: device.session.is_online)
            device.session.subscribe(SPEC)
            await device.caught_up()
        await owner.stop()
        cluster.owners["d2"], cluster.owners["d5"] = first, second
        for number, node in ((2, first), (5, second)):
            await until(lambda node=node, number=number: cluster.last[f"d{number}"] is node)
            await devices[number].until(lambda number=number: devices[number].session.is_caught_up)
        assert [device.connection_count for device in devices[:2]] == [1, 1]
        for device in devices:
            await device.close()


async def test_the_next_hello_goes_to_another_server_than_the_one_that_knows_none(cluster, monkeypatch):
    nodes = cluster.nodes[:2]
    monkeypatch.setattr(cluster, "owner_of", lambda _: None)
    async with a_gateway(*(one.address for one in nodes)) as (_gateway, http, address):
        for _ in nodes:
            async with a_socket(http, address) as client:
                await client.send(hello(device_id="d"))
                assert reason_of((await client.receive()).go_away.error) == "RECOVERING"
    assert [one.hellos for one in nodes] == [["d"], ["d"]]


@pytest.mark.parametrize("is_without", [False, True])
async def test_a_hello_that_no_server_takes_ends_the_connection(cluster, is_without, monkeypatch):
    """The servers name each other, or none: the client connects again after a while."""
    first, second, _ = cluster.nodes
    monkeypatch.setattr(
        cluster,
        "owner_of",
        lambda _: None if is_without else second if len(first.hellos) > len(second.hellos) else first,
    )
    async with (
        a_gateway(first.address) as (_gateway, http, address),
        a_socket(http, address) as client,
    ):
        await client.send(hello(device_id="d"))
        error = (await client.receive()).go_away.error
        assert (reason_of(error), error.server) == ("RECOVERING", "")
        assert await client.closed() == aiohttp.WSCloseCode.SERVICE_RESTART
        assert len(first.hellos) + len(second.hellos) == (1 if is_without else 4)


async def test_a_gateway_follows_to_no_unsafe_address(cluster):
    cluster.nodes[-1].address = "unix:/run/nearcast.sock"
    async with (
        a_gateway(cluster.nodes[0].address) as (gateway, http, address),
        a_socket(http, address) as client,
    ):
        await client.send(hello(device_id="d"))
        assert reason_of((await client.receive()).go_away.error) == "RECOVERING"
        assert gateway.counters.streams == 1


async def test_streams_to_servers_are_bounded(cluster, monkeypatch):
    monkeypatch.setattr(fleets, "_SERVERS_MAX", 1)
    async with (
        a_gateway(cluster.nodes[0].address) as (gateway, http, address),
        a_socket(http, address) as client,
    ):
        await client.send(hello(device_id="d"))
        assert reason_of((await client.receive()).go_away.error) == "RECOVERING"
        assert gateway.counters.streams == 1


async def test_a_detached_device_that_has_no_server_yet(cluster):
    first, second, owner = cluster.nodes
    async with (
        a_gateway(first.address) as (_gateway, http, address),
        a_socket(http, address) as client,
    ):
        await client.attach("d")
        (conversation,) = owner.conversations
        for error in (another(""), RefusedError(Reason.RECOVERING, "slot", "without", "owned")):
            cluster.owners["d"] = second
            conversation.end(error)
            assert reason_of((await client.receive()).detached.error) == "SILENT"
            await client.attach("d")
            (conversation,) = second.conversations
        assert cluster.last["d"] is second


async def test_calls_go_to_a_server_that_can_be_reached(cluster):
    async with a_gateway(*cluster.targets) as (gateway, http, address):
        base = address.removesuffix("/attach")
        published = {"objects": [{"position": {"lon": 14.5, "lat": 35.5}, "keywords": ["tea"]}]}
        published["objects"][0] |= {"ttl_ms": 60_000, "key": "tea"}
        for node in cluster.nodes:
            await node.stop()
            async with http.get(f"{base}/status") as response:
                assert response.status == 200, await response.text()
            status = (
                502  # the outcome is unknown if the gateway has not noticed that the node has stopped
            )
            while status == 502:
                async with http.post(f"{base}/publish", json=published) as response:
                    status = response.status
            assert status == 200
            await until(lambda: gateway.readiness.is_ready)
            await node.start()
            await reached(gateway._upstream.calls)  # noqa: SLF001 - connections are internal


async def inspect(http, address, **subject):
    """Inspect over HTTP; return the status and the content of the response."""
    url = address.replace("/attach", "/inspect")
    async with http.post(url, json=subject, headers={"Authorization": "Bearer secret"}) as response:
        return response.status, await response.json(content_type=None)


@pytest.mark.parametrize("is_listed", [False, True])
async def test_an_inspection_goes_to_the_server_of_the_device(cluster, is_listed):
    first = cluster.nodes[0]
    listed = cluster.targets if is_listed else [first.address]
    async with (
        a_gateway(*listed) as (gateway, http, address),
        a_socket(http, address) as client,
    ):
        await client.attach("d")
        await client.subscribe()
        for node in cluster.nodes:
            cluster.owners["d"] = node
            status, found = await inspect(http, address, device_id="d")
            assert (status, found["device"]["state"]) == (200, "DEVICE_STATE_IN_SYNC"), found
            subject = {"device_id": "d", "subscription_id": 1}
            status, found = await inspect(http, address, subscription=subject)
            assert (status, found["subscription"]["subscription_id"]) == (200, 1), found
            assert node.calls.count("Inspect") >= 2
        servers = gateway._upstream.calls  # noqa: SLF001 - connections are internal
        assert {one.target for one in servers._all()} == set(listed), "others are closed"  # noqa: SLF001


async def test_an_inspection_whose_server_is_gone_or_unknown_goes_to_another_one(cluster):
    first, second, owner = cluster.nodes
    async with a_gateway(first.address, second.address) as (_gateway, http, address):
        cluster.owners["d"] = None
        status, problem = await inspect(http, address, device_id="d")
        assert (status, problem["reason"]) == (503, "RECOVERING")
        assert (first.calls.count("Inspect"), second.calls.count("Inspect")) == (1, 1)
        cluster.owners["d"] = owner
        await owner.stop()
        assert (await inspect(http, address, device_id="d"))[0] == 502
        cluster.owners["d"] = second
        status, problem = await inspect(http, address, device_id="d")
        assert (status, problem["reason"]) == (404, "UNKNOWN_SUBSCRIPTION"), "it has never attached"


UNSAFE = ("unix:/run/nearcast.sock", "192.0.2.7:7433")


@pytest.mark.parametrize("named", ["", *UNSAFE])
async def test_a_problem_has_no_address_of_a_server(cluster, monkeypatch, named):
    """The servers name each other, or one to which no token may be sent."""
    first, second, owner = cluster.nodes
    if named:
        owner.address = named
    else:
        calls = [first.calls, second.calls]
        monkeypatch.setattr(
            cluster,
            "owner_of",
            lambda _: second if calls[0].count("Inspect") > calls[1].count("Inspect") else first,
        )
    async with a_gateway(first.address) as (_gateway, http, address):
        status, problem = await inspect(http, address, device_id="d")
        assert (status, problem["reason"]) == (503, "RECOVERING")
        assert problem["metadata"]["field"] == "device"
        assert problem["retry_after_ms"] > 0
        text = json.dumps(problem)
        assert not [one for one in (*cluster.targets, "127.0.0.1", named) if one and one in text]
    count = first.calls.count("Inspect") + second.calls.count("Inspect")
    assert count == (1 if named else 4)


async def test_a_hello_to_a_server_with_an_unsafe_address_gets_no_address(cluster):
    first, _, owner = cluster.nodes
    async with (
        a_gateway(owner.address) as (_gateway, http, address),
        a_socket(http, address) as client,
    ):
        await client.attach("d")
        (conversation,) = owner.conversations
        conversation.end(another(UNSAFE[0]))
        assert reason_of((await client.receive()).detached.error) == "SILENT"
        await client.send(hello(device_id="d"))
        error = (await client.receive()).go_away.error
        assert (reason_of(error), error.server) == ("RECOVERING", "")
        assert await client.closed() == aiohttp.WSCloseCode.SERVICE_RESTART
    assert not first.hellos


def test_every_address_of_the_setting_is_validated():
    for server in ("127.0.0.1,", "127.0.0.1:1,https://h", "127.0.0.1,h:0"):
        with pytest.raises(ValidationError, match="server is"):
            GatewaySettings(server=server)
    with pytest.raises(ValidationError, match="must be of this machine without TLS"):
        GatewaySettings(server="127.0.0.1,10.0.0.1")
    assert GatewaySettings(server="10.0.0.1, 10.0.0.2", server_tls=True)
