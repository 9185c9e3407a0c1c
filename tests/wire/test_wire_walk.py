"""Bounds before meaning: the walker against what protobuf parses, and against what is absurd."""

from __future__ import annotations

import random

import grpc
import pytest
from google.protobuf.message import DecodeError

from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    geometry_pb2,
    objects_pb2,
    publisher_service_pb2,
    subscriptions_pb2,
)
from server.limits import Limits
from server.transport.message_bounds import field_bytes, field_counts, message_bounds
from server.transport.wire_walk import MessageTypes, UnreadableError, address_of
from tests.support.amounts import examples
from tests.support.wire_model import element_count, encoded_number, filled, fits
from tests.wire.test_bad_input import HERE, a_spec, an_object, attached, hello, subscribe

Attach = device_service_pb2.AttachRequest
Fleet = device_service_pb2.AttachFleetRequest
Search = device_service_pb2.SearchRequest
Publish = publisher_service_pb2.PublishRequest
Retract = publisher_service_pb2.RetractRequest
SetIdf = control_service_pb2.SetIdfRequest

LIMITS = Limits()
COUNTS, SIZES, BOUNDS = field_counts(LIMITS), field_bytes(LIMITS), message_bounds(LIMITS)
METHODS = {
    "Attach": Attach,
    "AttachFleet": Fleet,
    "Search": Search,
    "Publish": Publish,
    "Retract": Retract,
    "SetIdf": SetIdf,
}


def walker(name):
    return MessageTypes(LIMITS).walker(METHODS[name].DESCRIPTOR, name)


@pytest.mark.parametrize("name", METHODS)
def test_every_message_is_walked_as_it_is_parsed(name):
    verifier, chance = walker(name), random.Random(name)
    for _ in range(examples(150)):
        message = filled(METHODS[name](), chance)
        data = message.SerializeToString()
        if fits(message, BOUNDS[name], COUNTS, SIZES):
            assert verifier.walk(data) == element_count(message)
        else:
            with pytest.raises(UnreadableError):
                verifier.walk(data)


@pytest.mark.parametrize("name", METHODS)
def test_messages_that_pass_the_walk_keep_all_bounds_once_parsed(name):
    verifier, chance = walker(name), random.Random(name)
    counted = 0
    for _ in range(examples(400)):
        data = bytearray(filled(METHODS[name](), chance).SerializeToString())
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data) + 1)
            data[at : at + chance.randint(0, 2)] = bytes([chance.randrange(256)])
        try:
            verifier.walk(bytes(data))
            message = METHODS[name].FromString(bytes(data))
        except (UnreadableError, DecodeError):
            continue
        counted += 1
        assert fits(message, BOUNDS[name], COUNTS, SIZES)
    assert counted, "nothing of what was changed could be parsed"


def nested(*tags, body):
    """Return a message within others."""
    for tag in reversed(tags):
        body = bytes([tag << 3 | 2]) + encoded_number(len(body)) + body
    return body


ABSURD = [
    ("Search", nested(1, 2, body=b"\x0a\x00" * 30_000), "spec.boolean.clauses", "512 entries"),
    ("Search", nested(1, 2, 4, body=b"\x12\x00" * 30_000), "spec.boolean.polygon.holes", "512 entries"),
    ("Search", nested(1, 2, 4, 1, body=b"\x0a\x00" * 30_000), "polygon.outer.vertices", "4096 entries"),
    ("Attach", nested(4, body=b"\x18\x01" * 30_000), "report.subscription_ids", "512 entries"),
    ("Attach", nested(4, 3, body=b"\x01" * 30_000), "report.subscription_ids", "512 entries"),
    ("Attach", nested(4, body=b"\x12\x00" * 30_000), "report.position", "1 entries"),
    ("Attach", nested(2, 2, 1, body=b"\x0a\x00" * 30_000), "spec.top_k.keywords", "128 entries"),
    ("Publish", b"\x12\x00" * 30_000, "objects", "8000 entries"),
    ("Publish", nested(2, body=b"\x12\x00" * 600), "objects[0].keywords", "512 entries"),
    ("Publish", nested(2, 6, 2, body=b"\x0a\x00" * 30_000), "area.polygon.vertices", "4096 entries"),
    ("Publish", nested(2, 4, body=bytes(200_000)), "objects[0].payload", "131072 bytes"),
    ("Retract", nested(1, body=b"\x01" * 900_000), "ids", "8000 entries"),
    ("Retract", b"\x12\x00" * 30_000, "keys", "8000 entries"),
    ("AttachFleet", b"\x0a\x00" * 30_000, "entries", "8192 entries"),
    ("Attach", b"\x7a\x00" * 30_000, "request", "8192 fields"),
    ("Attach", bytes(70_000), "request", "65536 bytes"),
]


