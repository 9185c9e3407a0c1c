"""Devices through a gateway: the conversation of `Attach` over a WebSocket."""

from __future__ import annotations

import pytest

from nearcast.v1 import control_service_pb2, device_service_pb2
from tests.gateway.town import Request, a_town, reason_of
from tests.support.identity import bearer, token
from tests.wire.city import publish
from tests.wire.test_bad_input import HERE, a_spec, an_object, hello, subscribe

PUBLISHER = token("publisher", "publisher")
REPORT = device_service_pb2.Report(sequence=1, position=HERE, subscription_ids=[1])


async def test_hello_subscribe_snapshot_and_delta(town):
    async with town.client() as client:
        assert client.socket.protocol == "nearcast.v1"
        welcome = await client.attach()
        assert welcome.epoch
        assert not welcome.resumed
        snapshot = await client.subscribe()
        assert snapshot.snapshot
        assert not snapshot.add
        (number,) = (await publish(town, PUBLISHER, an_object(payload=b"20 % off"))).ids
        delta = (await client.receive()).delta
        assert [one.object.id for one in delta.add] == [number]
        assert delta.add[0].object.payload == b"20 % off"
        assert delta.version == snapshot.version + 1
        assert town.gateway.counters.devices == 1


async def test_a_device_resumes_on_another_connection(town):
    async with town.client() as client:
        epoch = (await client.attach()).epoch
        version = (await client.subscribe()).version
    (number,) = (await publish(town, PUBLISHER)).ids
    async with town.client() as client:
        welcome = await client.attach(version=version, epoch=epoch)
        assert welcome.resumed
        delta = (await client.receive()).delta
        assert (delta.version, delta.add[0].object.id) == (version + 1, number)


async def test_a_device_takes_over_from_its_own_earlier_connection(town):
    async with town.client() as old, town.client() as new:
        epoch = (await old.attach()).epoch
        version = (await old.subscribe()).version
        assert (await new.attach(version=version, epoch=epoch)).resumed
        assert reason_of((await old.receive()).detached.error) == "SUPERSEDED"
        assert await old.closed() == 1008
        assert not await new.ping()
        assert town.gateway.counters.devices == 1
        assert town.gateway.counters.streams == 2


async def test_a_new_instance_takes_over_with_the_token_of_the_device_only(town):
    async with town.client() as first, town.client("gateway", name="other") as stranger:
        await first.attach(nonce=b"one")
        await stranger.send(hello(nonce=b"two"))
        refused = (await stranger.receive()).rejection
        assert reason_of(refused.error) == "DEVICE_IN_USE"
        assert refused.command == device_service_pb2.Rejection.COMMAND_HELLO
        assert await stranger.closed() == 1008
        assert not await first.ping()
        async with town.client() as own:
            await own.attach(nonce=b"three")
        assert reason_of((await first.receive()).detached.error) == "SUPERSEDED"


async def test_devices_of_one_gateway_share_a_stream(town):
    async with town.client(name="a") as a, town.client(name="b") as b:
        await a.attach("a")
        await b.attach("b")
        await a.subscribe()
        await b.subscribe()
        assert town.gateway.counters.streams == 1
        await publish(town, PUBLISHER)
        deltas = [(await one.receive()).delta for one in (a, b)]
        assert [len(one.add) for one in deltas] == [1, 1]


async def test_commands_may_follow_a_hello_at_once(town):
    async with town.client() as client:
        await client.send(hello())
        await client.send(Request(subscribe=subscribe(1, a_spec())))
        assert (await client.receive()).HasField("welcome")
        assert (await client.receive()).delta.snapshot


async def test_a_refused_command_leaves_the_connection_open(town):
    async with town.client() as client:
        await client.attach()
        await client.send(Request(subscribe=subscribe(7, a_spec(k=0))))
        rejection = (await client.receive()).rejection
        assert (rejection.number, rejection.error.field) == (7, "spec.top_k.k")
        assert (await client.subscribe()).snapshot


@pytest.mark.parametrize("is_attached", [False, True])
async def test_a_hello_is_the_first_message_and_no_other(town, is_attached):
    async with town.client() as client:
        if is_attached:
            await client.attach()
            await client.send(hello())
        else:
            await client.send(Request(ping=device_service_pb2.Ping(number=1)))
        assert reason_of((await client.receive()).rejection.error) == "OUT_OF_ORDER"
        assert await client.closed() == 1008


async def test_a_device_that_is_forgotten_is_closed(town):
    async with town.client() as client:
        await client.attach()
        request = device_service_pb2.ForgetDeviceRequest(device_id="device")
        await town.devices.ForgetDevice(request, metadata=bearer(token("device", "device")))
        assert reason_of((await client.receive()).detached.error) == "FORGOTTEN"
        assert await client.closed() == 1008


async def test_a_device_whose_lease_ends_says_hello_again_on_the_same_connection(tmp_path):
    flags = {"virtual_time": True, "lease_ms": 1_000}
    async with a_town(tmp_path, server_flags=flags) as town, town.client() as client:
        epoch = (await client.attach()).epoch
        version = (await client.subscribe()).version
        advance = control_service_pb2.AdvanceClockRequest(time_ms=5_000)
        await town.control.AdvanceClock(advance, metadata=bearer(token("one", "operator")))
        assert reason_of((await client.receive()).detached.error) == "LEASE_EXPIRED"
        await client.send(Request(report=REPORT))  # lost: the device is not attached
        await client.attach(version=version, epoch=epoch)
        assert (await client.receive()).delta.snapshot
        assert not await client.ping()
