"""Names of subscriptions on the wire: kept, listed, unique among those of a device."""

from __future__ import annotations

import grpc
import pytest

from nearcast.v1 import control_service_pb2, device_service_pb2, errors_pb2
from tests.support.identity import token
from tests.wire.city import attach
from tests.wire.test_bad_input import HERE, a_spec, attached, exchange, hello, state

SUSHI, TOFU = a_spec(), a_spec(keywords=["tofu"], k=2)


def subscribe(number, spec, name=""):
    return device_service_pb2.Subscribe(subscription_id=number, spec=spec, position=HERE, name=name)


async def listed(stubs):
    """Return what a welcome lists, to another instance of the app."""
    call = stubs.devices.Attach()
    await call.write(hello(nonce=b"another"))
    welcome = (await call.read()).welcome
    call.cancel()
    return {one.subscription_id: one.name for one in welcome.subscriptions}


async def inspected(stubs):
    request = control_service_pb2.InspectRequest(device_id="device")
    found = (await stubs.control.Inspect(request)).device
    return {one.subscription_id: one.name for one in found.subscriptions}


async def ended(call):
    """End a stream; return when the server has."""
    await call.done_writing()
    while await call.read() is not grpc.aio.EOF:
        pass


async def test_names_are_listed_and_inspected(stubs, server):
    device = await attached(stubs)
    for number, name in ((1, "lunch"), (2, ""), (3, "café 茶")):
        assert (await exchange(device, subscribe=subscribe(number, SUSHI, name))).HasField("delta")
    expected = {1: "lunch", 2: "", 3: "café 茶"}
    assert await inspected(stubs) == expected
    server.coordinator.check()
    await ended(device)
    assert await listed(stubs) == expected


async def test_the_same_number_with_another_name_changes_the_name(stubs, server):
    device = await attached(stubs)
    for name in ("lunch", "dinner", "", "lunch"):
        delta = (await exchange(device, subscribe=subscribe(1, SUSHI, name))).delta
        assert delta.subscription_id == 1
        assert await inspected(stubs) == {1: name}
        server.coordinator.check()
    delta = (await exchange(device, subscribe=subscribe(1, TOFU, "lunch"))).delta
    assert delta.snapshot
    assert await inspected(stubs) == {1: "lunch"}


async def test_another_subscription_of_that_name_is_refused(stubs, server):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, SUSHI, "lunch"))
    await exchange(device, subscribe=subscribe(2, SUSHI, "dinner"))
    before = state(server)
    for number in (2, 3):
        error = (await exchange(device, subscribe=subscribe(number, TOFU, "lunch"))).rejection.error
        assert error.reason == errors_pb2.ERROR_REASON_SUBSCRIPTION_EXISTS
        assert (error.field, error.value) == ("subscribe.name", "'lunch'")
        assert error.limit == "a name that no other subscription of the device has: it is that of 1"
    assert state(server) == before
    assert await inspected(stubs) == {1: "lunch", 2: "dinner"}
    other = await attached(stubs, device_id="other")
    assert (await exchange(other, subscribe=subscribe(1, SUSHI, "lunch"))).HasField("delta"), (
        "of another device"
    )
    await device.write(
        device_service_pb2.AttachRequest(unsubscribe=device_service_pb2.Unsubscribe(subscription_id=1))
    )
    assert (await device.read()).HasField("unsubscribed")
    assert (await exchange(device, subscribe=subscribe(3, TOFU, "lunch"))).HasField("delta"), "it is free"
    assert await inspected(stubs) == {2: "dinner", 3: "lunch"}
    server.coordinator.check()


@pytest.mark.parametrize("name", ["a\nb", "x" * 129, "\u200b"])
async def test_invalid_names(stubs, server, name):
    device = await attached(stubs)
    before = state(server)
    error = (await exchange(device, subscribe=subscribe(1, SUSHI, name))).rejection.error
    assert (error.reason, error.field) == (errors_pb2.ERROR_REASON_INVALID_FIELD, "subscribe.name")
    assert repr(name).startswith(error.value.removesuffix("..."))
    assert error.limit == "0 to 128 printable characters"
    assert state(server) == before


async def test_names_of_tenants_are_their_devices_own(city):
    """Nothing is qualified: a name is only ever looked for among those of one device."""
    for tenant in ("", "acme", "other"):
        who = token("device", "device", tenant=tenant)
        call, _ = await attach(city, who)
        assert (await exchange(call, subscribe=subscribe(1, SUSHI, "lunch"))).HasField("delta")
        await ended(call)
        call, response = await attach(city, who)
        assert [one.name for one in response.welcome.subscriptions] == ["lunch"]
        await ended(call)
    city.server.coordinator.check()
