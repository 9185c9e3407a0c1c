"""What the server accepts. Every function returns the normalised thing or raises `RefusalError`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from safe_region.anchored import RegionMode
from safe_region.frame import Frame
from safe_region.keywords import normalised_keyword
from server.commands.command import Report
from server.errors import Reason, RefusalError
from server.limits import Limits
from server.model import NewObject, TopK

_LON_MAX_DEG = 180.0
_HEADING_MAX_DEG = 360.0
_SPEED_MAX_MPS = 10_000.0
_LAT_MAX_DEG = 90.0
_VERSION_MAX = 2**62
_NONCE_BYTES_MAX = 64


def _require(condition: bool, field: str, value: object, limit: str) -> None:  # noqa: FBT001
    if not condition:
        raise RefusalError(Reason.INVALID_FIELD, field, value, limit)


def checked_keywords(
    keywords: Iterable[str], field: str, count_max: int, length_max: int
) -> tuple[str, ...]:
    """Sorted unique normalised keywords: printable, none empty, none too long, 1 to `count_max`."""
    given = list(keywords)
    # Judged before normalisation, so that a huge list costs nothing.
    if not 1 <= len(given) <= count_max:
        shown = f"{len(given)} keywords" if given else "empty"
        raise RefusalError(Reason.INVALID_FIELD, field, shown, f"1 to {count_max} keywords")
    found: set[str] = set()
    for i, keyword in enumerate(given):
        # NFKC may stretch a character to 18; a longer input cannot come out short enough to matter.
        word = normalised_keyword(keyword) if len(keyword) <= 4 * length_max else ""
        if not (0 < len(word) <= length_max and word.isprintable()):
            limit = f"1 to {length_max} printable characters"
            raise RefusalError(Reason.INVALID_FIELD, f"{field}[{i}]", repr(keyword), limit)
        found.add(word)
    return tuple(sorted(found))


def checked_position(lon: float, lat: float, field: str = "position") -> tuple[float, float]:
    """Return a finite position on Earth; it may lie outside the service area."""
    if -_LON_MAX_DEG <= lon <= _LON_MAX_DEG and -_LAT_MAX_DEG <= lat <= _LAT_MAX_DEG:
        return lon, lat  # nearly always: what follows says what is wrong
    _require(
        math.isfinite(lon) and abs(lon) <= _LON_MAX_DEG,
        f"{field}.lon",
        lon,
        f"a finite number from -{_LON_MAX_DEG} to {_LON_MAX_DEG}",
    )
    _require(
        math.isfinite(lat) and abs(lat) <= _LAT_MAX_DEG,
        f"{field}.lat",
        lat,
        f"a finite number from -{_LAT_MAX_DEG} to {_LAT_MAX_DEG}",
    )
    return lon, lat


def checked_margin(margin_m: float, limits: Limits, field: str = "margin_m") -> float:
    """Return how far from its position a device may be."""
    if not 0.0 <= margin_m <= limits.margin_m_max:
        raise RefusalError(Reason.INVALID_FIELD, field, margin_m, f"0 to {limits.margin_m_max:g} metres")
    return margin_m


def checked_motion(heading_deg: float | None, speed_mps: float | None) -> None:
    """Require a finite heading and speed, where they are given."""
    if heading_deg is not None and not abs(heading_deg) <= _HEADING_MAX_DEG:
        limit = f"a finite number from -{_HEADING_MAX_DEG:g} to {_HEADING_MAX_DEG:g}"
        raise RefusalError(Reason.INVALID_FIELD, "heading_deg", heading_deg, limit)
    if speed_mps is not None and not 0.0 <= speed_mps <= _SPEED_MAX_MPS:
        limit = f"0 to {_SPEED_MAX_MPS:g} metres a second"
        raise RefusalError(Reason.INVALID_FIELD, "speed_mps", speed_mps, limit)


def require_exact(regions: Iterable[RegionMode], margin_m: float, field: str = "margin_m") -> None:
    """Refuse a margin if a subscription needs to know where its device is. O(1) without a margin."""
    _require(
        margin_m == 0.0 or all(region is not RegionMode.ELLIPSE for region in regions),
        field,
        margin_m,
        "0 for a device with a subscription in the mode ELLIPSE",
    )


def checked_name(name: str, field: str, length_max: int, *, optional: bool = False) -> str:
    """Return a device id or an object key."""
    limit = f"{0 if optional else 1} to {length_max} printable characters"
    _require(len(name) <= length_max and (optional or name != ""), field, repr(name), limit)
    _require(name.isprintable(), field, repr(name), limit)
    return name


def checked_object(new: NewObject, limits: Limits, frame: Frame, field: str) -> NewObject:
    """Normalise an object, whose position must lie in the area."""
    checked_position(new.lon, new.lat, f"{field}.position")
    if not frame.covers(new.lon, new.lat):
        area = frame.area
        raise RefusalError(
            Reason.OUT_OF_AREA,
            f"{field}.position",
            f"({new.lon}, {new.lat})",
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
    return new if keywords == new.keywords else new._replace(keywords=keywords)


def checked_objects(objects: Sequence[NewObject], limits: Limits, frame: Frame) -> list[NewObject]:
    """Normalise the objects of one request: 1 to `objects_per_request_max`, keys all different."""
    _check_count(len(objects), "objects", limits.objects_per_request_max)
    checked = [checked_object(new, limits, frame, f"objects[{i}]") for i, new in enumerate(objects)]
    seen: set[str] = set()
    for i, new in enumerate(checked):
        if new.key in seen:
            limit = "different from the other keys of the request"
            raise RefusalError(Reason.INVALID_FIELD, f"objects[{i}].key", repr(new.key), limit)
        if new.key:
            seen.add(new.key)
    return checked


def checked_ids(ids: Sequence[int], limits: Limits) -> list[int]:
    """Object ids of one request: 1 to `objects_per_request_max`; repetitions are taken once."""
    _check_count(len(ids), "ids", limits.objects_per_request_max)
    return list(dict.fromkeys(ids))


def _check_count(count: int, field: str, count_max: int) -> None:
    if not 1 <= count <= count_max:
        raise RefusalError(
            Reason.TOO_MANY if count else Reason.INVALID_FIELD,
            field,
            f"{count} entries",
            f"1 to {count_max} entries",
        )


def checked_top_k(spec: TopK, limits: Limits) -> TopK:
    """Normalise a top-k subscription."""
    field = "spec.top_k"
    _require(1 <= spec.k <= limits.k_max, f"{field}.k", spec.k, f"1 to {limits.k_max}")
    _require(
        limits.alpha_min <= spec.alpha <= limits.alpha_max,
        f"{field}.alpha",
        spec.alpha,
        f"{limits.alpha_min} to {limits.alpha_max}",
    )
    keywords = checked_keywords(
        spec.keywords,
        f"{field}.keywords",
        limits.subscription_keywords_max,
        limits.keyword_length_max,
    )
    return replace(spec, keywords=keywords)


def checked_subscription_id(subscription_id: int) -> int:
    """Return the number a device gave a subscription."""
    _require(subscription_id >= 1, "subscription_id", subscription_id, "at least 1")
    return subscription_id


def checked_version(version: int) -> int:
    """Return the version a device says it has."""
    _require(0 <= version <= _VERSION_MAX, "hello.version", version, f"0 to {_VERSION_MAX}")
    return version


def checked_sequence(sequence: int) -> int:
    """Return the number of a report."""
    if not 1 <= sequence <= _VERSION_MAX:
        raise RefusalError(Reason.INVALID_FIELD, "report.sequence", sequence, f"1 to {_VERSION_MAX}")
    return sequence


def checked_report(report: Report, limits: Limits) -> None:
    """Require numbers of a report that are within their limits."""
    checked_sequence(report.sequence)
    checked_position(report.lon, report.lat)
    checked_margin(report.margin_m, limits)
    checked_motion(report.heading_deg, report.speed_mps)


def checked_nonce(nonce: bytes) -> bytes:
    """Return an instance nonce."""
    _require(
        1 <= len(nonce) <= _NONCE_BYTES_MAX,
        "hello.instance_nonce",
        f"{len(nonce)} bytes",
        f"1 to {_NONCE_BYTES_MAX} bytes",
    )
    return nonce
