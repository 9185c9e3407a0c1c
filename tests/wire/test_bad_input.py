"""Every bad input gets an error that names field, value and limit, and changes nothing."""

from __future__ import annotations

import math

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    errors_pb2,
    geometry_pb2,
    objects_pb2,
    publisher_service_pb2,
    subscriptions_pb2,
)
from safe_region.earth.frame import Area, Frame
from tests.support.stored import objects_of, subscriptions_of

ObjectArea = objects_pb2.ObjectArea
Position = geometry_pb2.Position
HERE = Position(lon=14.5, lat=35.5)


def an_object(**changes):
    fields = {"position": HERE, "keywords": ["sushi"], "ttl_ms": 60_000, **changes}
    return objects_pb2.NewObject(**fields)


def a_spec(**changes):
    fields = {"keywords": ["sushi"], "k": 3, "alpha": 0.5, **changes}
    return subscriptions_pb2.SubscriptionSpec(top_k=subscriptions_pb2.TopK(**fields))


def state(server):
    """All that a command could change."""
    coordinator = server.coordinator
    found = server.store.recover()
    return (
        dict(coordinator.matching.objects),
        {device: dict(session.handles) for device, session in coordinator.sessions.items()},
        objects_of(found, coordinator.frame),
        subscriptions_of(found),
    )


def a_rectangle(**changes):
    """An area of a tenth of a degree, but for what changes."""
    degrees = {"lon_min": 14.1, "lat_min": 35.1, "lon_max": 14.2, "lat_max": 35.2} | changes
    return ObjectArea(rectangle=geometry_pb2.Bounds(**degrees))


def a_polygon(*corners):
    vertices = [Position(lon=lon, lat=lat) for lon, lat in corners]
    return ObjectArea(polygon=geometry_pb2.Ring(vertices=vertices))


BAD_OBJECTS = [
    ({"keywords": []}, "objects[0].keywords", "empty", "1 to 64 keywords"),
    ({"position": None}, "objects[0].position", "absent", "present"),
    ({"key": "k" * 129}, "objects[0].key", "'kkk", "0 to 128 printable characters"),
]
"""Some of `tests/server/test_bad_input.py`."""


async def test_bad_objects(stubs, server):
    call = stubs.publishers.Publish()
    await call.write(publisher_service_pb2.PublishRequest(sequence=1, objects=[an_object(key="good")]))
    assert len((await call.read()).ids) == 1
    before = state(server)
    for sequence, (changes, field, value, limit) in enumerate(BAD_OBJECTS, 2):
        # The bad one comes first, nine good ones behind it: none is accepted.
        objects = [an_object(**changes), *(an_object() for _ in range(9))]
        await call.write(publisher_service_pb2.PublishRequest(sequence=sequence, objects=objects))
        answer = await call.read()
        assert (answer.sequence, len(answer.ids), answer.error.field) == (sequence, 0, field)
        assert value in answer.error.value
        assert limit in answer.error.limit
        assert answer.error.field in answer.error.message
        assert answer.error.limit in answer.error.message
        assert state(server) == before
    # The stream goes on.
    await call.write(publisher_service_pb2.PublishRequest(sequence=9, objects=[an_object()]))
    assert len((await call.read()).ids) == 1


async def test_bytes_that_are_no_text(stubs, server):
    """protobuf itself refuses a string that is not UTF-8; the call fails and nothing is taken over."""
    before = state(server)
    good = publisher_service_pb2.PublishRequest(objects=[an_object()]).SerializeToString()
    raw = good.replace(b"sushi", b"su\xff\xfei")
    call = stubs.channel.stream_stream("/nearcast.v1.PublisherService/Publish")()
    await call.write(raw)
    with pytest.raises(grpc.aio.AioRpcError):
        await call.read()
    assert state(server) == before


