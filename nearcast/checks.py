"""Validate keywords, names and positions, in plain Python, for devices, server, stream job and simulator.

A function raises `RefusedError` with the field that is out of its limits, or returns the value with
normalised contents. `nearcast.limits` has the numbers, `nearcast.spec_checks` the rules of specs. Code
for arrays compares with the numbers itself; `tests/streaming/test_validity.py` compares its decisions
with these functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from nearcast.canonical import Place
from nearcast.errors import Reason, RefusedError
from nearcast.limits import HEADING_MAX_DEG, LAT_MAX_DEG, LON_MAX_DEG, SPEED_MAX_MPS, Limits
from safe_region.earth.frame import Frame
from safe_region.earth.shapes import Position
from safe_region.scoring.keywords import normalised_keyword

_SPELLINGS_MAX = 8
"""Keywords that may be given for each allowed one: different spellings of a keyword count as one."""

_EXPANSION_MAX = 4
"""Characters of a keyword for each allowed one. NFKC may expand one character to 18; a longer input
cannot become short enough."""


def require(condition: bool, field: str, value: object, limit: str) -> None:  # noqa: FBT001
    """Raise RefusedError (INVALID_FIELD) unless the condition holds."""
    if not condition:
        raise RefusedError(Reason.INVALID_FIELD, field, value, limit)


def valid_keyword(keyword: str, length_max: int) -> str:
    """Return the normal form of a keyword; empty if it is not valid."""
    word = normalised_keyword(keyword) if len(keyword) <= _EXPANSION_MAX * length_max else ""
    return word if len(word) <= length_max and word.isprintable() else ""


def checked_keywords(
    keywords: Iterable[str], field: str, count_max: int, length_max: int
) -> tuple[str, ...]:
    """Return sorted, unique, normalised keywords: 1 to `count_max`, each printable and short enough."""
    given = list(keywords)
    # The count limits the number of keywords that are checked, so that a huge list costs nothing.
    if not 1 <= len(given) <= count_max * _SPELLINGS_MAX:
        raise _wrong_count(len(given), field, count_max)
    found: set[str] = set()
    for i, keyword in enumerate(given):
        word = valid_keyword(keyword, length_max)
        if not word:
            limit = f"1 to {length_max} printable characters"
            raise RefusedError(Reason.INVALID_FIELD, f"{field}[{i}]", repr(keyword), limit)
        found.add(word)
    if len(found) > count_max:
        raise _wrong_count(len(found), field, count_max)
    return tuple(sorted(found))


def spellings_max(count_max: int) -> int:
    """Return how many keywords may be given, if so many may remain that differ."""
    return count_max * _SPELLINGS_MAX


def _wrong_count(count: int, field: str, count_max: int) -> RefusedError:
    shown = f"{count} keywords" if count else "empty"
    return RefusedError(Reason.INVALID_FIELD, field, shown, f"1 to {count_max} keywords")


def is_name(name: str, length_max: int) -> bool:
    """Return whether a text may be a name: of printable characters, for people to read."""
    return 1 <= len(name) <= length_max and name.isprintable()


def checked_name(name: str, field: str, length_max: int, *, optional: bool = False) -> str:
    """Return a device id, the name of a subscription, or the key of an object."""
    limit = f"{0 if optional else 1} to {length_max} printable characters"
    require(is_name(name, length_max) or (optional and not name), field, repr(name), limit)
    return name


def check_degrees(field: str, value: float, most: float) -> None:
    """Require a finite number of degrees."""
    is_right = math.isfinite(value) and abs(value) <= most
    require(is_right, field, value, f"a finite number from -{most} to {most}")


def checked_position(
    lon: float, lat: float, field: str = "position", names: tuple[str, str] = ("lon", "lat")
) -> Position:
    """Return a finite position on Earth; it may lie outside the service area."""
    if -LON_MAX_DEG <= lon <= LON_MAX_DEG and -LAT_MAX_DEG <= lat <= LAT_MAX_DEG:
        return lon, lat  # nearly always; the code below finds the reason
    check_degrees(f"{field}.{names[0]}", lon, LON_MAX_DEG)
    check_degrees(f"{field}.{names[1]}", lat, LAT_MAX_DEG)
    return lon, lat


def checked_place(
    place: Place, limits: Limits, field: str = "position", margin: str = "margin_m"
) -> Place:
    """Return the place that a device reports, with its margin, heading and speed."""
    checked_position(place.lon, place.lat, field)
    if not 0.0 <= place.margin_m <= limits.margin_m_max:
        raise RefusedError(
            Reason.INVALID_FIELD, margin, place.margin_m, f"0 to {limits.margin_m_max:g} metres"
        )
    # Unknown values are NaN, for which each comparison is false; so are values sent as NaN.
    if abs(place.heading_deg) > HEADING_MAX_DEG:
        limit = f"a finite number from -{HEADING_MAX_DEG:g} to {HEADING_MAX_DEG:g}"
        raise RefusedError(Reason.INVALID_FIELD, "heading_deg", place.heading_deg, limit)
    if place.speed_mps < 0.0 or place.speed_mps > SPEED_MAX_MPS:
        limit = f"0 to {SPEED_MAX_MPS:g} metres a second"
        raise RefusedError(Reason.INVALID_FIELD, "speed_mps", place.speed_mps, limit)
    return place


def check_covered(frame: Frame, position: Position, field: str) -> None:
    """Require a position in the service area."""
    if not frame.covers(*position):
        lon, lat = position
        area = frame.area
        raise RefusedError(
            Reason.OUT_OF_AREA,
            field,
            f"({lon}, {lat})",
            f"within the service area, lon {area.lon_min} to {area.lon_max}, "
            f"lat {area.lat_min} to {area.lat_max}",
        )
