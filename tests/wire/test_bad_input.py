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
from safe_region.frame import Area, Frame
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


RECTANGLE = a_rectangle()
BAD_OBJECTS = {
    "no keywords": ({"keywords": []}, "objects[0].keywords", "empty", "1 to 64 keywords"),
    "too many keywords": (
        {"keywords": [f"w{i}" for i in range(65)]},
        "objects[0].keywords",
        "65 keywords",
        "1 to 64 keywords",
    ),
    "a keyword too long": (
        {"keywords": ["x" * 65]},
        "objects[0].keywords[0]",
        "'xxx",
        "1 to 64 printable characters",
    ),
    "a keyword that is blank": ({"keywords": ["a", "  "]}, "objects[0].keywords[1]", "'  '", "1 to 64"),
    "a keyword that is no text": (
        {"keywords": ["a\x00b"]},
        "objects[0].keywords[0]",
        "'a\\x00b'",
        "printable",
    ),
    "no lifetime": ({"ttl_ms": 0}, "objects[0].ttl_ms", "0", "1 to 31622400000"),
    "a lifetime too long": (
        {"ttl_ms": 31_622_400_001},
        "objects[0].ttl_ms",
        "31622400001",
        "1 to 31622400000",
    ),
    "no position": ({"position": None}, "objects[0].position", "absent", "present"),
    "not a number": (
        {"position": Position(lon=math.nan, lat=35.5)},
        "objects[0].position.lon",
        "nan",
        "-180",
    ),
    "infinite": ({"position": Position(lon=14.5, lat=math.inf)}, "objects[0].position.lat", "inf", "-90"),
    "outside the area": (
        {"position": Position(lon=15.0001, lat=35.5)},
        "objects[0].position",
        "(15.0001, 35.5)",
        "lon 14.0 to 15.0, lat 35.0 to 36.0",
    ),
    "a position and an area": ({"area": RECTANGLE}, "objects[0].position", "present", "absent"),
    "an area of no shape": (
        {"position": None, "area": ObjectArea()},
        "objects[0].area.shape",
        "absent",
        "present",
    ),
    "a rectangle turned round": (
        {"position": None, "area": a_rectangle(lon_max=14.0)},
        "objects[0].area.rectangle.lon_max",
        "14.0",
        "at least lon_min, 14.1",
    ),
    "a rectangle without a number": (
        {"position": None, "area": a_rectangle(lat_min=math.nan)},
        "objects[0].area.rectangle.lat_min",
        "nan",
        "-90",
    ),
    "a rectangle across the border": (
        {"position": None, "area": a_rectangle(lon_max=15.001)},
        "objects[0].area.rectangle",
        "(15.001, 35.2)",
        "lon 14.0 to 15.0, lat 35.0 to 36.0",
    ),
    "a rectangle too high": (
        {"position": None, "area": a_rectangle(lat_min=35.0, lat_max=35.9)},
        "objects[0].area.rectangle",
        "a height of 100075",
        "a height of at most 100000.0 m",
    ),
    "a polygon without corners": (
        {"position": None, "area": a_polygon()},
        "objects[0].area.polygon",
        "ring 0 has 0 vertices",
        "a simple polygon",
    ),
    "a polygon that crosses itself": (
        {"position": None, "area": a_polygon((14.1, 35.1), (14.2, 35.2), (14.2, 35.1), (14.1, 35.2))},
        "objects[0].area.polygon",
        "ring 0",
        "a simple polygon without holes",
    ),
    "a polygon with too many corners": (
        {
            "position": None,
            "area": a_polygon(*((14.1 + i / 1000, 35.1 + i * i / 1e5) for i in range(65))),
        },
        "objects[0].area.polygon",
        "65 vertices",
        "at most 64 vertices",
    ),
    "a polygon across the border": (
        {"position": None, "area": a_polygon((14.1, 35.1), (14.2, 34.9), (14.2, 35.1))},
        "objects[0].area.polygon.vertices[1]",
        "(14.2, 34.9)",
        "lat 35.0 to 36.0",
    ),
    "a polygon with a corner that is none": (
        {"position": None, "area": a_polygon((14.1, 35.1), (14.2, math.inf), (14.2, 35.1))},
        "objects[0].area.polygon.vertices[1].lat",
        "inf",
        "-90",
    ),
    "a polygon too wide": (
        {"position": None, "area": a_polygon((14.0, 35.0), (14.0, 36.0), (14.1, 35.0))},
        "objects[0].area.polygon",
        "a height of 111195",
        "a height of at most 100000.0 m",
    ),
    "a payload too large": (
        {"payload": bytes(16_385)},
        "objects[0].payload",
        "16385 bytes",
        "at most 16384 bytes",
    ),
    "a key too long": ({"key": "k" * 129}, "objects[0].key", "'kkk", "0 to 128 printable characters"),
}


