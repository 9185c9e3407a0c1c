"""Warming up: every kernel that the engine needs is compiled, or loaded, before the first command.

What is compiled is kept on disk (`safe_region/jit.py`), so the first start on a machine takes a minute or
so, and later ones half a second. Without this the first device of each kind would wait for it.
"""

from __future__ import annotations

from engine import EngineOptions
from safe_region.anchored import RegionMode
from safe_region.frame import Frame
from server.core.matching_service import MatchingService
from server.model import Cause, LiveObject, Place, TopK

_OBJECTS = 200
_WORDS = tuple(f"word{number}" for number in range(6))
_STEP_DEG = 1e-6
_LATER_MS = 1_000


def warm_up(frame: Frame, options: EngineOptions) -> None:
    """Let a small ledger go through everything that a large one goes through."""
    matching = MatchingService(frame, options)
    lon = (frame.area.lon_min + frame.area.lon_max) / 2
    lat = (frame.area.lat_min + frame.area.lat_max) / 2

    def place(number: int) -> Place:
        return Place(frame.project(lon + number * _STEP_DEG, lat))

    def item(number: int) -> LiveObject:
        words = tuple(sorted({_WORDS[number % 6], _WORDS[number // 6 % 6]}))
        point = place(number).point
        expiry_ms = _LATER_MS if number % 2 else 2 * _LATER_MS
        return LiveObject(number, lon + number * _STEP_DEG, lat, point, words, 0, expiry_ms, b"", "")

    specs = (TopK(_WORDS[:2], 2, 0.5), TopK(_WORDS[:2], 2, 0.5, region=RegionMode.ELLIPSE))
    for handle, spec in enumerate(specs, 1):
        matching.subscribe(handle, spec)
    matching.publish([item(number) for number in range(1, _OBJECTS)])
    matching.anchor({1: place(1), 2: place(1)}, Cause.SUBSCRIBED)
    places = {1: _uncertain(place(50)), 2: place(50)}
    matching.anchor(places, Cause.REPORTED, matching.look(places))
    matching.publish([item(50 + number)._replace(object_id=_OBJECTS + number) for number in range(40)])
    matching.anchor({1: place(51), 2: place(51)}, Cause.REPORTED)
    matching.retract(list(range(_OBJECTS, _OBJECTS + 40)))
    matching.search(specs[0], place(3).point)
    matching.snapshot(1, Cause.RESUMED)
    matching.advance(_LATER_MS)
    matching.advance(2 * _LATER_MS)
    for handle in (1, 2):
        matching.park(handle)
        matching.unsubscribe(handle)


def _uncertain(place: Place) -> Place:
    """Return a place that is not known exactly, of a device under way."""
    return place._replace(margin_m=5.0, heading_deg=90.0, speed_mps=10.0)
