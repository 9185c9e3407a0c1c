"""Convert types of apps to their canonical forms, and responses of the server to types of apps."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from nearcast.canonical import NewObject
from nearcast.errors import NearcastError, invalid
from nearcast.limits import OBJECT_ID_MAX
from nearcast.milliseconds import DURATION_S_MIN, TTL_S_MAX
from nearcast.model import (
    CallerUsage,
    ClusterNode,
    ClusterNodeState,
    Distribution,
    GeoObject,
    LogServer,
    LogStream,
    ServerState,
    ServerStatus,
)
from nearcast.protocol.names import checked_name
from nearcast.protocol.shapes import checked_area, checked_position, listed, number
from nearcast.v1 import control_service_pb2, geometry_pb2, publisher_service_pb2
from nearcast.wire.geometry import frame_from
from safe_region.earth.frame import Frame
from safe_region.earth.shapes import ObjectArea
from safe_region.scoring.idf import IdfTable
from safe_region.scoring.keywords import normalised_keyword

_WORDS_PER_PART = 50_000
"""Words in one part of a table of weights: a megabyte or two."""
_TTL = f"{DURATION_S_MIN} to {TTL_S_MAX} seconds"
_OBJECT = "a GeoObject(keywords, lon=..., lat=..., ttl_s=...)"


def keyword_list(keywords: Collection[str], field: str) -> tuple[str, ...]:
    """Return sorted keywords, one spelling of each. Refuse a text, which would be split into letters."""
    limit = "a collection of texts, such as {'sushi'}"
    if isinstance(keywords, str | bytes) or not isinstance(keywords, Collection):
        raise invalid(field, keywords, limit)
    for keyword in keywords:
        if not isinstance(keyword, str):
            raise invalid(field, keyword, limit)
        try:
            keyword.encode()
        except UnicodeEncodeError:
            raise invalid(field, keyword, "text without lone surrogates") from None
    return tuple({normalised_keyword(keyword): keyword for keyword in sorted(keywords)}.values())


def objects_listed(objects: GeoObject | Iterable[GeoObject]) -> list[GeoObject]:
    """Return a list of the objects to publish; a single object becomes a list of one."""
    if isinstance(objects, GeoObject):
        return [objects]
    limit = f"{_OBJECT}, or an iterable of them"
    if isinstance(objects, str | bytes | Mapping):  # iterables of something else
        raise invalid("objects", objects, limit)
    return listed(objects, "objects", limit)


def whole_number(value: int, field: str, least: int, limit: str, most: int = OBJECT_ID_MAX) -> int:
    """Validate a whole number against its limits, and return it."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise invalid(field, value, limit)
    return value


def distance_setting(value: float, field: str) -> float:
    """Validate a distance in metres that a user has set, and return it."""
    if number(value, field) < 0.0:
        raise invalid(field, value, "a finite number, at least 0")
    return float(value)


def new_object(new: GeoObject, field: str) -> NewObject:
    """Validate an object to publish, and return its canonical form."""
    if not isinstance(new, GeoObject):
        raise invalid(field, new, _OBJECT)
    if new.ttl_s is None:
        raise invalid(f"{field}.ttl_s", None, _TTL)
    ttl_s = number(new.ttl_s, f"{field}.ttl_s", _TTL)
    if not DURATION_S_MIN <= ttl_s <= TTL_S_MAX:
        raise invalid(f"{field}.ttl_s", new.ttl_s, _TTL)
    if not isinstance(new.payload, bytes):
        raise invalid(f"{field}.payload", new.payload, "bytes, such as those of text.encode()")
    key = checked_name(new.key, f"{field}.key", optional=True)
    keywords = keyword_list(new.keywords, f"{field}.keywords")
    lon, lat, area = _checked_place(new, field)
    return NewObject(lon, lat, keywords, round(ttl_s * 1000.0), new.payload, key, area)


def _checked_place(new: GeoObject, field: str) -> tuple[float, float, ObjectArea | None]:
    """Return the position and area of an object to publish; a position of 0 if there is an area."""
    given = (new.lon, new.lat)
    if new.area is not None:
        if given != (None, None):
            raise invalid(f"{field}.position", given, "no lon and lat: the object has an area")
        return 0.0, 0.0, checked_area(new.area, f"{field}.area")
    if new.lon is None or new.lat is None:
        raise invalid(f"{field}.position", given, "lon and lat, or an area")
    return *checked_position(new.lon, new.lat, f"{field}.position"), None


def retract_request(
    ids: Iterable[int], key: str | None, keys: Iterable[str] | None
) -> publisher_service_pb2.RetractRequest:
    """Convert ids and keys of objects to a request to retract them."""
    limit = "the id of an object, as publish returned it"
    wanted = []
    for i, one in enumerate(ids):
        field = f"ids[{i}]"
        if isinstance(one, str):
            raise invalid(field, one, f"{limit}; a single key is given as key={one!r}")
        wanted.append(whole_number(one, field, 1, limit))
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable | None):
        raise invalid("keys", keys, "an iterable of texts; a single key is given as key=")
    named = [*(() if key is None else (key,)), *(keys or ())]
    checked = [checked_name(one, f"keys[{i}]") for i, one in enumerate(named)]
    if not wanted and not checked:
        raise invalid("ids", (), "at least one id, unless key= or keys= is given")
    return publisher_service_pb2.RetractRequest(ids=wanted, keys=checked)


def frame(message: geometry_pb2.Frame) -> Frame:
    """Convert a message to a frame, with the projection factors of the server.

    Raises
    ------
    NearcastError
        If the message is not a valid frame.
    """
    factors = (message.x_m_per_deg, message.y_m_per_deg, message.maxdist_m)
    if not all(0.0 < one < math.inf for one in factors):
        raise NearcastError("the server's welcome has no frame")
    return frame_from(message)


def idf_parts(table: IdfTable) -> Iterator[control_service_pb2.SetIdfRequest]:
    """Convert a table of weights to requests, each small enough for a message."""
    yield control_service_pb2.SetIdfRequest(unknown_weight=table.unknown)
    words = iter(table.weights.items())
    while part := dict(islice(words, _WORDS_PER_PART)):
        yield control_service_pb2.SetIdfRequest(weights=part)


def server_status(response: control_service_pb2.StatusResponse) -> ServerStatus:
    """Convert a status response. A state of a newer server becomes UNKNOWN."""
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
        tuple(_caller_usage(one) for one in response.callers),
        tuple(_cluster_node(one) for one in response.nodes),
        tuple(_log_stream(one) for one in response.log_streams),
    )


def _cluster_node(message: control_service_pb2.ClusterNode) -> ClusterNode:
    known = message.state in {state.value for state in ClusterNodeState}
    state = ClusterNodeState(message.state) if known else ClusterNodeState.UNKNOWN
    return ClusterNode(
        message.address,
        state,
        message.slot_count,
        message.is_this,
        message.lease_age_ms,
        message.rules,
    )


def _log_stream(message: control_service_pb2.LogStream) -> LogStream:
    servers = (LogServer(one.name, one.is_leader, one.is_current, one.lag) for one in message.servers)
    return LogStream(message.name, message.message_count, message.byte_count, tuple(servers))


def _caller_usage(message: control_service_pb2.CallerUsage) -> CallerUsage:
    return CallerUsage(
        message.tenant,
        message.id,
        message.time_share,
        message.time_us,
        message.stream_count,
        message.call_count,
        message.unread_bytes,
    )