@pytest.mark.parametrize(("name", "data", "field", "limit"), ABSURD)
def test_absurd_messages_are_refused_without_being_parsed(name, data, field, limit):
    with pytest.raises(UnreadableError) as refused:
        walker(name).verify(data)
    assert field in refused.value.field
    assert limit in refused.value.limit


@pytest.mark.parametrize(
    ("message", "address"),
    [
        (Attach(subscribe=device_service_pb2.Subscribe(subscription_id=300, name="x")), (2, 300)),
        (Attach(report=device_service_pb2.Report(sequence=7)), (4, 7)),
        (Publish(sequence=9, objects=[objects_pb2.NewObject()]), (1, 9)),
        (Publish(objects=[objects_pb2.NewObject(ttl_ms=1)]), None),
        (Attach(hello=device_service_pb2.Hello(device_id="d")), None),
    ],
)
def test_the_first_command_of_a_message(message, address):
    assert address_of(message.SerializeToString()[:64]) == address


def test_the_address_of_anything_is_an_address_or_none():
    chance = random.Random(1)
    for _ in range(examples(2_000)):
        address_of(bytes(chance.randrange(256) for _ in range(chance.randrange(12))))


async def test_a_device_is_notified_which_command_was_too_large_and_continues(stubs):
    call = await attached(stubs)
    words = [f"word{number}" * 10 for number in range(3_000)]
    clause = subscriptions_pb2.Clause(required=words)
    spec = subscriptions_pb2.SubscriptionSpec(boolean=subscriptions_pb2.Boolean(clauses=[clause]))
    subscribe = device_service_pb2.Subscribe(subscription_id=5, spec=spec, position=HERE)
    await call.write(Attach(subscribe=subscribe))
    rejection = (await call.read()).rejection
    assert (rejection.number, rejection.error.field) == (5, "request")
    ids = [1] * 20_000
    await call.write(Attach(report=device_service_pb2.Report(sequence=8, subscription_ids=ids)))
    rejection = (await call.read()).rejection
    assert (rejection.number, rejection.error.field) == (8, "report.subscription_ids")
    await call.write(Attach(ping=device_service_pb2.Ping(number=1)))
    assert (await call.read()).pong.number == 1
    call.cancel()


@pytest.mark.parametrize("ids", [[1, 1], [1, 2, 3, 1]])
async def test_a_report_names_each_subscription_once(stubs, ids):
    call = await attached(stubs)
    await call.write(Attach(subscribe=subscribe(1, a_spec())))
    await call.read()
    report = device_service_pb2.Report(sequence=1, position=HERE, subscription_ids=ids)
    await call.write(Attach(report=report))
    rejection = (await call.read()).rejection
    assert rejection.error.field == "subscription_ids"
    assert f"{len(ids)} ids" in rejection.error.value
    call.cancel()


async def test_a_publisher_is_notified_which_request_was_too_large_and_continues(stubs):
    call = stubs.publishers.Publish()
    big = an_object(payload=bytes(200_000))
    await call.write(Publish(sequence=3, objects=[big]))
    response = await call.read()
    assert (response.sequence, response.error.field) == (3, "objects[0].payload")
    await call.write(Publish(sequence=4, objects=[an_object()]))
    response = await call.read()
    assert (response.sequence, len(response.ids)) == (4, 1)
    call.cancel()


async def test_a_first_message_that_is_too_large_ends_the_stream(stubs):
    call = stubs.channel.stream_stream("/nearcast.v1.DeviceService/Attach")()
    await call.write(hello().SerializeToString() + bytes(70_000))
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call.read()
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_every_request_that_people_make_fits():
    objects = [
        objects_pb2.NewObject(
            position=geometry_pb2.Position(lon=1.0, lat=2.0),
            keywords=["x" * 40] * LIMITS.object_keywords_max,
            ttl_ms=1,
            key="k" * LIMITS.name_length_max,
        )
        for _ in range(LIMITS.objects_per_request_max)
    ]
    walker("Publish").verify(Publish(sequence=1, objects=objects).SerializeToString())
    words = [f"{'x' * 14}{i}" for i in range(LIMITS.clause_keywords_max)]
    clauses = [subscriptions_pb2.Clause(required=words, excluded=words)] * LIMITS.clauses_max
    corners = [geometry_pb2.Position(lon=1.0, lat=2.0)] * LIMITS.vertices_max
    polygon = geometry_pb2.Polygon(outer=geometry_pb2.Ring(vertices=corners))
    boolean = subscriptions_pb2.Boolean(clauses=clauses, polygon=polygon)
    spec = subscriptions_pb2.SubscriptionSpec(boolean=boolean)
    walker("Search").verify(Search(spec=spec, position=HERE).SerializeToString())
    ids = list(range(1, LIMITS.subscriptions_per_device_max + 1))
    report = device_service_pb2.Report(sequence=2**40, position=HERE, subscription_ids=ids)
    walker("Attach").verify(Attach(report=report).SerializeToString())
