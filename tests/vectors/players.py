"""Carry out the steps of cases with the device-side core of the Python SDK."""

from __future__ import annotations

import re

from nearcast.errors import RefusedError
from nearcast.expressions import clauses_of
from nearcast.geofence import ground_radius_m
from nearcast.model import LiveObject
from nearcast.protocol import converters
from nearcast.protocol.clock import Clock
from nearcast.protocol.dwell import DwellTimers
from nearcast.protocol.location import Location
from nearcast.protocol.specs import spec_from
from nearcast.v1 import geometry_pb2, objects_pb2, subscriptions_pb2
from nearcast.wire.geometry import area_from
from safe_region.earth.frame import Point
from safe_region.earth.ground import ground_distance_m
from safe_region.geometry.areas import area_distance, area_meets_box, plane_area
from safe_region.geometry.exact_geometry import on_grid, orientation
from safe_region.geometry.shapes import PolygonShape, RectangleShape
from safe_region.regions.anchored import AnchoredRegion, StationaryRegion
from safe_region.regions.ranges import FixedRegion, RangeRegion, RectangleRegion
from safe_region.regions.region import Buffered
from safe_region.scoring.keywords import normalised_keyword
from tests.vectors.notation import double, ids, read_double, read_message


class Player:
    """Calls the method that a step names, with the other fields of the step."""

    def __call__(self, step):
        return getattr(self, step.pop("op"))(**step)


class FramePlayer(Player):
    def __init__(self, given):
        self._frame = converters.frame(read_message(given["frame"], geometry_pb2.Frame))

    def project(self, lon, lat):
        point = self._frame.project(lon, lat)
        return {"x_m": point.x_m, "y_m": point.y_m, "is_inside": self._frame.covers(lon, lat)}


class AreaPlayer(Player):
    def __init__(self, given):
        self._area = read_shape(given["area"]) if "area" in given else None

    def orientation(self, a, b, c):
        (grid,) = on_grid([(a, b, c)])
        turn = orientation(*grid)
        return (turn > 0) - (turn < 0)

    def distance(self, x_m, y_m):
        return area_distance(self._area, x_m, y_m)

    def meets(self, box):
        return area_meets_box(self._area, RectangleShape(*box))

    def project(self, frame, area):
        plane = converters.frame(read_message(frame, geometry_pb2.Frame))
        return shape(plane_area(area_from(read_message(area, objects_pb2.ObjectArea)), plane))


class RegionPlayer(Player):
    def __init__(self, given):
        match given["region"]:
            case "top_k":
                self._region = AnchoredRegion(given["k"])
            case "stationary":
                self._region = StationaryRegion(given["k"])
            case "circle":
                self._region = RangeRegion(given["radius_m"])
            case "rectangle":
                self._region = RectangleRegion(given["width_m"], given["height_m"])
            case "fixed":
                self._region = FixedRegion()

    def update(self, anchor, bound, add=(), drop=(), time_ms="0", *, is_snapshot=False):
        """Apply a delta."""
        region, anchor, drop = self._region, Point(*anchor), list(map(int, drop))
        if is_snapshot:
            region.buffer.clear()
        add = list(map(buffered, add))
        if isinstance(region, AnchoredRegion):
            region.update(anchor, read_double(bound["length_m"]), int(bound["object_id"]), add, drop)
        else:
            slack_m, matches_max = read_double(bound["slack_m"]), bound["matches_max"]
            region.update(anchor, slack_m, bound["too_many"], matches_max, add, drop)
        if isinstance(region, StationaryRegion):
            region.settle(int(time_ms), drop, is_snapshot=is_snapshot)
        return ids(region.buffer)

    def evaluate(self, x_m, y_m, now_ms, uncertainty_m=0.0):
        found = self._region.evaluate(x_m, y_m, int(now_ms), uncertainty_m)
        flags = ("exact", "is_lacking", "is_capped", "is_due")
        return {
            "best": [[length_m, str(one)] for length_m, one in found.best],
            "margin_m": double(found.margin_m),
            **{name: bool(getattr(found, name)) for name in flags},
        }

    def forget_expired(self, now_ms):
        return ids(self._region.forget_expired(int(now_ms)))


