"""Messages whose costs are measured: some that are as they should be, some that have held others up."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from bench.neighbours import messages as attacks
from nearcast.v1 import (
    device_service_pb2,
    geometry_pb2,
    publisher_service_pb2,
    subscriptions_pb2,
)
from tests.fuzz.recipes import joined, literal, nested, repeated

HELLO, DEVICE, FLEET, SEARCH, PUBLISH, RETRACT = range(6)
"""Kinds: a first message of a stream; one of a device that is attached; and so on."""
KIND_COUNT = 6
NAME = "d"
"""Of the device."""
LON, LAT = 14.5, 35.5
HERE = geometry_pb2.Position(lon=LON, lat=LAT)
OBJECTS = 500
"""That there are."""
COMMON = "common"
"""A keyword that all of them have."""

Attach = device_service_pb2.AttachRequest
Spec = subscriptions_pb2.SubscriptionSpec


def hello(nonce: bytes = b"n") -> Attach:
    hello = device_service_pb2.Hello(device_id=NAME, instance_nonce=nonce, position=HERE)
    return Attach(hello=hello)


def subscribe(number: int, spec: Spec) -> Attach:
    return Attach(
        subscribe=device_service_pb2.Subscribe(subscription_id=number, spec=spec, position=HERE)
    )


def unsubscribe(number: int) -> Attach:
    return Attach(unsubscribe=device_service_pb2.Unsubscribe(subscription_id=number))


def report(numbers: Iterable[int]) -> Attach:
    return Attach(
        report=device_service_pb2.Report(sequence=1, position=HERE, subscription_ids=list(numbers))
    )


def specs() -> list[Spec]:
    """Return what the device subscribes to."""
    found = []
    for i in range(4):
        top_k = Spec()
        top_k.top_k.keywords.extend([COMMON, f"w{i}"])
        top_k.top_k.k, top_k.top_k.alpha = 5, 0.5
        boolean = Spec()
        boolean.boolean.clauses.add(required=[f"w{i}"])
        boolean.boolean.circle.radius_m, boolean.boolean.moving = 2_000.0, True
        found += [top_k, boolean]
    return found


def stock() -> publisher_service_pb2.PublishRequest:
    """Return the objects of the world, on a grid."""
    request = publisher_service_pb2.PublishRequest(sequence=1)
    for i in range(OBJECTS):
        new = request.objects.add(keywords=[COMMON, f"w{i % 50}"], ttl_ms=3_600_000)
        new.position.lon, new.position.lat = 14.45 + 0.1 * (i % 25) / 25, 35.45 + 0.1 * (i // 25) / 20
    return request


def search(spec: Spec) -> device_service_pb2.SearchRequest:
    return device_service_pb2.SearchRequest(spec=spec, position=HERE)


def publication(count: int) -> publisher_service_pb2.PublishRequest:
    request = publisher_service_pb2.PublishRequest(sequence=1)
    for i in range(count):
        new = request.objects.add(keywords=[COMMON, f"w{i}"], ttl_ms=900, payload=b"p")
        new.position.lon, new.position.lat = LON, LAT
    return request


def inputs(kind: int, recipe: bytes) -> bytes:
    """Return an input of the target."""
    return bytes([kind]) + recipe


def messages() -> list[tuple[int, Any]]:
    """Return messages that are as they should be, with their kinds."""
    fleet = device_service_pb2.AttachFleetRequest()
    fleet.entries.add(device_id=NAME, request=report([1, 2]))
    retract = publisher_service_pb2.RetractRequest(ids=[OBJECTS + 1], keys=["k"])
    top_k, boolean, *_ = specs()
    wide = publisher_service_pb2.PublishRequest.FromString(_with_area())
    return [
        (HELLO, hello()),
        (DEVICE, report(range(1, 9))),
        (DEVICE, subscribe(20, top_k)),
        (DEVICE, subscribe(20, boolean)),
        (DEVICE, unsubscribe(3)),
        (FLEET, fleet),
        (SEARCH, search(top_k)),
        (SEARCH, search(boolean)),
        (SEARCH, search(attacks.polygon(attacks.comb(32)))),
        (PUBLISH, publication(3)),
        (PUBLISH, wide),
        (RETRACT, retract),
    ]


def seeds() -> list[bytes]:
    """Return inputs that stand for messages that are as they should be, or become a little longer."""
    found = [inputs(kind, literal(message.SerializeToString())) for kind, message in messages()]
    return found + [
        bytes([KIND_COUNT + kind, number]) for kind in range(KIND_COUNT) for number in range(4)
    ]


_POSITION = literal(geometry_pb2.Position(lon=LON, lat=LAT).SerializeToString())
_CIRCLE = nested(2, literal(b"\x11" + struct.pack("<d", 1e5)))


def _empties(number: int, times: int) -> bytes:
    """Return a recipe of empty messages of a field."""
    return repeated(nested(number, literal(b"")), times)


def _search_of(spec: bytes) -> bytes:
    return inputs(SEARCH, joined(nested(1, spec), nested(2, _POSITION)))


def costly() -> dict[str, bytes]:
    """Return inputs that have held up others, by what they are."""
    half_million = 500_000
    clause = nested(1, nested(1, literal(b"a")))
    ids = nested(3, repeated(literal(b"\x01"), 2 * half_million))
    subscribed = nested(2, nested(2, _empties(1, half_million), _CIRCLE))
    area = nested(6, nested(2, _empties(1, half_million)))
    return {
        "report of a million ids": inputs(
            DEVICE, nested(4, literal(b"\x08\x01"), nested(2, _POSITION), ids)
        ),
        "search of empty clauses": _search_of(nested(2, _empties(1, half_million), _CIRCLE)),
        "search of empty keywords": _search_of(nested(1, _empties(1, half_million))),
        "search of empty vertices": _search_of(
            nested(2, clause, nested(4, nested(1, _empties(1, half_million))))
        ),
        "search of empty holes": _search_of(
            nested(2, clause, nested(4, nested(1, literal(b"")), _empties(2, half_million)))
        ),
        "search of holes that touch": inputs(SEARCH, literal(search(attacks.fan()).SerializeToString())),
        "subscribe of empty clauses": inputs(
            DEVICE, nested(2, literal(b"\x08\x14"), subscribed, nested(3, _POSITION))
        ),
        "area of half a million vertices": inputs(PUBLISH, nested(2, nested(2, literal(b"a")), area)),
        "a hundred areas": inputs(PUBLISH, repeated(literal(_with_area()), 100)),
        "a hundred thousand objects": inputs(
            PUBLISH, repeated(nested(2, nested(1, literal(b""))), half_million // 5)
        ),
        "retract of four million ids": inputs(
            RETRACT, nested(1, repeated(literal(b"\x01"), 8 * half_million))
        ),
        "fleet of a hundred thousand entries": inputs(FLEET, _empties(1, half_million // 5)),
    }


def _with_area() -> bytes:
    """Return a request to publish one object whose area has as many corners as it may."""
    request = publisher_service_pb2.PublishRequest()
    new = request.objects.add(keywords=["comb"], ttl_ms=900)
    for lon, lat in attacks.comb(attacks.AREA_CORNERS):
        new.area.polygon.vertices.add(lon=LON + lon - attacks.LON, lat=LAT + lat - attacks.LAT)
    return request.SerializeToString()
