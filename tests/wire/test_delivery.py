"""The delivery rule on the wire: versions, resumes, reports that come again, ends with reasons."""

from __future__ import annotations

import grpc
import numpy as np
import pytest

from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    geometry_pb2,
    publisher_service_pb2,
    subscriptions_pb2,
)
from tests.sdk.conftest import until
from tests.wire.test_bad_input import a_spec, an_object, attached, exchange, subscribe
from tests.wire.test_locate import publish

Position = geometry_pb2.Position
Ping = device_service_pb2.Ping


def report(sequence, lon=14.5, version=0):
    return device_service_pb2.Report(
        sequence=sequence,
        position=Position(lon=lon, lat=35.5),
        subscription_ids=[1],
        version=version,
    )


async def left(stubs, device):
    """Half-close a stream, read what is left, wait until the server knows."""
    await device.done_writing()
    rest = []
    while (response := await device.read()) is not grpc.aio.EOF:
        rest.append(response)
    await stubs.control.Sync(control_service_pb2.SyncRequest())
    return rest


def told_of(server, handle):
    """Return what the device of a subscription holds, and how far that is right."""
    engine = server.coordinator.matching.engine
    bounds = engine.bounds(np.array([handle]))
    return [column.tolist() for column in (*engine.held(handle), *bounds)]


async def counters(stubs):
    return (await stubs.control.Status(control_service_pb2.StatusRequest())).counters


async def test_missed_deltas_are_sent_again_under_the_same_versions(stubs):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, a_spec()))
    ids = await publish(stubs, an_object())
    first = (await device.read()).delta
    assert [entry.object.id for entry in first.add] == ids
    await left(stubs, device)
    (missed,) = await publish(stubs, an_object())
    for version, versions in ((1, [2, 3]), (1, [2, 3]), (2, [3])):
        again = await attached(stubs, version=version, epoch=device.epoch)
        deltas = [(await again.read()).delta for _ in versions]
        assert [delta.version for delta in deltas] == versions
        assert not any(delta.snapshot for delta in deltas)
        assert deltas[-1].add[0].object.id == missed
        if version == 1:
            assert deltas[0] == first
        await left(stubs, again)
    # A hello acknowledges: what came before its version is not kept any more.
    older = await attached(stubs, version=1, epoch=device.epoch)
    assert (await older.read()).delta.snapshot
    older.cancel()
    assert (await counters(stubs))["deltas_resent"] == 5


@pytest.mark.parametrize("how", ["ack", "ping", "report"])
async def test_acknowledged_deltas_are_not_kept(stubs, server, how):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, a_spec()))
    for _ in range(3):
        await publish(stubs, an_object())
        await device.read()
    session = server.coordinator.sessions["device"]
    assert session.kept_count == 4
    if how == "ack":
        ack = device_service_pb2.Ack(version=3)
        await device.write(device_service_pb2.AttachRequest(ack=ack))
        await exchange(device, ping=Ping(number=1))
        assert session.kept_count == 1
    elif how == "ping":
        await exchange(device, ping=Ping(number=1, version=3))
        assert session.kept_count == 1
    else:
        await exchange(device, report=report(1, version=3))
        assert session.kept_count == 2, "and the answer"
    device.cancel()


async def test_a_report_that_comes_again_or_late_changes_nothing(stubs, server):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, a_spec()))
    for sequence, lon in ((1, 14.5), (2, 14.6), (3, 14.7)):
        response = (await exchange(device, report=report(sequence, lon))).delta
        assert response.report_sequence == sequence
    handle = server.coordinator.sessions["device"].handles[1]
    before = told_of(server, handle)
    for sequence in (3, 3, 2, 1):  # a later one would take the place of an earlier one that waits
        request = device_service_pb2.AttachRequest(report=report(sequence, 14.1))
        await device.write(request)
    pong = await exchange(device, ping=Ping(number=1))
    assert pong.pong.number == 1, "nothing before it"
    assert told_of(server, handle) == before
    assert (await counters(stubs))["reports_repeated"] == 4
    response = (await exchange(device, report=report(4, 14.1))).delta
    assert (response.version, response.report_sequence) == (5, 4)
    device.cancel()