class DwellPlayer(Player):
    """Timers about a circle that moves with the device."""

    def __init__(self, given):
        self._region = RangeRegion(given["radius_m"])
        self._timers = DwellTimers(given["dwell_ms"], self._region)
        self._objects = {}

    def move(self, now_ms, x_m, y_m):
        self._timers.move(int(now_ms), Point(x_m, y_m), self._objects)
        return self._state(int(now_ms))

    def hold(self, now_ms, x_m, y_m, add=(), drop=()):
        for one in add:
            created_ms, expiry_ms = int(one["created_ms"]), int(one["expiry_ms"])
            self._objects[int(one["id"])] = LiveObject(
                int(one["id"]), 0.0, 0.0, frozenset(), created_ms, expiry_ms, b"", ""
            )
        entries = list(map(buffered, add))
        self._region.hold(self._region.anchor, entries, map(int, drop))
        added = [one.object_id for one in entries]
        self._timers.hold(int(now_ms), Point(x_m, y_m), self._objects, added)
        return self._state(int(now_ms))

    def forget(self, now_ms, ids):
        self._timers.forget(map(int, ids))
        return self._state(int(now_ms))

    def pass_time(self, now_ms):
        has_ended = self._timers.pass_time(int(now_ms))
        return {"has_ended": has_ended, **self._state(int(now_ms))}

    def _state(self, now_ms):
        over = [one for one in self._region.buffer if self._timers.is_over(one, now_ms)]
        return {"over": ids(over), "next_ms": str(self._timers.next_ms())}


class ClockPlayer(Player):
    def __init__(self, given):
        self._steady_ms = int(given["steady_ms"])
        self._clock = Clock(lambda: self._steady_ms)
        self._clock.on_leap = self._leap
        self._has_leaped = False

    def _leap(self):
        self._has_leaped = True

    def welcome(self, time_ms, *, is_virtual):
        self._clock.adjust(int(time_ms), is_virtual=is_virtual)
        return self._state()

    def observe(self, time_ms):
        self._clock.observe(int(time_ms))
        return self._state()

    def wait(self, ms):
        self._steady_ms += ms
        return self._state()

    def _state(self):
        has_leaped, self._has_leaped = self._has_leaped, False
        clock = self._clock
        return {"now_ms": str(clock.now_ms()), "steady_ms": str(clock.steady_ms()), "leaped": has_leaped}


class KeywordPlayer(Player):
    def __init__(self, _given):
        pass

    def normalise(self, keyword):
        return normalised_keyword(keyword)


class ExpressionPlayer(Player):
    def __init__(self, _given):
        pass

    def clauses(self, text):
        try:
            found = clauses_of(text)
        except RefusedError as error:
            at = re.search(r"at character (\d+)", error.limit)
            return {"refused": {"field": error.field, "character": int(at[1]) if at else None}}
        return [{"required": sorted(one.required), "excluded": sorted(one.excluded)} for one in found]


class SpecPlayer(Player):
    def __init__(self, _given):
        pass

    def read(self, spec):
        return {"is_known": _read_spec(spec) is not None}

    def compare(self, one, other):
        return {"is_same": _read_spec(one) == _read_spec(other)}


class GroundPlayer(Player):
    def __init__(self, _given):
        pass

    def distance(self, lon, lat, other_lon, other_lat):
        return ground_distance_m(lon, lat, other_lon, other_lat)

    def radius(self, frame, lon, lat, radius_m):
        plane = converters.frame(read_message(frame, geometry_pb2.Frame))
        return double(ground_radius_m(plane, lon, lat, read_double(radius_m)))

    def blur(self, frame, lon, lat, privacy_radius_m, random):
        """Return the position that a private device sends, given two numbers at random from [0, 1)."""
        plane = converters.frame(read_message(frame, geometry_pb2.Frame))
        location = Location(lon, lat, 0.0, privacy_radius_m, _Given(random))
        shared = location.shared(plane)
        return {"lon": shared.lon, "lat": shared.lat, "margin_m": shared.margin_m}


class _Given:
    """Numbers that are given, in place of random ones."""

    def __init__(self, numbers):
        self._numbers = iter(numbers)

    def random(self):
        return next(self._numbers)


def _read_spec(spec):
    return spec_from(read_message(spec, subscriptions_pb2.SubscriptionSpec))


def buffered(entry) -> Buffered:
    """Read an object of a buffer."""
    area = read_shape(entry["area"]) if "area" in entry else None
    expiry_ms = int(entry["expiry_ms"])
    return Buffered(int(entry["id"]), entry["x_m"], entry["y_m"], entry.get("r_m", 0.0), expiry_ms, area)


def read_shape(value):
    """Read an area on the plane."""
    if "rectangle" in value:
        return RectangleShape(*value["rectangle"])
    return PolygonShape((tuple(map(tuple, value["polygon"])),))


def shape(area):
    """Write an area on the plane."""
    if isinstance(area, RectangleShape):
        return {"rectangle": [area.x1_m, area.y1_m, area.x2_m, area.y2_m]}
    return {"polygon": [list(one) for one in area.rings[0]]}
