"""The table of acts: the requests of one caller within its rights, and the server's objects."""

from __future__ import annotations

from typing import NamedTuple

from bench.errors import BenchError
from bench.neighbours import device_acts as device
from bench.neighbours import messages as m
from bench.neighbours import operator_acts as operator
from bench.neighbours import publisher_acts as publisher
from bench.neighbours import stranger_acts as stranger
from bench.neighbours.caller import Act
from bench.neighbours.device_acts import searching
from bench.neighbours.publisher_acts import publishing
from identity.principal import Role

COMMON = "hot"
_COPENHAGEN = "12.5,55.6,12.65,55.75"


class World(NamedTuple):
    """The objects that a server has before the callers act."""

    objects: int = 20_000
    word: str = COMMON
    """A keyword that all of them have."""
    payload_bytes: int = 64
    area: str = _COPENHAGEN
    """The server's area, in which the objects are distributed evenly."""


class NamedAct(NamedTuple):
    """A row of the table."""

    name: str
    role: Role | None
    """Role of the caller's token; None for a caller without one."""
    what: str
    act: Act
    world: World = World()


NOTHING = "nothing"
_DEVICE, _GATEWAY, _PUBLISHER = Role.DEVICE, Role.GATEWAY, Role.PUBLISHER
_MANY = World(objects=100_000)
_HONEST = World(word=m.HONEST)
_LARGE = World(objects=2_000, payload_bytes=16 * 1024)

_ACTS = (
    NamedAct(NOTHING, _DEVICE, "nothing", device.nothing),
    NamedAct(
        "report-ids",
        _DEVICE,
        "reports with a megabyte of repetitions of one id",
        device.reports_of_one_id,
    ),
    NamedAct(
        "range-polygons",
        _DEVICE,
        "subscriptions within polygons of 512 corners",
        device.range_polygons,
    ),
    NamedAct(
        "area-polygons",
        _PUBLISHER,
        "objects with areas of 63 corners, 100 per request",
        publishing(m.publication_of_areas),
    ),
    NamedAct(
        "fat-reports",
        _DEVICE,
        "reports that jump, of 64 circles with 1,000 matches each",
        device.fat_reports,
    ),
    NamedAct("hellos", _DEVICE, "hellos in a storm, to 64 circles", device.hellos),
    NamedAct(
        "fleet-subscribes",
        _GATEWAY,
        "subscribes of one device on a fleet stream",
        device.fleet_subscribes,
    ),
    NamedAct("durable", _DEVICE, "durable commands as fast as possible", device.durable),
    NamedAct(
        "search-matches",
        _DEVICE,
        "searches within 40 km, eight at once",
        searching(lambda caller: m.search(m.circle(caller.word, 40_000.0)), 8),
    ),
    NamedAct(
        "search-clauses",
        _DEVICE,
        "searches of 524,000 empty clauses",
        searching(lambda _: m.search_of_clauses()),
    ),
    NamedAct(
        "search-keywords",
        _DEVICE,
        "searches of 524,000 empty keywords",
        searching(lambda _: m.search_of_keywords()),
    ),
    NamedAct(
        "search-vertices",
        _DEVICE,
        "searches within a polygon of 524,000 empty vertices",
        searching(lambda _: m.search_of_vertices()),
    ),
    NamedAct(
        "search-empty-holes",
        _DEVICE,
        "searches within a polygon of 524,000 empty holes",
        searching(lambda _: m.search_of_holes()),
    ),
    NamedAct(
        "search-holes",
        _DEVICE,
        "searches within a polygon of 168 holes that touch",
        searching(lambda _: m.search(m.fan()), 8),
    ),
    NamedAct("retract-ids", _PUBLISHER, "retracts of 33 million ids", publisher.retracts),
    NamedAct(
        "area-vertices",
        _PUBLISHER,
        "messages of 32 MiB: an area of 16 million vertices",
        publishing(m.publication_of_vertices),
    ),
    NamedAct(
        "empty-objects",
        _PUBLISHER,
        "messages of 32 MiB: 8.4 million objects",
        publishing(m.publication_of_empty_objects),
    ),
    NamedAct(
        "empty-entries",
        _GATEWAY,
        "messages of 32 MiB: 16 million entries of a fleet",
        device.empty_entries,
    ),
    NamedAct(
        "silent-circles",
        _DEVICE,
        "64 circles of 50 km on a frequent keyword, then silence",
        device.silent_circles,
        _HONEST,
    ),
    NamedAct(
        "boolean-subscriptions",
        _DEVICE,
        "8 subscriptions of 64 clauses with 16 exclusions, one report",
        device.boolean_subscriptions,
        _MANY,
    ),
    NamedAct(
        "boolean-searches",
        _DEVICE,
        "searches of 64 clauses with 16 exclusions",
        searching(lambda caller: m.search(m.many_clauses(caller.word, 50_000.0)), 1),
        _MANY,
    ),
    NamedAct(
        "unread-searches",
        _DEVICE,
        "150 searches with responses that are never read",
        stranger.unread_searches,
        _LARGE,
    ),
    NamedAct(
        "payloads",
        _PUBLISHER,
        "objects of 16 KiB for a day",
        publishing(publisher.full_payloads),
    ),
    NamedAct(
        "payload-streams",
        _PUBLISHER,
        "objects of 16 KiB for a day, on 32 streams",
        publisher.many_streams,
    ),
    NamedAct(
        "watch",
        Role.OPERATOR,
        "a watch of the whole area, a frame a second",
        operator.watching(1_000),
        _MANY,
    ),
    NamedAct(
        "watch-fast",
        Role.OPERATOR,
        "a watch of the whole area, ten frames a second",
        operator.watching(100),
        _MANY,
    ),
    NamedAct("reflection", _DEVICE, "requests on two reflection streams", device.reflection),
    NamedAct("health-watches", _DEVICE, "300 health watch streams", device.health_watches),
    NamedAct("idle-connections", None, "1,000 connections without a call", stranger.idle_connections),
    NamedAct("checks", None, "health checks on one connection", stranger.checks),
    NamedAct(
        "unread-checks",
        None,
        "health checks with responses that are not read",
        stranger.unread_checks,
    ),
    NamedAct("attaches", None, "Attach calls without a token", stranger.attaches),
    NamedAct("attaches-reset", None, "the same, cancelled at once", stranger.attaches_reset),
    NamedAct(
        "attaches-junk",
        None,
        "Attach calls with a token of 3,000 letters",
        stranger.attaches_with_junk,
    ),
)
ACTS = {one.name: one for one in _ACTS}
"""Acts by name; the first does nothing."""


def chosen(names: tuple[str, ...]) -> list[NamedAct]:
    """Return the acts of these names, in the order of the table; all acts for no names.

    Raises
    ------
    BenchError
        If a name is unknown.
    """
    for name in names:
        if name not in ACTS:
            raise BenchError(f"act is {name!r}, must be one of {', '.join(ACTS)}")
    return [one for one in _ACTS if one.name in names or (not names and one.name != NOTHING)]
