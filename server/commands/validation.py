"""Validation of commands. Every function returns the normalised value or raises `RefusedError`."""

from __future__ import annotations

from collections.abc import Sequence

from identity.principal import ANYBODY, Principal
from nearcast.checks import (
    check_covered,
    checked_keywords,
    checked_name,
    checked_place,
    checked_position,
    require,
)
from nearcast.errors import Reason, RefusedError
from nearcast.limits import NONCE_BYTES_MAX, TIME_MS_MAX, VERSION_MAX
from safe_region.earth.frame import Frame
from server.clock import Clock
from server.command import Report
from server.commands.areas import checked_area
from server.limits import Limits
from server.model import NewObject


def require_settable(time_ms: int, clock: Clock) -> None:
    """Require that a clock can be set to a time."""
    if not clock.is_virtual:
        raise RefusedError(Reason.NOT_VIRTUAL, "clock", "real", "virtual (serve with --virtual-time)")
    if time_ms > TIME_MS_MAX:
        raise RefusedError(Reason.INVALID_FIELD, "time_ms", time_ms, f"at most {TIME_MS_MAX}")


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
    check_covered(frame, (lon, lat), f"{field}.position")
    keywords = checked_keywords(
        new.keywords, f"{field}.keywords", limits.object_keywords_max, limits.keyword_length_max
    )
    if not 1 <= new.ttl_ms <= limits.ttl_ms_max:
        raise RefusedError(
            Reason.INVALID_FIELD, f"{field}.ttl_ms", new.ttl_ms, f"1 to {limits.ttl_ms_max}"
        )
    if len(new.payload) > limits.payload_bytes_max:
        raise RefusedError(
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
            raise RefusedError(Reason.INVALID_FIELD, f"objects[{i}].key", repr(objects[i].key), limit)
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
        raise RefusedError(
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
    require(0 <= version <= VERSION_MAX, "hello.version", version, f"0 to {VERSION_MAX}")
    return version


def checked_report(report: Report, limits: Limits) -> Report:
    """Return a report whose numbers are within their limits."""
    if not 1 <= report.sequence <= VERSION_MAX:
        limit = f"1 to {VERSION_MAX}"
        raise RefusedError(Reason.INVALID_FIELD, "report.sequence", report.sequence, limit)
    ids = report.subscription_ids
    if len(ids) > 1 and len(set(ids)) < len(ids):
        raise RefusedError(Reason.INVALID_FIELD, "subscription_ids", f"{len(ids)} ids", "no id twice")
    checked_place(report.place, limits)
    return report


def checked_nonce(nonce: bytes) -> bytes:
    """Return an instance nonce."""
    require(
        1 <= len(nonce) <= NONCE_BYTES_MAX,
        "hello.instance_nonce",
        f"{len(nonce)} bytes",
        f"1 to {NONCE_BYTES_MAX} bytes",
    )
    return nonce
