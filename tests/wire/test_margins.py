"""Positions with a margin, on the wire."""

from __future__ import annotations

import math

from nearcast.v1 import device_service_pb2, errors_pb2, subscriptions_pb2
from tests.support.servers import serving
from tests.wire.conftest import settings
from tests.wire.test_bad_input import (
    HERE,
    Position,
    a_spec,
    an_object,
    attached,
    exchange,
    state,
    subscribe,
)
from tests.wire.test_locate import publish


def hello(margin_m, nonce=b"nonce"):
    return device_service_pb2.Hello(
        device_id="device", instance_nonce=nonce, position=HERE, margin_m=margin_m
    )


def with_margin(margin_m, **changes):
    message = subscribe(1, a_spec(k=1))
    message.margin_m = margin_m
    message.spec.region = changes.get("region", subscriptions_pb2.REGION_MODE_UNSPECIFIED)
    return message


def report(margin_m, sequence=1):
    return device_service_pb2.Report(
        sequence=sequence, position=HERE, subscription_ids=[1], margin_m=margin_m
    )


async def test_a_report_with_a_margin_gets_a_buffer_that_covers_it(stubs):
    near = [an_object(position=Position(lon=14.5 + 0.001 * i, lat=35.5)) for i in range(60)]
    await publish(stubs, *near)
    device = await attached(stubs)
    first = (await exchange(device, subscribe=with_margin(0.0))).delta
    assert len(first.add) == 9
    response = (await exchange(device, report=report(1000.0))).delta
    held = sorted(entry.object.point.x_m + 0.0 for entry in [*first.add, *response.add])
    nearest_m = held[0] - response.anchor.x_m
    share_m = response.add[0].r_m
    assert nearest_m + share_m + 2.0 * 1000.0 < response.reach.length_m
    back = (await exchange(device, report=report(0.0, 2))).delta
    assert not back.add
    assert len(back.drop) == len(response.add)
    device.cancel()


async def test_margins_out_of_their_limits(stubs, server):
    device = await attached(stubs)
    await exchange(device, subscribe=with_margin(0.0))
    before = state(server)
    for margin_m in (-1.0, 5000.5, math.nan, math.inf):
        for command in ({"report": report(margin_m)}, {"subscribe": with_margin(margin_m)}):
            error = (await exchange(device, **command)).rejection.error
            assert (error.field, error.value) == ("margin_m", str(margin_m))
            assert error.limit == "0 to 5000 metres"
            assert state(server) == before
        other = stubs.devices.Attach()
        error = (await exchange(other, hello=hello(margin_m))).rejection.error
        assert error.field == "hello.margin_m"
        other.cancel()
    device.cancel()


async def test_the_limit_is_a_setting_and_sent_to_devices():
    async with serving(settings(margin_m_max=50.0)) as server:
        assert server.coordinator.limits.margin_m_max == 50.0


async def test_a_subscription_with_location_requests_has_no_margin(stubs, server):
    ellipse = subscriptions_pb2.REGION_MODE_ELLIPSE
    device = await attached(stubs)
    error = (await exchange(device, subscribe=with_margin(5.0, region=ellipse))).rejection.error
    assert error.reason == errors_pb2.ERROR_REASON_INVALID_FIELD
    assert (error.field, error.value) == ("margin_m", "5.0")
    assert "ELLIPSE" in error.limit
    assert (await exchange(device, subscribe=with_margin(0.0, region=ellipse))).HasField("delta")
    before = state(server)
    assert (await exchange(device, report=report(5.0))).rejection.error.field == "margin_m"
    assert state(server) == before
    await device.done_writing()
    await device.read()
    # It may attach all the same: what needs to know where it is has no bound, and holds nothing.
    again = stubs.devices.Attach()
    welcome = (await exchange(again, hello=hello(5.0))).welcome
    delta = (await again.read()).delta
    assert delta.snapshot
    assert delta.version == welcome.version
    assert delta.WhichOneof("bound") is None
    assert not delta.add
    assert (await exchange(again, report=report(5.0))).rejection.error.field == "margin_m"
    delta = (await exchange(again, report=report(0.0, 2))).delta
    assert delta.snapshot
    assert delta.WhichOneof("bound") == "reach"
    server.coordinator.check()
    again.cancel()