async def test_bad_subscriptions(stubs, server):
    device = await attached(stubs)
    before = state(server)
    for spec, field, value, limit in BAD_SPECS:
        answer = await exchange(device, subscribe=subscribe(1, spec))
        rejection = answer.rejection
        assert (rejection.number, rejection.command) == (
            1,
            device_service_pb2.Rejection.COMMAND_SUBSCRIBE,
        )
        assert (rejection.error.field, rejection.error.value) == (field, value)
        assert limit in rejection.error.limit
        # The same as a search, where it is the status of the call.
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await stubs.devices.Search(device_service_pb2.SearchRequest(spec=spec, position=HERE))
        assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        check_details(failed.value, "INVALID_FIELD", field)
        assert state(server) == before
    # The stream goes on.
    assert (await exchange(device, subscribe=subscribe(1, a_spec()))).delta.version == 1
    device.cancel()


def a_boolean(*clauses, region=0, **fields):
    """A boolean spec that is in order, but for what is given."""
    fields = {"circle": geometry_pb2.Circle(radius_m=500.0), "moving": True, **fields}
    clauses = clauses or (subscriptions_pb2.Clause(required=["sushi"]),)
    boolean = subscriptions_pb2.Boolean(clauses=clauses, **fields)
    return subscriptions_pb2.SubscriptionSpec(boolean=boolean, region=region)


BAD_WEIGHTS = [
    ([{"weights": {"tea": math.nan}}], "weights['tea']", "nan"),
    ([{"weights": {"a": 1.0}}, {"weights": {"tea": -2.0}}], "weights['tea']", "-2.0"),
    ([{"weights": {"tea": 32.5}}], "weights['tea']", "32.5"),
    ([{"weights": {"Tea": 1.0}}], "weights", "of 'Tea'"),
    ([{"weights": {"tea": 1.0}}] * 2, "weights['tea']", "present twice"),
    ([{"unknown_weight": 0.0}], "unknown", "0.0"),
]


async def test_bad_weights(stubs, server):
    before = state(server)
    for parts, field, value in BAD_WEIGHTS:
        call = stubs.control.SetIdf()
        for part in parts:
            await call.write(control_service_pb2.SetIdfRequest(**part))
        await call.done_writing()
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call
        assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        check_details(failed.value, "INVALID_FIELD", field)
        assert f"{field} is {value}, must be " in failed.value.details()
        assert state(server) == before
    assert server.coordinator.matching.generation == 0


def windowed(spec, region=0, **window):
    return subscriptions_pb2.SubscriptionSpec(
        **{spec.WhichOneof("kind"): getattr(spec, spec.WhichOneof("kind"))},
        window=subscriptions_pb2.Window(**window),
        region=region,
    )


BAD_SPECS = [
    (subscriptions_pb2.SubscriptionSpec(), "spec.kind", "absent", "one of top_k, boolean"),
    (a_spec(k=101), "spec.top_k.k", "101", "1 to 100"),
    (windowed(a_boolean(), count=0), "spec.window.count", "0", "at least 1"),
]
"""Some of `tests/server/test_bad_input.py`."""


