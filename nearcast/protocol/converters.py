"""SDK types to wire messages and back."""

from __future__ import annotations

import math
from collections.abc import Collection

from nearcast.errors import invalid
from nearcast.model import GeoObject, LiveObject, ServerState, ServerStatus, TopK
from nearcast.v1 import control_service_pb2, geometry_pb2, objects_pb2, subscriptions_pb2
from safe_region.anchored import RegionMode
from safe_region.frame import Area, Frame
from safe_region.keywords import normalised_keyword
from safe_region.scoring import Similarity

_INT32_MAX = 2**31 - 1
_TTL_S_MAX = 2**50 / 1000


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


def number(value: float, field: str) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise invalid(field, value, "a finite number")
    return float(value)


def distance_setting(value: float, field: str) -> float:
    """Return a distance in metres that a user has set."""
    if number(value, field) < 0.0:
        raise invalid(field, value, "a finite number, at least 0")
    return float(value)


def position_message(lon: float, lat: float, field: str = "position") -> geometry_pb2.Position:
    """Write a position."""
    return geometry_pb2.Position(lon=number(lon, f"{field}.lon"), lat=number(lat, f"{field}.lat"))


def new_object_message(new: GeoObject, field: str) -> objects_pb2.NewObject:
    """Write an object to publish."""
    ttl_s = number(new.ttl_s, f"{field}.ttl_s")
    if not 0.001 <= ttl_s <= _TTL_S_MAX:  # noqa: PLR2004
        raise invalid(f"{field}.ttl_s", new.ttl_s, f"0.001 to {_TTL_S_MAX:.0f}")
    if not isinstance(new.payload, bytes):
        raise invalid(f"{field}.payload", new.payload, "bytes")
    if not isinstance(new.key, str):
        raise invalid(f"{field}.key", new.key, "text")
    return objects_pb2.NewObject(
        position=position_message(new.lon, new.lat, f"{field}.position"),
        keywords=keyword_list(new.keywords, f"{field}.keywords"),
        ttl_ms=round(ttl_s * 1000.0),
        payload=new.payload,
        key=new.key,
    )


def spec_message(spec: TopK) -> subscriptions_pb2.SubscriptionSpec:
    """Write what a subscription asks for."""
    if isinstance(spec.k, bool) or not isinstance(spec.k, int) or not 0 <= spec.k <= _INT32_MAX:
        raise invalid("spec.top_k.k", spec.k, "a whole number, at least 1")
    try:
        similarity = Similarity(spec.similarity)
    except ValueError:
        raise invalid("spec.top_k.similarity", spec.similarity, "a Similarity") from None
    try:
        region = RegionMode(spec.region)
    except ValueError:
        raise invalid("spec.region", spec.region, "a RegionMode") from None
    return subscriptions_pb2.SubscriptionSpec(
        top_k=subscriptions_pb2.TopK(
            keywords=keyword_list(spec.keywords, "spec.top_k.keywords"),
            k=spec.k,
            alpha=number(spec.alpha, "spec.top_k.alpha"),
            similarity=subscriptions_pb2.Similarity.Name(int(similarity)),
        ),
        region=subscriptions_pb2.RegionMode.Name(int(region)),
    )


def top_k(message: subscriptions_pb2.SubscriptionSpec) -> TopK | None:
    """Read what a subscription asks for; None if that is not a top-k subscription as this SDK knows them.

    Another SDK may have made it: of another kind, with a window, or with a mode that came later.
    """
    if message.WhichOneof("kind") != "top_k" or message.HasField("window"):
        return None
    spec = message.top_k
    try:
        similarity = Similarity(spec.similarity or Similarity.JACCARD)
        region = RegionMode(message.region or RegionMode.ANCHORED)
    except ValueError:
        return None
    return TopK(frozenset(spec.keywords), spec.k, spec.alpha, similarity, region)


def is_same_spec(spec: TopK, other: TopK) -> bool:
    """Whether the server's normalised spec is what was asked for."""
    return (
        {normalised_keyword(keyword) for keyword in spec.keywords} == other.keywords
        and spec.k == other.k
        and spec.alpha == other.alpha
        and spec.similarity == other.similarity
        and spec.region == other.region
    )


def live_object(message: objects_pb2.Object) -> LiveObject:
    """Read an object."""
    return LiveObject(
        message.id,
        message.position.lon,
        message.position.lat,
        frozenset(message.keywords),
        message.created_ms,
        message.expiry_ms,
        message.payload,
        message.key,
    )


def frame(message: geometry_pb2.Frame) -> Frame:
    """Read a frame, with the server's own factors."""
    return Frame(
        Area(message.lon_min, message.lat_min, message.lon_max, message.lat_max),
        message.lon0_deg,
        message.lat0_deg,
        message.x_m_per_deg,
        message.y_m_per_deg,
        message.maxdist_m,
    )


def server_status(response: control_service_pb2.StatusResponse) -> ServerStatus:
    """Read what a server tells of itself. A state of a newer server becomes UNKNOWN."""
    known = response.state in {state.value for state in ServerState}
    return ServerStatus(
        ServerState(response.state) if known else ServerState.UNKNOWN,
        response.time_ms,
        dict(response.gauges),
        dict(response.counters),
        dict(response.limits),
    )
