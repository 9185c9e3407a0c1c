"""A subscribe with the number of a subscription and another spec changes it in place: one snapshot."""

from __future__ import annotations

import grpc
import pytest

from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    errors_pb2,
    geometry_pb2,
    subscriptions_pb2,
)
from server.limits import Limits
from tests.wire.conftest import served
from tests.wire.test_bad_input import HERE, a_spec, an_object, attached, exchange, hello, subscribe
from tests.wire.test_locate import lamps_spec, publish

Ping = device_service_pb2.Ping
SUSHI, TOFU = a_spec(), a_spec(keywords=["tofu"], k=2)


def ids_of(delta):
    return sorted(entry.object.id for entry in delta.add)


def words(*keywords):
    return an_object(keywords=keywords)


@pytest.fixture
async def changed(stubs):
    """A device that had sushi, and has tofu now under the same number."""
    stubs.sushi = await publish(stubs, *(words("sushi") for _ in range(3)))
    stubs.tofu = await publish(stubs, words("tofu"), words("tofu", "tea"))
    device = await attached(stubs)
    first = (await exchange(device, subscribe=subscribe(1, SUSHI))).delta
    assert ids_of(first) == stubs.sushi
    await device.write(device_service_pb2.AttachRequest(subscribe=subscribe(1, TOFU)))
    device.change = (await device.read()).delta
    yield device
    device.cancel()


async def test_the_response_is_one_snapshot(stubs, server, changed):
    delta = changed.change
    assert (delta.version, delta.subscription_id, delta.snapshot) == (2, 1, True)
    assert delta.cause == subscriptions_pb2.CAUSE_SUBSCRIBED
    assert ids_of(delta) == stubs.tofu
    assert not delta.drop
    assert (await exchange(changed, ping=Ping(number=1))).HasField("pong"), "and nothing else"
    assert server.coordinator.matching.engine.subscription_count == 1
    server.coordinator.check()


async def test_nothing_of_the_old_spec_follows(stubs, changed):
    await publish(stubs, words("sushi"))
    assert (await exchange(changed, ping=Ping(number=1))).HasField("pong")
    (news,) = await publish(stubs, words("tofu", "sushi"))
    delta = (await changed.read()).delta
    assert (delta.version, ids_of(delta), delta.snapshot) == (3, [news], False)
    here = geometry_pb2.Position(lon=14.9, lat=35.9)
    report = device_service_pb2.Report(sequence=1, position=here, subscription_ids=[1])
    delta = (await exchange(changed, report=report)).delta
    assert (delta.version, ids_of(delta), delta.report_sequence) == (4, [], 1)


async def test_the_same_spec_again_is_an_evaluation_and_no_snapshot(changed):
    delta = (await exchange(changed, subscribe=subscribe(1, TOFU))).delta
    assert (delta.version, delta.snapshot, ids_of(delta)) == (3, False, [])


async def test_there_and_back_again(stubs, server, changed):
    delta = (await exchange(changed, subscribe=subscribe(1, SUSHI))).delta
    assert (delta.version, delta.snapshot, ids_of(delta)) == (3, True, stubs.sushi)
    server.coordinator.check()


async def test_another_scale_is_another_spec(stubs, server, changed):
    """The text shares of what the device holds are by the scale: all is sent again."""
    shares = []
    for scale_m in (0.0, 5_000.0, 5_000.0, 0.0):
        spec = a_spec(keywords=["tofu"], k=2, distance_scale_m=scale_m)
        delta = (await exchange(changed, subscribe=subscribe(1, spec))).delta
        shares.append({entry.object.id: entry.r_m for entry in delta.add})
        assert delta.snapshot == bool(delta.add)
    unchanged, scaled, again, back = shares
    assert unchanged == again == {}, "the same spec is an evaluation and no snapshot"
    diagonal_m = server.coordinator.frame.maxdist_m
    exact, half = stubs.tofu
    assert scaled == {exact: 0.0, half: 2_500.0}
    assert back == {exact: 0.0, half: diagonal_m / 2.0}