@pytest.mark.parametrize("name", BAD_OBJECTS)
async def test_bad_objects(stubs, server, name):
    changes, field, value, limit = BAD_OBJECTS[name]
    call = stubs.publishers.Publish()
    await call.write(publisher_service_pb2.PublishRequest(sequence=1, objects=[an_object(key="good")]))
    assert len((await call.read()).ids) == 1
    before = state(server)
    # The bad one comes first, nine good ones behind it: none is accepted.
    bad = publisher_service_pb2.PublishRequest(
        sequence=2, objects=[an_object(**changes), *(an_object() for _ in range(9))]
    )
    await call.write(bad)
    answer = await call.read()
    assert answer.sequence == 2
    assert not answer.ids
    assert answer.error.field == field
    assert value in answer.error.value
    assert limit in answer.error.limit
    assert answer.error.field in answer.error.message
    assert answer.error.limit in answer.error.message
    assert state(server) == before
    # The stream goes on.
    await call.write(publisher_service_pb2.PublishRequest(sequence=3, objects=[an_object()]))
    assert len((await call.read()).ids) == 1


@pytest.mark.parametrize("count", [0, 1001])
async def test_too_few_and_too_many_objects(stubs, server, count):
    before = state(server)
    call = stubs.publishers.Publish()
    await call.write(publisher_service_pb2.PublishRequest(objects=[an_object()] * count))
    answer = await call.read()
    assert (answer.error.field, answer.error.value) == ("objects", f"{count} entries")
    assert answer.error.limit == "1 to 1000 entries"
    assert state(server) == before


async def test_the_same_key_twice_in_a_request(stubs, server):
    before = state(server)
    call = stubs.publishers.Publish()
    await call.write(publisher_service_pb2.PublishRequest(objects=[an_object(key="k")] * 2))
    answer = await call.read()
    assert (answer.error.field, answer.error.value) == ("objects[1].key", "'k'")
    assert state(server) == before


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


BAD_SPECS = {
    "no keywords": ({"keywords": []}, "spec.top_k.keywords", "empty", "1 to 16 keywords"),
    "too many keywords": (
        {"keywords": [f"w{i}" for i in range(17)]},
        "spec.top_k.keywords",
        "17 keywords",
        "1 to 16 keywords",
    ),
    "k of none": ({"k": 0}, "spec.top_k.k", "0", "1 to 100"),
    "k negative": ({"k": -1}, "spec.top_k.k", "-1", "1 to 100"),
    "k too large": ({"k": 101}, "spec.top_k.k", "101", "1 to 100"),
    "alpha of none": ({"alpha": 0.0}, "spec.top_k.alpha", "0.0", "0.001 to 0.999"),
    "alpha of one": ({"alpha": 1.0}, "spec.top_k.alpha", "1.0", "0.001 to 0.999"),
    **{
        f"a scale of {scale_m}": (
            {"distance_scale_m": scale_m},
            "spec.top_k.distance_scale_m",
            str(scale_m),
            "1 to 20037508, or absent",
        )
        for scale_m in (0.999, -5000.0, 20_037_509.0, math.inf, math.nan)
    },
    "alpha not a number": ({"alpha": math.nan}, "spec.top_k.alpha", "nan", "0.001 to 0.999"),
    "another similarity": ({"similarity": 9}, "spec.top_k.similarity", "9", "1 (JACCARD)"),
}


