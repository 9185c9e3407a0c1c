"""The rules of relations: forbidden turns, and places that are areas with parts or holes.

Pure functions over the tags and members of one relation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from simulator.maps.places import PlaceText, place_text

NODE, WAY = "n", "w"
"""The kinds of members."""

_KEYS = ("restriction:motorcar", "restriction:motor_vehicle", "restriction:vehicle", "restriction")
"""The keys that name the turn that is forbidden to cars, most specific first."""

_CARS = frozenset({"motorcar", "motor_vehicle", "vehicle"})
"""The values of `except` with which cars may turn nevertheless."""

_NO, _ONLY = "no_", "only_"


class Member(NamedTuple):
    """A member of a relation: node or way, its id, and its role."""

    kind: str
    ref: int
    role: str


class Restriction(NamedTuple):
    """Forbidden turns.

    Parameters
    ----------
    from_ways, to_ways
        The ways before and after the turn; more than one each for a ban of entry or exit.
    via_node
        The node of the turn; None if over a way.
    via_ways
        The ways over which the turn leads; empty if at a node.
    is_only
        Whether this turn is the only one that is allowed.
    """

    from_ways: tuple[int, ...]
    to_ways: tuple[int, ...]
    via_node: int | None
    via_ways: tuple[int, ...]
    is_only: bool


class Outline(NamedTuple):
    """A place that is an area: its text, and the ways around its parts and its holes."""

    number: int
    text: PlaceText
    outer_ways: tuple[int, ...]
    inner_ways: tuple[int, ...]


def restriction_of(tags: Mapping[str, str], members: Sequence[Member]) -> Restriction | None:
    """Return the turns that a relation of type `restriction` forbids to cars; None if there are none.

    Conditional restrictions (by the time of day, by weight) are ignored, and those for other users than
    cars.

    Parameters
    ----------
    tags
        All tags of the relation.
    members
        All its members.
    """
    value = next((tags[key] for key in _KEYS if key in tags), "")
    excepted = {one.strip() for one in tags.get("except", "").split(";")}
    if not value.startswith((_NO, _ONLY)) or excepted & _CARS:
        return None

    def ways(role: str) -> tuple[int, ...]:
        return tuple(one.ref for one in members if one.kind == WAY and one.role == role)

    nodes = [one.ref for one in members if one.kind == NODE and one.role == "via"]
    via_ways = ways("via")
    found = Restriction(
        ways("from"), ways("to"), nodes[0] if nodes else None, via_ways, value.startswith(_ONLY)
    )
    has_via = len(nodes) == (0 if via_ways else 1)
    return found if found.from_ways and found.to_ways and has_via else None


def outline_of(number: int, tags: Mapping[str, str], members: Sequence[Member]) -> Outline | None:
    """Return the place that a relation of type `multipolygon` describes; None if it is not a place.

    Parameters
    ----------
    number
        The number of the relation.
    tags
        All its tags.
    members
        All its members; ways without a role count as outer ones.
    """
    text = place_text({key: value for key, value in tags.items() if key != "type"})
    outer = tuple(one.ref for one in members if one.kind == WAY and one.role in {"outer", ""})
    inner = tuple(one.ref for one in members if one.kind == WAY and one.role == "inner")
    return Outline(number, text, outer, inner) if text is not None and outer else None
