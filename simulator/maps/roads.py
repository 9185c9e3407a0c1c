"""The rules of roads: the users, directions and speeds that the tags of a way allow.

Pure functions over the tags of one way. A row of the roads table is open to the users of its class, so
permissions are expressed by the class. A street that is closed to cars is a cycleway, and a street that
is closed to bicycles too is a footway. If pedestrians may walk against a one-way street, the way back is
a footway. Left out: barriers on nodes, times of day, lanes, weights.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from simulator.network.traffic import SPEEDS_MPS, RoadClass

_KMH = 1.0 / 3.6
_MPH = 0.44704

SPEED_MPS_MIN = 5.0 * _KMH
SPEED_MPS_MAX = 150.0 * _KMH
"""Speeds of signs are clamped to these limits; a sign of 0 is ignored."""


class _Kind(NamedTuple):
    """The meaning of a value of `highway`."""

    road_class: RoadClass
    speed_kmh: float | None = None
    """The speed without a sign; None is the default of the class."""

    def speed_mps(self, road_class: RoadClass) -> float:
        """Return the speed without signs, on the way as a road of this class."""
        if self.speed_kmh is None or (self.road_class is not road_class):
            return SPEEDS_MPS[road_class]
        return self.speed_kmh * _KMH


_KINDS = {
    "motorway": _Kind(RoadClass.MOTORWAY),
    "motorway_link": _Kind(RoadClass.MOTORWAY, 60.0),
    "trunk": _Kind(RoadClass.PRIMARY, 80.0),
    "trunk_link": _Kind(RoadClass.PRIMARY, 50.0),
    "primary": _Kind(RoadClass.PRIMARY),
    "primary_link": _Kind(RoadClass.PRIMARY, 50.0),
    "secondary": _Kind(RoadClass.SECONDARY),
    "secondary_link": _Kind(RoadClass.SECONDARY, 40.0),
    "tertiary": _Kind(RoadClass.TERTIARY),
    "tertiary_link": _Kind(RoadClass.TERTIARY, 30.0),
    "unclassified": _Kind(RoadClass.RESIDENTIAL, 40.0),
    "residential": _Kind(RoadClass.RESIDENTIAL),
    "road": _Kind(RoadClass.RESIDENTIAL),
    "living_street": _Kind(RoadClass.RESIDENTIAL, 10.0),
    "service": _Kind(RoadClass.SERVICE),
    "track": _Kind(RoadClass.SERVICE),
    "cycleway": _Kind(RoadClass.CYCLEWAY),
    "path": _Kind(RoadClass.FOOTWAY),
    "bridleway": _Kind(RoadClass.FOOTWAY),
    "pedestrian": _Kind(RoadClass.FOOTWAY),
    "footway": _Kind(RoadClass.FOOTWAY),
    "steps": _Kind(RoadClass.FOOTWAY, 2.0),
}
"""Other values (under construction, raceways, platforms, ...) are not roads."""

HIGHWAYS = tuple(_KINDS)
"""Values of `highway` that are roads."""

_CAR = "car"
_BICYCLE = "bicycle"
_FOOT = "foot"

_KEYS = {
    _CAR: ("motorcar", "motor_vehicle", "vehicle", "access"),
    _BICYCLE: ("bicycle", "vehicle", "access"),
    _FOOT: ("foot", "access"),
}
"""The keys that apply to each user, most specific first."""

_CLOSED = frozenset(
    {
        "no",
        "private",
        "permit",
        "military",
        "emergency",
        "agricultural",
        "forestry",
        "delivery",
        "bus",
        "psv",
        "use_sidepath",
        "dismount",
        "discouraged",
    }
)
_OPEN = frozenset({"yes", "designated", "permissive", "official"})

_ROUNDABOUTS = frozenset({"roundabout", "circular"})
_FORWARDS = frozenset({"yes", "true", "1"})
_BACKWARDS = frozenset({"-1", "reverse"})

_SPEED = re.compile(r"(\d+(?:\.\d+)?)\s*(km/h|kmh|kph|mph)?")


class Lane(NamedTuple):
    """One direction of a way.

    Parameters
    ----------
    road_class
        Its class, which determines its users.
    speed_mps
        Its speed limit.
    """

    road_class: RoadClass
    speed_mps: float


class Lanes(NamedTuple):
    """Both directions of a way, as it was drawn; None if it is closed to all."""

    forward: Lane | None
    backward: Lane | None


def lanes(tags: Mapping[str, str]) -> Lanes:
    """Return the lane that the tags of a way allow in each direction.

    Parameters
    ----------
    tags
        All tags of the way.
    """
    kind = _KINDS.get(tags.get("highway", ""))
    if kind is None:
        return Lanes(None, None)
    forwards, backwards = directions(tags)
    return Lanes(
        _lane(kind, tags, "forward", is_open=forwards), _lane(kind, tags, "backward", is_open=backwards)
    )


def _lane(kind: _Kind, tags: Mapping[str, str], side: str, *, is_open: bool) -> Lane | None:
    """Return one direction; if it is not open to vehicles, the lane of the remaining users."""
    users = _users(kind.road_class, tags)
    road_class = _class_for(kind, users if is_open else users & _against(tags), tags)
    if road_class is None:
        return None
    return Lane(road_class, _speed_mps(kind, road_class, tags, side))


def directions(tags: Mapping[str, str]) -> tuple[bool, bool]:
    """Return whether vehicles may go forwards and backwards.

    Without `oneway`, roundabouts and motorways are one-way. Lanes that change their direction over
    the day count as open both ways.
    """
    value = tags.get("oneway", "")
    if value in _FORWARDS:
        return True, False
    if value in _BACKWARDS:
        return False, True
    is_implied = tags.get("junction") in _ROUNDABOUTS or tags.get("highway") == "motorway"
    return True, bool(value) or not is_implied


def maxspeed_mps(value: str) -> float | None:
    """Return the speed limit of a sign; None if it names none.

    Numbers are km/h unless they have the unit mph. Words (`none`, `walk`, `signals`), zones (`RU:urban`)
    and lists are ignored: the default of the class holds.
    """
    found = _SPEED.fullmatch(value.strip().lower())
    if found is None:
        return None
    speed_mps = float(found[1]) * (_MPH if found[2] == "mph" else _KMH)
    if speed_mps == 0.0:
        return None
    return min(max(speed_mps, SPEED_MPS_MIN), SPEED_MPS_MAX)


def _users(road_class: RoadClass, tags: Mapping[str, str]) -> frozenset[str]:
    """Return the users of a way: those usual for its class, changed by the most specific key."""
    if road_class is RoadClass.MOTORWAY or tags.get("motorroad") == "yes":
        usual = {_CAR}
    elif road_class is RoadClass.CYCLEWAY:
        usual = {_BICYCLE, _FOOT}
    elif road_class is RoadClass.FOOTWAY:
        usual = {_FOOT}
    else:
        usual = {_CAR, _BICYCLE, _FOOT}
    found = set(usual)
    for user, keys in _KEYS.items():
        value = next((tags[key] for key in keys if key in tags), "")
        if value in _CLOSED:
            found.discard(user)
        elif user == _BICYCLE and tags.get(_BICYCLE) in _OPEN and usual == {_FOOT}:
            # Cars never gain a way: a square with deliveries is not a through road.
            found.add(user)
    return frozenset(found)


def _against(tags: Mapping[str, str]) -> frozenset[str]:
    """Return the users that may go against a one-way street."""
    found = set()
    if tags.get("oneway:foot") not in _FORWARDS:
        found.add(_FOOT)
    if tags.get("oneway:bicycle") == "no" or tags.get("cycleway", "").startswith("opposite"):
        found.add(_BICYCLE)
    return frozenset(found)


def _class_for(kind: _Kind, users: frozenset[str], tags: Mapping[str, str]) -> RoadClass | None:
    """Return the class of road that is open to these users.

    A road that is open to cars also admits bicycles and pedestrians, unless it is a motorway or, by
    `motorroad`, equivalent to one.
    """
    if _CAR in users:
        return RoadClass.MOTORWAY if tags.get("motorroad") == "yes" else kind.road_class
    if _BICYCLE in users:
        return RoadClass.CYCLEWAY
    return RoadClass.FOOTWAY if _FOOT in users else None


def _speed_mps(kind: _Kind, road_class: RoadClass, tags: Mapping[str, str], side: str) -> float:
    # Signs are for cars.
    if road_class not in {RoadClass.CYCLEWAY, RoadClass.FOOTWAY}:
        for key in (f"maxspeed:{side}", "maxspeed"):
            speed_mps = maxspeed_mps(tags.get(key, ""))
            if speed_mps is not None:
                return speed_mps
    return kind.speed_mps(road_class)