@pytest.mark.parametrize("name", BAD_SPECS)
async def test_bad_subscriptions(stubs, server, name):
    changes, field, value, limit = BAD_SPECS[name]
    device = await attached(stubs)
    before = state(server)
    answer = await tell(device, subscribe=subscribe(1, a_spec(**changes)))
    rejection = answer.rejection
    assert (rejection.number, rejection.command) == (1, device_service_pb2.Rejection.COMMAND_SUBSCRIBE)
    assert rejection.error.field == field
    assert rejection.error.value == value
    assert limit in rejection.error.limit
    assert state(server) == before
    # The same as a search, where it is the status of the call.
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await stubs.devices.Search(
            device_service_pb2.SearchRequest(spec=a_spec(**changes), position=HERE)
        )
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    check_details(failed.value, "INVALID_FIELD", field)
    # The stream goes on.
    assert (await tell(device, subscribe=subscribe(1, a_spec()))).delta.version == 1
    device.cancel()


async def test_a_spec_of_no_kind(stubs):
    device = await attached(stubs)
    answer = await tell(device, subscribe=subscribe(1, subscriptions_pb2.SubscriptionSpec()))
    assert (answer.rejection.error.field, answer.rejection.error.value) == ("spec.kind", "absent")
    assert answer.rejection.error.limit == "one of top_k, boolean"
    device.cancel()


def a_boolean(*clauses, region=0, **fields):
    """A boolean spec that is in order, but for what is given."""
    fields = {"circle": geometry_pb2.Circle(radius_m=500.0), "moving": True, **fields}
    clauses = clauses or (subscriptions_pb2.Clause(required=["sushi"]),)
    boolean = subscriptions_pb2.Boolean(clauses=clauses, **fields)
    return subscriptions_pb2.SubscriptionSpec(boolean=boolean, region=region)


BAD_WEIGHTS = {
    "not a number": ([{"weights": {"tea": math.nan}}], "weights['tea']", "nan"),
    "negative": ([{"weights": {"a": 1.0}}, {"weights": {"tea": -2.0}}], "weights['tea']", "-2.0"),
    "too heavy": ([{"weights": {"tea": 32.5}}], "weights['tea']", "32.5"),
    "not normalised": ([{"weights": {"Tea": 1.0}}], "weights", "of 'Tea'"),
    "there again": ([{"weights": {"tea": 1.0}}] * 2, "weights['tea']", "there again"),
    "unknown of nothing": ([{"unknown_weight": 0.0}], "unknown", "0.0"),
}


@pytest.mark.parametrize("name", BAD_WEIGHTS)
async def test_bad_weights(stubs, server, name):
    parts, field, value = BAD_WEIGHTS[name]
    before = state(server)
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


BAD_WINDOWS = {
    "of nothing": (windowed(a_spec()), "spec.window.last", "absent", "duration_ms or count"),
    "of no time": (windowed(a_spec(), duration_ms=0), "spec.window.duration_ms", "0", "at least 1"),
    "of less": (windowed(a_boolean(), duration_ms=-5), "spec.window.duration_ms", "-5", "at least 1"),
    "of no objects": (windowed(a_boolean(), count=0), "spec.window.count", "0", "at least 1"),
    "of fewer": (windowed(a_spec(), count=-1), "spec.window.count", "-1", "at least 1"),
    "too long": (
        windowed(a_spec(), duration_ms=367 * 86_400_000),
        "spec.window.duration_ms",
        str(367 * 86_400_000),
        "1 to 31622400000",
    ),
    "too many": (
        windowed(a_boolean(), count=2**62),
        "spec.window.count",
        str(2**62),
        "1 to 100000000",
    ),
    "with an ellipse": (
        windowed(a_spec(), subscriptions_pb2.REGION_MODE_ELLIPSE, count=5),
        "spec.region",
        "ELLIPSE",
        "ANCHORED or STATIONARY, since there is a window",
    ),
    "with the nearest": (
        windowed(a_boolean(), subscriptions_pb2.REGION_MODE_NEAREST, count=5),
        "spec.region",
        "NEAREST",
        "ANCHORED, since there is a window",
    ),
}


