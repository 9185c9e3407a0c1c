"""Validation of commands. Every function returns the normalised value or raises `RefusalError`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from identity.principal import ANYBODY, Principal
from safe_region.earth.frame import Frame
from server.command import Report
from server.commands.areas import checked_area
from server.core.specs.checks import checked_keywords, require
from server.errors import Reason, RefusalError
from server.limits import Limits
from server.model import NewObject, Place

_LON_MAX_DEG = 180.0
_HEADING_MAX_DEG = 360.0
_SPEED_MAX_MPS = 10_000.0
_LAT_MAX_DEG = 90.0
_VERSION_MAX = 2**62
_NONCE_BYTES_MAX = 64


def checked_position(lon: float, lat: float, field: str = "position") -> tuple[float, float]:
    """Return a finite position on Earth; it may lie outside the service area."""
    if -_LON_MAX_DEG <= lon <= _LON_MAX_DEG and -_LAT_MAX_DEG <= lat <= _LAT_MAX_DEG:
        return lon, lat  # nearly always; the code below finds the reason
    require(
        math.isfinite(lon) and abs(lon) <= _LON_MAX_DEG,
        f"{field}.lon",
        lon,
        f"a finite number from -{_LON_MAX_DEG} to {_LON_MAX_DEG}",
    )
    require(
        math.isfinite(lat) and abs(lat) <= _LAT_MAX_DEG,
        f"{field}.lat",
        lat,
        f"a finite number from -{_LAT_MAX_DEG} to {_LAT_MAX_DEG}",
    )
    return lon, lat


def checked_place(
    place: Place, limits: Limits, field: str = "position", margin: str = "margin_m"
) -> Place:
    """Return the place that a device reports, with its margin, heading and speed."""
    checked_position(place.lon, place.lat, field)
    if not 0.0 <= place.margin_m <= limits.margin_m_max:
        raise RefusalError(
            Reason.INVALID_FIELD, margin, place.margin_m, f"0 to {limits.margin_m_max:g} metres"
        )
    # Unknown values are NaN, for which each comparison is false; so are values sent as NaN.
    if abs(place.heading_deg) > _HEADING_MAX_DEG:
        limit = f"a finite number from -{_HEADING_MAX_DEG:g} to {_HEADING_MAX_DEG:g}"
        raise RefusalError(Reason.INVALID_FIELD, "heading_deg", place.heading_deg, limit)
    if place.speed_mps < 0.0 or place.speed_mps > _SPEED_MAX_MPS:
        limit = f"0 to {_SPEED_MAX_MPS:g} metres a second"
        raise RefusalError(Reason.INVALID_FIELD, "speed_mps", place.speed_mps, limit)
    return place


def checked_name(name: str, field: str, length_max: int, *, optional: bool = False) -> str:
    """Return a device id or an object key."""
    limit = f"{0 if optional else 1} to {length_max} printable characters"
    require(len(name) <= length_max and (optional or name != ""), field, repr(name), limit)
    require(name.isprintable(), field, repr(name), limit)
    return name


def checked_object(
    new: NewObject, limits: Limits, frame: Frame, field: str, principal: Principal = ANYBODY
) -> NewObject:
    """Return a normalised object, which must lie in the service area; an area gets its point.

    Its keywords and its key are qualified by the tenant of the publisher.
    """
    lon, lat = new.lon, new.lat
    if new.area is not None:
        lon, lat = checked_area(new.area, limits, frame, f"{field}.area")
    checked_position(lon, lat, f"{field}.position")
    if not frame.covers(lon, lat):
        area = frame.area
        raise RefusalError(
            Reason.OUT_OF_AREA,
            f"{field}.position",
            f"({lon}, {lat})",
            f"within the service area, lon {area.lon_min} to {area.lon_max}, "
            f"lat {area.lat_min} to {area.lat_max}",
        )
    keywords = checked_keywords(
        new.keywords, f"{field}.keywords", limits.object_keywords_max, limits.keyword_length_max
    )
    if not 1 <= new.ttl_ms <= limits.ttl_ms_max:
        raise RefusalError(
            Reason.INVALID_FIELD, f"{field}.ttl_ms", new.ttl_ms, f"1 to {limits.ttl_ms_max}"
        )
    if len(new.payload) > limits.payload_bytes_max:
        raise RefusalError(
            Reason.INVALID_FIELD,
            f"{field}.payload",
            f"{len(new.payload)} bytes",
            f"at most {limits.payload_bytes_max} bytes",
        )
    checked_name(new.key, f"{field}.key", limits.name_length_max, optional=True)
    key = new.key
    if principal.prefix:
        keywords = tuple(map(principal.qualified, keywords))
        key = principal.qualified(key) if key else ""
    if new.area is None and keywords == new.keywords and key == new.key:
        return new  # nearly always
    return new._replace(lon=lon, lat=lat, keywords=keywords, key=key)


def checked_objects(
    objects: Sequence[NewObject], limits: Limits, frame: Frame, principal: Principal
) -> list[NewObject]:
    """Return normalised objects of a request: 1 to `objects_per_request_max`, keys all different."""
    check_count(len(objects), "objects", limits.objects_per_request_max)
    checked = [
        checked_object(new, limits, frame, f"objects[{i}]", principal) for i, new in enumerate(objects)
    ]
    seen: set[str] = set()
    for i, new in enumerate(checked):
        if new.key in seen:
            limit = "different from the other keys of the request"
            raise RefusalError(Reason.INVALID_FIELD, f"objects[{i}].key", repr(objects[i].key), limit)
        if new.key:
            seen.add(new.key)
    return checked


def check_named_count(ids: Sequence[int], keys: Sequence[str], limits: Limits) -> None:
    """Verify that a request names 1 to `objects_per_request_max` objects, by ids and keys together."""
    field = "ids and keys" if ids and keys else "keys" if keys else "ids"
    check_count(len(ids) + len(keys), field, limits.objects_per_request_max)


def check_count(count: int, field: str, count_max: int) -> None:
    """Verify that a request has 1 to `count_max` entries."""
    if not 1 <= count <= count_max:
        raise RefusalError(
            Reason.TOO_MANY if count else Reason.INVALID_FIELD,
            field,
            f"{count} entries",
            f"1 to {count_max} entries",
        )


def checked_subscription_id(subscription_id: int) -> int:
    """Return the number that a device gave a subscription."""
    require(subscription_id >= 1, "subscription_id", subscription_id, "at least 1")
    return subscription_id


def checked_version(version: int) -> int:
    """Return the version in a hello."""
    require(0 <= version <= _VERSION_MAX, "hello.version", version, f"0 to {_VERSION_MAX}")
    return version


def checked_report(report: Report, limits: Limits) -> Report:
    """Return a report whose numbers are within their limits."""
    if not 1 <= report.sequence <= _VERSION_MAX:
        limit = f"1 to {_VERSION_MAX}"
        raise RefusalError(Reason.INVALID_FIELD, "report.sequence", report.sequence, limit)
    ids = report.subscription_ids
    if len(ids) > 1 and len(set(ids)) < len(ids):
        raise RefusalError(Reason.INVALID_FIELD, "subscription_ids", f"{len(ids)} ids", "no id twice")
    checked_place(report.place, limits)
    return report


def checked_nonce(nonce: bytes) -> bytes:
    """Return an instance nonce."""
    require(
        1 <= len(nonce) <= _NONCE_BYTES_MAX,
        "hello.instance_nonce",
        f"{len(nonce)} bytes",
        f"1 to {_NONCE_BYTES_MAX} bytes",
    )
    return nonce