async def test_more_different_windows_than_the_server_looks_after(stubs, server):
    limits = server.coordinator.limits
    most, share = limits.windows_max, limits.device_windows_max
    devices = [await attached(stubs, device_id=f"device {i}") for i in range(most // share + 1)]
    *devices, other = devices
    for i, device in enumerate(devices):
        for number in range(1, share + 1):
            spec = windowed(a_spec(), count=i * share + number)
            await exchange(device, subscribe=subscribe(number, spec))
    before = state(server)
    for device, field, limit in (
        (other, "spec.window", f"one of these, or at most {most}"),
        (devices[0], "spec.window", f"one of these, or at most {most}"),
    ):
        spec = windowed(a_spec(), count=most + 1)
        error = (await exchange(device, subscribe=subscribe(9, spec))).rejection.error
        assert (error.reason, error.field) == (errors_pb2.ERROR_REASON_TOO_MANY, field)
        assert error.limit == limit
    assert state(server) == before
    assert (await exchange(other, subscribe=subscribe(2, windowed(a_spec(), count=3)))).delta.version == 1
    await exchange(devices[0], unsubscribe=device_service_pb2.Unsubscribe(subscription_id=7))
    response = await exchange(other, subscribe=subscribe(3, windowed(a_spec(), count=most + 1)))
    assert response.delta.version == 2
    for device in (*devices, other):
        device.cancel()


async def test_more_different_windows_than_a_device_may_have(stubs, server):
    share = server.coordinator.limits.device_windows_max
    device = await attached(stubs)
    for number in range(1, share + 1):
        await exchange(device, subscribe=subscribe(number, windowed(a_spec(), count=number)))
    before = state(server)
    spec = windowed(a_spec(), count=share + 1)
    error = (await exchange(device, subscribe=subscribe(share + 1, spec))).rejection.error
    assert (error.reason, error.field) == (errors_pb2.ERROR_REASON_TOO_MANY, "spec.window")
    assert error.limit == f"at most {share} of a device"
    assert state(server) == before
    known = windowed(a_spec(k=4), count=share)
    assert (await exchange(device, subscribe=subscribe(share + 1, known))).HasField("delta")
    device.cancel()


AREAS = [
    (a_rectangle(), (14.15, 35.15)),
    (a_rectangle(lon_max=14.1, lat_max=35.1), (14.1, 35.1)),  # a point
    (a_rectangle(lat_min=35.0, lat_max=35.8993), (14.15, 35.44965)),  # as high as may be
    (a_rectangle(lon_min=14.6, lon_max=15.0, lat_min=35.5, lat_max=36.0), (14.8, 35.75)),  # to the border
    (a_polygon((14.1, 35.1), (14.3, 35.1), (14.3, 35.3), (14.1, 35.3)), (14.2, 35.2)),
]


async def test_good_areas(stubs):
    """The server chooses a point inside, and gives the area back as it came."""
    frame = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
    call = stubs.publishers.Publish()
    for i, (area, (lon, lat)) in enumerate(AREAS):
        new = an_object(keywords=[f"word {i}"], position=None, area=area)
        await call.write(publisher_service_pb2.PublishRequest(objects=[new]))
        answer = await call.read()
        assert not answer.error.message
        wanted = a_spec(keywords=[f"word {i}"])
        found = await stubs.devices.Search(device_service_pb2.SearchRequest(spec=wanted, position=HERE))
        one = found.matches[0].object
        assert (one.id, one.area) == (answer.ids[0], area)
        assert (one.position.lon, one.position.lat) == pytest.approx((lon, lat), abs=1e-12)
        assert (one.point.x_m, one.point.y_m) == frame.project(one.position.lon, one.position.lat)


async def test_numbers_that_are_unknown_or_none(stubs, server):
    device = await attached(stubs)
    await exchange(device, subscribe=subscribe(1, a_spec()))
    before = state(server)
    cases = [
        ({"unsubscribe": device_service_pb2.Unsubscribe(subscription_id=7)}, "subscription_id", "7"),
        (
            {"report": device_service_pb2.Report(sequence=5, position=HERE, subscription_ids=[1, 7])},
            "subscription_ids[1]",
            "7",
        ),
        ({"subscribe": subscribe(0, a_spec())}, "subscription_id", "0"),
        (
            {"subscribe": device_service_pb2.Subscribe(subscription_id=2, spec=a_spec())},
            "subscribe.position",
            "absent",
        ),
    ]
    for command, field, value in cases:
        response = await exchange(device, **command)
        assert (response.rejection.error.field, response.rejection.error.value) == (field, value)
        assert response.rejection.error.limit
        assert state(server) == before
    device.cancel()


async def test_unknown_objects(stubs, server):
    call = stubs.publishers.Publish()
    await call.write(publisher_service_pb2.PublishRequest(objects=[an_object()]))
    (alive,) = (await call.read()).ids
    before = state(server)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await stubs.publishers.Retract(publisher_service_pb2.RetractRequest(ids=[alive, 999]))
    assert failed.value.code() is grpc.StatusCode.NOT_FOUND
    error = check_details(failed.value, "UNKNOWN_OBJECT", "ids[1]")
    assert error.value == "999"
    assert state(server) == before


async def test_another_instance_is_refused_and_the_same_takes_over(stubs, server):
    first = await attached(stubs, nonce=b"one")
    await exchange(first, subscribe=subscribe(1, a_spec()))
    before = state(server)
    other = stubs.devices.Attach()
    await other.write(hello(nonce=b"two"))
    response = await other.read()
    assert response.rejection.error.reason == errors_pb2.ERROR_REASON_DEVICE_IN_USE
    error = response.rejection.error
    assert (error.field, error.value) == ("hello.device_id", "'device'")
    assert error.retry_after_ms == server.coordinator.limits.dead_connection_ms
    assert b"two".hex() not in error.message
    assert await other.read() is grpc.aio.EOF
    assert state(server) == before
    again = await attached(stubs, nonce=b"one")
    last = await first.read()
    assert last.detached.error.reason == errors_pb2.ERROR_REASON_SUPERSEDED
    assert await first.read() is grpc.aio.EOF
    assert (await exchange(again, ping=device_service_pb2.Ping(number=3))).HasField(
        "delta"
    )  # what it missed
    again.cancel()


async def test_commands_before_and_besides_the_hello(stubs):
    early = stubs.devices.Attach()
    response = await exchange(early, subscribe=subscribe(1, a_spec()))
    assert response.rejection.error.reason == errors_pb2.ERROR_REASON_OUT_OF_ORDER
    early.cancel()
    device = await attached(stubs)
    await device.write(hello())
    response = await device.read()
    assert response.rejection.error.reason == errors_pb2.ERROR_REASON_OUT_OF_ORDER
    device.cancel()


BAD_HELLOS = {
    "hello.device_id": {"device_id": ""},
    "hello.instance_nonce": {"nonce": b""},
    "hello.version": {"version": -1},
    "hello.position": {"position": None},
    "hello.position.lat": {"position": Position(lon=14.5, lat=91.0)},
}


async def test_bad_hellos(stubs, server):
    for field, fields in BAD_HELLOS.items():
        before = state(server)
        device = stubs.devices.Attach()
        await device.write(hello(**fields))
        answer = await device.read()
        assert answer.rejection.command == device_service_pb2.Rejection.COMMAND_HELLO
        assert answer.rejection.error.field == field
        assert await device.read() is grpc.aio.EOF
        assert state(server) == before


async def test_the_clock_of_a_server_in_real_time(stubs):
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await stubs.control.AdvanceClock(control_service_pb2.AdvanceClockRequest(time_ms=2**50))
    assert failed.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    check_details(failed.value, "NOT_VIRTUAL", "clock")


def check_details(failure, reason, field):
    """The error is there twice: as our own, and as ErrorInfo for generic clients."""
    metadata = dict(failure.trailing_metadata())
    error = errors_pb2.Error.FromString(metadata["nearcast-error-bin"])
    assert errors_pb2.ErrorReason.Name(error.reason) == f"ERROR_REASON_{reason}"
    assert error.field == field
    status = Status.FromString(metadata["grpc-status-details-bin"])
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain) == (reason, "nearcast")
    assert dict(info.metadata) == {"field": error.field, "value": error.value, "limit": error.limit}
    assert status.code == error.code == failure.code().value[0]
    return error


def hello(device_id="device", nonce=b"nonce", version=0, position=HERE, epoch=0):
    return device_service_pb2.AttachRequest(
        hello=device_service_pb2.Hello(
            device_id=device_id,
            instance_nonce=nonce,
            version=version,
            position=position,
            epoch=epoch,
        )
    )


def subscribe(number, spec):
    return device_service_pb2.Subscribe(subscription_id=number, spec=spec, position=HERE)


async def attached(stubs, **fields):
    call = stubs.devices.Attach()
    await call.write(hello(**fields))
    response = await call.read()
    assert response.HasField("welcome")
    call.epoch = response.welcome.epoch
    return call


async def exchange(call, **command):
    await call.write(device_service_pb2.AttachRequest(**command))
    return await call.read()


async def test_a_message_beyond_the_limit_is_refused(server, stubs):
    limit = server.coordinator.limits.message_bytes_max
    search = stubs.channel.unary_unary("/nearcast.v1.DeviceService/Search")
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await search(bytes(limit + 1))
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_an_unknown_method(stubs):
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await stubs.channel.unary_unary("/nearcast.v1.DeviceService/Nothing")(b"")
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED
