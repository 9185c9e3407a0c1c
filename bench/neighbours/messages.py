"""The messages of callers: those of honest callers, and those of acts.

Every message of an act is within the limits that the server publishes, or has to be refused; the
benchmark measures its cost to others. Large messages are written by hand (`bench.neighbours.wire`), since
no library would write them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from bench.neighbours.wire import double, empties, nested, number
from nearcast.v1 import device_service_pb2, geometry_pb2, publisher_service_pb2, subscriptions_pb2

AttachRequest = device_service_pb2.AttachRequest
Spec = subscriptions_pb2.SubscriptionSpec
Corner = tuple[float, float]
Corners = Sequence[Corner]

LON, LAT = 12.56, 55.66
HERE = geometry_pb2.Position(lon=LON, lat=LAT)
HONEST = "honest"
"""Keyword of the honest publisher's objects and of the honest device's subscription."""
DEVICE_BYTES = 2**20
"""Size of one message of a device."""
PUBLISHER_BYTES = 32 * 2**20
"""Size of one message of a publisher or gateway."""
_HEADER_BYTES = 200
"""Enough for the fields that enclose a list that fills a message."""
POLYGON_CORNERS = 512
AREA_CORNERS = 63
_HOLES = 168
_NOBODY = "nobody-has-it"


# -- specs ---------------------------------------------------------------------------------------


def top_k(word: str = HONEST, k: int = 5) -> Spec:
    """Return a subscription for the k best objects with a keyword."""
    spec = Spec()
    spec.top_k.keywords.append(word)
    spec.top_k.k, spec.top_k.alpha = k, 0.5
    return spec


def circle(word: str, radius_m: float) -> Spec:
    """Return a subscription for all objects with a keyword within a circle that moves with the device."""
    spec = Spec()
    spec.boolean.clauses.add(required=[word])
    spec.boolean.circle.radius_m, spec.boolean.moving = radius_m, True
    return spec


def many_clauses(word: str, radius_m: float) -> Spec:
    """Return 64 clauses that all require the same keyword and exclude 16 others each."""
    spec = Spec()
    for i in range(64):
        spec.boolean.clauses.add(required=[word], excluded=[f"x{i}-{j}" for j in range(16)])
    spec.boolean.circle.radius_m, spec.boolean.moving = radius_m, True
    return spec


def polygon(corners: Corners, holes: Iterable[Corners] = ()) -> Spec:
    """Return a subscription within a stationary polygon, for a keyword that no object has."""
    spec = Spec()
    spec.boolean.clauses.add(required=[_NOBODY])
    _fill(spec.boolean.polygon.outer, corners)
    for hole in holes:
        _fill(spec.boolean.polygon.holes.add(), hole)
    return spec


def comb(count: int, shift: float = 0.0) -> list[Corner]:
    """Return the corners of a comb: a line across intersects most of its edges."""
    teeth = (count - 1) // 2
    found = [(12.55 + shift, 55.65)]
    for i in range(teeth):
        found += [(12.56, 55.65 + 0.01 * i / teeth), (12.551 + shift, 55.65 + 0.01 * (i + 0.5) / teeth)]
    return [*found[: count - 1], (12.55 + shift, 55.662)]


def fan() -> Spec:
    """Return a polygon with 168 holes that touch in one point; one coordinate is the smallest float."""
    radius = 1e-3

    def corner(turn: float) -> Corner:
        return radius * math.cos(2 * math.pi * turn), radius * math.sin(2 * math.pi * turn)

    holes = [[(0.0, 0.0), corner(i / _HOLES), corner((i + 0.5) / _HOLES)] for i in range(_HOLES)]
    return polygon([(-0.1, -0.1), (0.1, -0.1), (0.1, 0.1), (-0.1, 0.1), (-0.1, 5e-324)], holes)


def _fill(ring: geometry_pb2.Ring, corners: Corners) -> None:
    for lon, lat in corners:
        ring.vertices.add(lon=lon, lat=lat)


# -- of devices ----------------------------------------------------------------------------------


def hello(device_id: str, nonce: bytes = b"a") -> bytes:
    """Return the first message of a stream."""
    request = device_service_pb2.Hello(device_id=device_id, instance_nonce=nonce, position=HERE)
    return AttachRequest(hello=request).SerializeToString()


def subscribe(subscription_id: int, spec: Spec) -> bytes:
    """Return a request for a subscription."""
    request = device_service_pb2.Subscribe(subscription_id=subscription_id, spec=spec, position=HERE)
    return AttachRequest(subscribe=request).SerializeToString()


def report(
    sequence: int, subscription_ids: Sequence[int] = (1,), lon: float = LON, lat: float = LAT
) -> bytes:
    """Return a report."""
    request = device_service_pb2.Report(
        sequence=sequence, position={"lon": lon, "lat": lat}, subscription_ids=subscription_ids
    )
    return AttachRequest(report=request).SerializeToString()


def report_of_one_id(sequence: int) -> bytes:
    """Return a report whose list of ids is the number 1, a million times."""
    ids = nested(3, b"\x01" * (DEVICE_BYTES - _HEADER_BYTES))
    return nested(4, number(1, sequence) + nested(2, double(1, LON) + double(2, LAT)) + ids)


def fleet(device_id: str, requests: Iterable[bytes]) -> bytes:
    """Return a message of a fleet stream: requests of one device, each as an entry."""
    name = nested(1, device_id.encode())
    return b"".join(nested(1, name + nested(2, request)) for request in requests)


# -- searches ------------------------------------------------------------------------------------


def search(spec: Spec) -> bytes:
    """Return a request to search."""
    return device_service_pb2.SearchRequest(spec=spec, position=HERE).SerializeToString()


def _raw_search(spec: bytes) -> bytes:
    return nested(1, spec) + nested(2, b"")


def search_of_clauses() -> bytes:
    """Return a search with some 524,000 empty clauses."""
    range_ = nested(2, nested(1, double(1, 0.0) + double(2, 0.0)) + double(2, 100.0))
    return _raw_search(nested(2, empties(1, DEVICE_BYTES - _HEADER_BYTES) + range_))


def search_of_keywords() -> bytes:
    """Return a search for the best objects of some 524,000 empty keywords."""
    return _raw_search(nested(1, empties(1, DEVICE_BYTES - _HEADER_BYTES)))


def search_of_vertices() -> bytes:
    """Return a search within a polygon of some 524,000 empty vertices."""
    ring = nested(1, empties(1, DEVICE_BYTES - _HEADER_BYTES))
    return _raw_search(nested(2, nested(1, nested(1, b"a")) + nested(4, ring)))


def search_of_holes() -> bytes:
    """Return a search within a polygon of some 524,000 empty holes."""
    rings = nested(1, b"") + empties(2, DEVICE_BYTES - _HEADER_BYTES)
    return _raw_search(nested(2, nested(1, nested(1, b"a")) + nested(4, rings)))


# -- of publishers and gateways ------------------------------------------------------------------


def publication(
    sequence: int, word: str = HONEST, ttl_ms: int = 20_000, payload: bytes = b"x" * 64, count: int = 1
) -> bytes:
    """Return a request to publish objects with a keyword."""
    request = publisher_service_pb2.PublishRequest(sequence=sequence)
    for i in range(count):
        new = request.objects.add(keywords=[word], ttl_ms=ttl_ms, payload=payload)
        new.position.lon, new.position.lat = LON + 1e-6 * ((sequence + i) % 97), LAT
    return request.SerializeToString()


def publication_of_areas() -> bytes:
    """Return a request to publish 100 objects whose areas are combs of 63 corners."""
    request = publisher_service_pb2.PublishRequest(sequence=1)
    for _ in range(100):
        new = request.objects.add(keywords=["comb"], ttl_ms=1_000)
        _fill(new.area.polygon, comb(AREA_CORNERS))
    return request.SerializeToString()


def publication_of_vertices() -> bytes:
    """Return a request to publish one object whose area has 16 million empty vertices."""
    ring = nested(2, empties(1, PUBLISHER_BYTES - _HEADER_BYTES))
    return nested(2, nested(2, HONEST.encode()) + number(3, 1_000) + nested(6, ring))


def publication_of_empty_objects() -> bytes:
    """Return a request to publish 8.4 million objects that have nothing but an empty position."""
    one = nested(2, nested(1, b""))
    return one * ((PUBLISHER_BYTES - _HEADER_BYTES) // len(one))


def retraction_of_ids() -> bytes:
    """Return a request to retract the id 1, 33 million times."""
    return nested(1, b"\x01" * (PUBLISHER_BYTES - _HEADER_BYTES))


def fleet_of_empty_entries() -> bytes:
    """Return a message of a fleet stream that has 16 million empty entries."""
    return empties(1, PUBLISHER_BYTES - _HEADER_BYTES)