async def test_a_change_that_is_refused_changes_nothing(stubs, changed):
    response = await exchange(changed, subscribe=subscribe(1, a_spec(k=0)))
    assert response.rejection.error.field == "spec.top_k.k"
    await publish(stubs, words("sushi"))
    (news,) = await publish(stubs, words("tofu"))
    delta = (await changed.read()).delta
    assert (delta.version, ids_of(delta)) == (3, [news])


async def test_a_change_that_was_missed_is_resumed(stubs, changed):
    await changed.done_writing()
    assert await changed.read() is grpc.aio.EOF
    await stubs.control.Sync(control_service_pb2.SyncRequest())
    (news,) = await publish(stubs, words("tofu"))
    again = stubs.devices.Attach()
    await again.write(hello(version=1, epoch=changed.epoch))
    welcome = (await again.read()).welcome
    assert welcome.resumed
    assert [list(one.spec.top_k.keywords) for one in welcome.subscriptions] == [["tofu"]]
    change, delta = [(await again.read()).delta for _ in range(2)]
    assert change == changed.change
    assert (delta.version, ids_of(delta), delta.snapshot) == (3, [news], False)
    again.cancel()


async def test_another_instance_gets_the_new_spec_only(stubs, changed):
    await changed.done_writing()
    assert await changed.read() is grpc.aio.EOF
    await stubs.control.Sync(control_service_pb2.SyncRequest())
    again = await attached(stubs, nonce=b"another instance")
    delta = (await again.read()).delta
    assert (delta.snapshot, ids_of(delta)) == (True, stubs.tofu)
    assert (await exchange(again, ping=Ping(number=1))).HasField("pong")
    again.cancel()


async def test_a_location_request_for_the_old_spec_needs_no_response(stubs, server):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, lamps_spec(k=1)))
    ids = await publish(stubs, an_object())
    assert (await device.read()).HasField("locate")
    delta = (await exchange(device, subscribe=subscribe(1, a_spec(k=1)))).delta
    assert (delta.snapshot, ids_of(delta)) == (True, ids)
    await stubs.control.Sync(control_service_pb2.SyncRequest())  # which would wait for the answer
    server.coordinator.check()
    device.cancel()


async def test_a_device_with_the_maximum_may_change_a_subscription():
    async with served(Limits(subscriptions_per_device_max=1)) as stubs:
        device = await attached(stubs)
        await exchange(device, subscribe=subscribe(1, SUSHI))
        refused = await exchange(device, subscribe=subscribe(2, TOFU))
        assert refused.rejection.error.reason == errors_pb2.ERROR_REASON_TOO_MANY
        assert (await exchange(device, subscribe=subscribe(1, TOFU))).delta.snapshot
        device.cancel()


async def test_the_new_spec_is_durable(tmp_path):
    tofu = []
    for is_second in (False, True):
        async with served(store=str(tmp_path / "store.db")) as stubs:
            device = stubs.devices.Attach()
            await device.write(hello())
            welcome = (await device.read()).welcome
            if not is_second:
                await publish(stubs, words("sushi"))
                tofu = await publish(stubs, words("tofu"))
                await exchange(device, subscribe=subscribe(1, SUSHI))
                assert (await exchange(device, subscribe=subscribe(1, TOFU))).delta.snapshot
            else:
                (known,) = welcome.subscriptions
                assert (known.subscription_id, known.spec.top_k.k) == (1, 2)
                assert list(known.spec.top_k.keywords) == ["tofu"]
                delta = (await device.read()).delta
                assert (delta.snapshot, ids_of(delta)) == (True, tofu)
            device.cancel()


async def test_a_change_has_the_position_of_the_device(stubs, server):
    """The subscription is evaluated there, wherever the old one was."""
    device = await attached(stubs)
    first = (await exchange(device, subscribe=subscribe(1, SUSHI))).delta
    there = geometry_pb2.Position(lon=14.8, lat=35.8)
    request = device_service_pb2.Subscribe(subscription_id=1, spec=TOFU, position=there)
    delta = (await exchange(device, subscribe=request)).delta
    point = server.coordinator.frame.project(there.lon, there.lat)
    assert (delta.anchor.x_m, delta.anchor.y_m) == tuple(point)
    assert first.anchor != delta.anchor
    assert server.coordinator.frame.project(HERE.lon, HERE.lat) == (first.anchor.x_m, first.anchor.y_m)
    device.cancel()