async def test_reports_are_counted_from_one(stubs):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, a_spec()))
    error = (await exchange(device, report=report(0))).rejection.error
    assert (error.field, error.value) == ("report.sequence", "0")
    device.cancel()


async def test_ends_and_retractions_have_reasons_and_other_devices_get_nothing(stubs):
    near = [an_object(position=Position(lon=14.5 + 0.001 * i, lat=35.5)) for i in range(20)]
    ids = await publish(stubs, *near)
    device = await attached(stubs)
    first = (await exchange(device, subscribe=subscribe(1, a_spec(k=1)))).delta
    held = {entry.object.id for entry in first.add}
    assert len(held) == 9
    far = next(one for one in ids if one not in held)
    await stubs.publishers.Retract(publisher_service_pb2.RetractRequest(ids=[far]))
    await stubs.publishers.Retract(publisher_service_pb2.RetractRequest(ids=[min(held)]))
    (drop,) = (await device.read()).delta.drop
    assert (drop.object_id, drop.reason) == (min(held), subscriptions_pb2.DROP_REASON_RETRACTED)
    unsubscribe = device_service_pb2.Unsubscribe(subscription_id=1)
    ended = (await exchange(device, unsubscribe=unsubscribe)).unsubscribed
    assert (ended.subscription_id, ended.reason) == (1, device_service_pb2.END_REASON_UNSUBSCRIBED)
    device.cancel()


async def test_status_has_the_current_quantities(stubs):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, a_spec()))
    await exchange(device, subscribe=subscribe(2, a_spec(k=0)))
    await publish(stubs, an_object())
    await device.read()
    away = await attached(stubs, device_id="away")
    await exchange(away, subscribe=subscribe(1, a_spec()))
    await stubs.control.Sync(control_service_pb2.SyncRequest())  # what is written is counted behind it
    await left(stubs, away)
    status = await stubs.control.Status(control_service_pb2.StatusRequest())
    assert status.state == control_service_pb2.SERVER_STATE_SERVING
    assert status.time_ms > 0
    gauges = dict(status.gauges)
    assert 0 < gauges.pop("first_hello_ms") <= gauges.pop("last_snapshot_ms")
    assert gauges.pop("memory_bytes.OBJECTS") > gauges.pop("memory_bytes.OBJECT_INDEX") > 0
    assert (
        gauges.items()
        >= {
            "devices.IN_SYNC": 1,
            "devices.CATCHING_UP": 0,
            "devices.DETACHED": 1,
            "devices.PARKED": 0,
            "subscriptions": 2,
            "objects": 1,
            "streams": 1,
            "idf_generation": 0,
            "idf_coming_into_force": 0,
            "commands_waiting": 0,
            "events_waiting": 0,
            "subscriptions_by_kind.TOP_K": 2,
            "subscriptions_by_kind.BOOLEAN": 0,
            "subscriptions_by_kind.STATIONARY": 0,
            "store_bytes.DATABASE": 0,
            "sink_waiting": 0,
        }.items()
    )
    found = dict(status.counters)
    assert found["rejected.INVALID_FIELD"] == 1
    assert found["hellos"] == 2
    assert found["snapshots_sent"] == 2
    assert found["deltas_sent"] == 3
    assert found["deltas_queued"] == found["deltas_sent"]
    assert status.limits["retained_max"] == 64.0
    device.cancel()


async def test_only_reports_with_a_response_are_timed(stubs, server):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, a_spec()))
    outbox = server.coordinator.sessions["device"].outbox
    latency_us = server.coordinator.counters.measures.report_latency_us
    refused = report(1)
    refused.subscription_ids[:] = [7]
    assert (await exchange(device, report=refused)).rejection.error.field == "subscription_ids[0]"
    assert outbox.timed_report is None, "it would be taken for answered by the answer to the next"
    for sequence in (2, 3):
        await exchange(device, report=report(sequence))
        # The device may have the response before the server's task has recorded that it is written.
        await until(lambda: outbox.timed_report is None)
    await device.write(device_service_pb2.AttachRequest(report=report(3)))  # again: not answered
    await stubs.control.Sync(control_service_pb2.SyncRequest())
    assert outbox.timed_report is None
    assert sum(latency_us.classes().counts) == 2
    device.cancel()