@pytest.mark.parametrize("name", BAD_WINDOWS)
async def test_bad_windows(stubs, server, name):
    spec, field, value, limit = BAD_WINDOWS[name]
    device = await attached(stubs)
    before = state(server)
    error = (await tell(device, subscribe=subscribe(1, spec))).rejection.error
    assert (error.reason, error.field) == (errors_pb2.ERROR_REASON_INVALID_FIELD, field)
    assert (error.value, error.limit) == (value, limit)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await stubs.devices.Search(device_service_pb2.SearchRequest(spec=spec, position=HERE))
    check_details(failed.value, "INVALID_FIELD", field)
    assert state(server) == before
    device.cancel()


async def test_more_different_windows_than_the_server_looks_after(stubs, server):
    limits = server.coordinator.limits
    most, share = limits.windows_max, limits.device_windows_max
    devices = [await attached(stubs, device_id=f"device {i}") for i in range(most // share + 1)]
    *devices, other = devices
    for i, device in enumerate(devices):
        for number in range(1, share + 1):
            spec = windowed(a_spec(), count=i * share + number)
            await tell(device, subscribe=subscribe(number, spec))
    before = state(server)
    for device, field, limit in (
        (other, "spec.window", f"one of these, or at most {most}"),
        (devices[0], "spec.window", f"one of these, or at most {most}"),
    ):
        spec = windowed(a_spec(), count=most + 1)
        error = (await tell(device, subscribe=subscribe(9, spec))).rejection.error
        assert (error.reason, error.field) == (errors_pb2.ERROR_REASON_TOO_MANY, field)
        assert error.limit == limit
    assert state(server) == before
    assert (await tell(other, subscribe=subscribe(2, windowed(a_spec(), count=3)))).delta.version == 1
    await tell(devices[0], unsubscribe=device_service_pb2.Unsubscribe(subscription_id=7))
    answer = await tell(other, subscribe=subscribe(3, windowed(a_spec(), count=most + 1)))
    assert answer.delta.version == 2
    for device in (*devices, other):
        device.cancel()


async def test_more_different_windows_than_a_device_may_have(stubs, server):
    share = server.coordinator.limits.device_windows_max
    device = await attached(stubs)
    for number in range(1, share + 1):
        await tell(device, subscribe=subscribe(number, windowed(a_spec(), count=number)))
    before = state(server)
    spec = windowed(a_spec(), count=share + 1)
    error = (await tell(device, subscribe=subscribe(share + 1, spec))).rejection.error
    assert (error.reason, error.field) == (errors_pb2.ERROR_REASON_TOO_MANY, "spec.window")
    assert error.limit == f"at most {share} of a device"
    assert state(server) == before
    known = windowed(a_spec(k=4), count=share)
    assert (await tell(device, subscribe=subscribe(share + 1, known))).HasField("delta")
    device.cancel()


AREAS = {
    "a rectangle": (a_rectangle(), (14.15, 35.15)),
    "a point": (a_rectangle(lon_max=14.1, lat_max=35.1), (14.1, 35.1)),
    "as high as may be": (a_rectangle(lat_min=35.0, lat_max=35.8993), (14.15, 35.44965)),
    "all to the border": (
        a_rectangle(lon_min=14.6, lon_max=15.0, lat_min=35.5, lat_max=36.0),
        (14.8, 35.75),
    ),
    "a polygon": (a_polygon((14.1, 35.1), (14.3, 35.1), (14.3, 35.3), (14.1, 35.3)), (14.2, 35.2)),
}


@pytest.mark.parametrize("name", AREAS)
async def test_good_areas(stubs, name):
    """The server chooses a point inside, and gives the area back as it came."""
    area, (lon, lat) = AREAS[name]
    call = stubs.publishers.Publish()
    new = an_object(keywords=["here"], position=None, area=area)
    await call.write(publisher_service_pb2.PublishRequest(objects=[new]))
    answer = await call.read()
    assert not answer.error.message
    wanted = a_spec(keywords=["here"])
    found = await stubs.devices.Search(device_service_pb2.SearchRequest(spec=wanted, position=HERE))
    one = found.matches[0].object
    assert (one.id, one.area) == (answer.ids[0], area)
    assert (one.position.lon, one.position.lat) == pytest.approx((lon, lat), abs=1e-12)
    frame = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
    assert (one.point.x_m, one.point.y_m) == frame.project(one.position.lon, one.position.lat)


async def test_numbers_that_are_unknown_or_none(stubs, server):
    device = await attached(stubs)
    await tell(device, subscribe=subscribe(1, a_spec()))
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
        answer = await tell(device, **command)
        assert (answer.rejection.error.field, answer.rejection.error.value) == (field, value)
        assert answer.rejection.error.limit
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
    await tell(first, subscribe=subscribe(1, a_spec()))
    before = state(server)
    other = stubs.devices.Attach()
    await other.write(hello(nonce=b"two"))
    answer = await other.read()
    assert answer.rejection.error.reason == errors_pb2.ERROR_REASON_DEVICE_IN_USE
    error = answer.rejection.error
    assert (error.field, error.value) == ("hello.device_id", "'device'")
    assert error.retry_after_ms == server.coordinator.limits.dead_connection_ms
    assert b"two".hex() not in error.message
    assert await other.read() is grpc.aio.EOF
    assert state(server) == before
    again = await attached(stubs, nonce=b"one")
    last = await first.read()
    assert last.detached.error.reason == errors_pb2.ERROR_REASON_SUPERSEDED
    assert await first.read() is grpc.aio.EOF
    assert (await tell(again, ping=device_service_pb2.Ping(number=3))).HasField("delta")  # what it missed
    again.cancel()


async def test_commands_before_and_besides_the_hello(stubs):
    early = stubs.devices.Attach()
    answer = await tell(early, subscribe=subscribe(1, a_spec()))
    assert answer.rejection.error.reason == errors_pb2.ERROR_REASON_OUT_OF_ORDER
    early.cancel()
    device = await attached(stubs)
    await device.write(hello())
    answer = await device.read()
    assert answer.rejection.error.reason == errors_pb2.ERROR_REASON_OUT_OF_ORDER
    device.cancel()


BAD_HELLOS = {
    "hello.device_id": {"device_id": ""},
    "hello.instance_nonce": {"nonce": b""},
    "hello.version": {"version": -1},
    "hello.position": {"position": None},
    "hello.position.lat": {"position": Position(lon=14.5, lat=91.0)},
}


@pytest.mark.parametrize("field", BAD_HELLOS)
async def test_bad_hellos(stubs, server, field):
    before = state(server)
    device = stubs.devices.Attach()
    await device.write(hello(**BAD_HELLOS[field]))
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
    answer = await call.read()
    assert answer.HasField("welcome")
    call.epoch = answer.welcome.epoch
    return call


async def tell(call, **command):
    await call.write(device_service_pb2.AttachRequest(**command))
    return await call.read()


async def test_a_message_beyond_the_limit_is_refused(server, stubs):
    limit = server.coordinator.limits.message_bytes_max
    search = stubs.channel.unary_unary("/nearcast.v1.DeviceService/Search")
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await search(bytes(limit + 1))
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_method_that_nobody_has(stubs):
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await stubs.channel.unary_unary("/nearcast.v1.DeviceService/Nothing")(b"")
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED
