"""SDK types to wire messages and back."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from nearcast.errors import NearcastError, invalid
from nearcast.model import Distribution, GeoObject, LiveObject, ServerState, ServerStatus
from nearcast.protocol.shapes import area_from, area_message, number, position_message
from nearcast.v1 import control_service_pb2, geometry_pb2, objects_pb2, publisher_service_pb2
from safe_region.frame import Area, Frame, Point
from safe_region.idf import IdfTable

_WORDS_PER_PART = 50_000
"""Of a table of weights: a megabyte or two."""
_TTL_S_MAX = 2**50 / 1000
_ID_END = 2**63
"""Above all ids."""


def keyword_list(keywords: Collection[str], field: str) -> list[str]:
    """Sorted keywords. A bare string is refused: it would be taken letter by letter."""
    limit = "a collection of texts"
    if isinstance(keywords, str | bytes) or not isinstance(keywords, Collection):
        raise invalid(field, keywords, limit)
    for keyword in keywords:
        if not isinstance(keyword, str):
            raise invalid(field, keyword, limit)
        try:
            keyword.encode()
        except UnicodeEncodeError:
            raise invalid(field, keyword, "text without lone surrogates") from None
    return sorted(keywords)


def distance_setting(value: float, field: str) -> float:
    """Return a distance in metres that a user has set."""
    if number(value, field) < 0.0:
        raise invalid(field, value, "a finite number, at least 0")
    return float(value)


def new_object_message(new: GeoObject, field: str) -> objects_pb2.NewObject:
    """Write an object to publish."""
    if new.ttl_s is None:
        raise invalid(f"{field}.ttl_s", None, f"0.001 to {_TTL_S_MAX:.0f}")
    ttl_s = number(new.ttl_s, f"{field}.ttl_s")
    if not 0.001 <= ttl_s <= _TTL_S_MAX:  # noqa: PLR2004
        raise invalid(f"{field}.ttl_s", new.ttl_s, f"0.001 to {_TTL_S_MAX:.0f}")
    if not isinstance(new.payload, bytes):
        raise invalid(f"{field}.payload", new.payload, "bytes")
    if not isinstance(new.key, str):
        raise invalid(f"{field}.key", new.key, "text")
    message = objects_pb2.NewObject(
        keywords=keyword_list(new.keywords, f"{field}.keywords"),
        ttl_ms=round(ttl_s * 1000.0),
        payload=new.payload,
        key=new.key,
    )
    if new.area is not None:
        if new.lon is not None or new.lat is not None:
            limit = "no lon and lat: the object has an area"
            raise invalid(f"{field}.position", (new.lon, new.lat), limit)
        message.area.CopyFrom(area_message(new.area, f"{field}.area"))
    elif new.lon is None or new.lat is None:
        limit = "lon and lat, or an area"
        raise invalid(f"{field}.position", (new.lon, new.lat), limit)
    else:
        message.position.CopyFrom(position_message(new.lon, new.lat, f"{field}.position"))
    return message


def retract_request(
    ids: Iterable[int], key: str | None, keys: Iterable[str] | None
) -> publisher_service_pb2.RetractRequest:
    """Write what is to be taken back."""
    checked_ids = list(ids)
    for i, object_id in enumerate(checked_ids):
        if isinstance(object_id, str):
            raise invalid(f"ids[{i}]", object_id, f"an id; a key is given as key={object_id!r}")
        if isinstance(object_id, bool) or not isinstance(object_id, int) or abs(object_id) >= _ID_END:
            raise invalid(f"ids[{i}]", object_id, "an id, as publish returned it")
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable | None):
        raise invalid("keys", keys, "several texts; one is given as key=")
    checked_keys = [*(() if key is None else (key,)), *(keys or ())]
    for i, one in enumerate(checked_keys):
        if not isinstance(one, str):
            raise invalid(f"keys[{i}]", one, "text")
    return publisher_service_pb2.RetractRequest(ids=checked_ids, keys=checked_keys)


def plane_point(message: geometry_pb2.Point) -> Point:
    """Read a position on the plane."""
    return Point(message.x_m, message.y_m)


def live_object(message: objects_pb2.Object) -> LiveObject:
    """Read an object."""
    position = message.position
    return LiveObject(
        message.id,
        position.lon,
        position.lat,
        frozenset(message.keywords),
        message.created_ms,
        message.expiry_ms,
        message.payload,
        message.key,
        area_from(message.area) if message.HasField("area") else None,
    )


def frame(message: geometry_pb2.Frame) -> Frame:
    """Read a frame, with the server's own factors.

    Raises
    ------
    NearcastError
        If it is none.
    """
    factors = (message.x_m_per_deg, message.y_m_per_deg, message.maxdist_m)
    if not all(0.0 < one < math.inf for one in factors):
        raise NearcastError("the server's welcome has no frame")
    return Frame(
        Area(message.lon_min, message.lat_min, message.lon_max, message.lat_max),
        message.lon0_deg,
        message.lat0_deg,
        message.x_m_per_deg,
        message.y_m_per_deg,
        message.maxdist_m,
    )


def idf_parts(table: IdfTable) -> Iterator[control_service_pb2.SetIdfRequest]:
    """Write a table of weights in parts that fit into messages."""
    yield control_service_pb2.SetIdfRequest(unknown_weight=table.unknown)
    words = iter(table.weights.items())
    while part := dict(islice(words, _WORDS_PER_PART)):
        yield control_service_pb2.SetIdfRequest(weights=part)


def server_status(response: control_service_pb2.StatusResponse) -> ServerStatus:
    """Read what a server tells of itself. A state of a newer server becomes UNKNOWN."""
    known = response.state in {state.value for state in ServerState}
    return ServerStatus(
        ServerState(response.state) if known else ServerState.UNKNOWN,
        response.time_ms,
        dict(response.gauges),
        dict(response.counters),
        dict(response.limits),
        {
            name: Distribution(tuple(one.bounds), tuple(one.counts), one.total)
            for name, one in response.distributions.items()
        },
    )
