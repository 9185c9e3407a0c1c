"""Bounds of boolean subscriptions, and what the server does about those with too many matches."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from engine import EngineOptions
from engine.contracts import CHANGE_DTYPE
from nearcast.errors import Reason, RefusedError
from safe_region.earth.frame import Area, Frame
from safe_region.earth.shapes import Circle, Polygon
from safe_region.geometry import edge_sweep, exact_geometry
from server import command as c
from server.clock import Clock
from server.commands.areas import checked_area
from server.commands.plan import Plan
from server.commands.planner import Planner
from server.core import matching_service
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.core.specs.boolean import BooleanKind
from server.limits import Limits
from server.model import Boolean, Cause, Clause, DropReason, LiveObject, NewObject, Place
from server.session import Outbox
from server.session.events import VersionedDelta

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
HERE = Place(14.5, 35.5)
LIMITS = Limits(matches_max=10)
CIRCLE = Boolean((Clause(("tea",), ()),), Circle(5_000.0, (14.5, 35.5)), False)


def coordinator_of(*, virtual_time):
    return Coordinator(FRAME, LIMITS, EngineOptions(matches_max=10), clock=Clock(is_virtual=virtual_time))


def publish(coordinator, count, near_deg=0.01, words=("tea",)):
    chance, objects = random.Random(count), []
    for _ in range(count):
        lon, lat = 14.5 + chance.uniform(-near_deg, near_deg), 35.5 + chance.uniform(-near_deg, near_deg)
        number = coordinator.take_object_id()
        point = FRAME.project(lon, lat)
        objects.append(LiveObject(number, lon, lat, point, words, 0, 10**9, b"", "", None))
    coordinator.publish(objects, [])


def attached(coordinator, *specs):
    """Attach a device with subscriptions; return its stream."""
    line, batch = Outbox(), EvaluationBatch()
    coordinator.hello(c.Hello(line, "d", b"n", 0, HERE), batch)
    coordinator.evaluate(batch)
    for number, spec in enumerate(specs, start=1):
        batch = EvaluationBatch()
        coordinator.subscribe(coordinator.sessions["d"], number, spec, HERE, batch)
        coordinator.evaluate(batch)
    sent(coordinator, line)
    return line


def sent(coordinator, line):
    """Return the deltas that wait for a stream."""
    events = (event for _, event in coordinator.router.take(line, 1_000))
    return [event.delta for event in events if isinstance(event, VersionedDelta)]


def nearest(coordinator):
    points = {one.object_id: one.point for one in coordinator.matching.objects.values()}
    middle = FRAME.project(14.5, 35.5)
    return sorted(points, key=lambda one: (math.dist(points[one], middle), one))[:10]


# -- too many matches ----------------------------------------------------------------------------


def test_in_real_time_a_device_with_too_many_is_updated_once_a_second():
    coordinator = coordinator_of(virtual_time=False)
    publish(coordinator, 40)
    coordinator.advance(10_000)
    line = attached(coordinator, CIRCLE)
    for step in range(1, 50):
        publish(coordinator, 2, near_deg=0.001 / step)
        coordinator.advance(10_000 + step)
    assert sent(coordinator, line) == []
    assert coordinator.matching.next_due_ms() == 11_000
    coordinator.advance(11_000)
    (delta,) = sent(coordinator, line)
    assert delta.cause is Cause.REFILLED
    held = sorted(coordinator.matching.engine.held(coordinator.sessions["d"].handles[1])[0].tolist())
    assert held == sorted(nearest(coordinator))
    assert coordinator.matching.next_due_ms() is None
    coordinator.check()


def test_in_virtual_time_it_is_updated_when_time_advances():
    coordinator = coordinator_of(virtual_time=True)
    publish(coordinator, 40)
    line = attached(coordinator, CIRCLE)
    publish(coordinator, 5, near_deg=0.0001)
    assert sent(coordinator, line) == []
    coordinator.advance(1)
    assert [delta.cause for delta in sent(coordinator, line)] == [Cause.REFILLED]


@pytest.mark.parametrize("virtual_time", [False, True])
def test_a_barrier_brings_all_up_to_date(virtual_time):
    coordinator = coordinator_of(virtual_time=virtual_time)
    publish(coordinator, 40)
    line = attached(coordinator, CIRCLE)
    publish(coordinator, 5, near_deg=0.0001)
    assert sent(coordinator, line) == []
    (plan,) = Planner(coordinator).plan_batch([c.Sync()])
    plan.apply(EvaluationBatch())
    (delta,) = sent(coordinator, line)
    assert len(delta.add) == len(delta.drop) == 5


def test_of_those_at_the_very_place_of_the_device_most_may_go():
    """The farthest that it holds is at no distance, and twice as far would be no farther."""
    coordinator = coordinator_of(virtual_time=True)
    publish(coordinator, 20, near_deg=0.0)
    publish(coordinator, 400)
    line = attached(coordinator, CIRCLE)
    coordinator.retract(list(range(1, 16)))
    coordinator.advance(1)
    (delta,) = [one for one in sent(coordinator, line) if one.cause is Cause.REFILLED]
    assert len(delta.add) == 10, "all that it held is gone"
    held = coordinator.matching.engine.held(coordinator.sessions["d"].handles[1])[0].tolist()
    assert sorted(held) == sorted(nearest(coordinator))
    coordinator.check()


# -- bounds of specs -----------------------------------------------------------------------------


def polygon(holes, corners=3):
    """A square with holes in rows, which do not touch."""
    found = []
    for i in range(holes):
        lon, lat = 14.2 + i % 8 * 0.05, 35.2 + i // 8 * 0.05
        turns = (2 * math.pi * corner / corners for corner in range(corners))
        found.append(tuple((lon + math.cos(a) / 100, lat + math.sin(a) / 100) for a in turns))
    return Polygon(((14.1, 35.1), (14.8, 35.1), (14.8, 35.8), (14.1, 35.8)), tuple(found))


def checked(where, limits=None):
    return BooleanKind.checked(Boolean((Clause(("tea",), ()),), where, False), limits or Limits(), FRAME)


def test_holes_are_bounded():
    assert checked(polygon(16)).range == polygon(16)
    with pytest.raises(RefusedError) as found:
        checked(polygon(17))
    assert found.value.reason is Reason.INVALID_FIELD
    assert found.value.field == "spec.boolean.polygon.holes"
    assert str(found.value) == "spec.boolean.polygon.holes is 17 holes, must be at most 16 holes"


@pytest.fixture
def no_plain_python(monkeypatch):
    """What checks polygons in plain Python ends the test: it takes a hundred times as long."""

    def fail(*_arguments):
        raise AssertionError("a polygon is validated in plain Python")

    for module in (edge_sweep, exact_geometry):
        monkeypatch.setattr(module, "orientation", fail)
    for name in ("on_grid", "side_of_ring"):
        monkeypatch.setattr(exact_geometry, name, fail)
    monkeypatch.setattr("safe_region.geometry.shapes.on_grid", fail)
    monkeypatch.setattr("safe_region.geometry.polygon_validity.on_grid", fail)


@pytest.mark.usefixtures("no_plain_python")
def test_polygons_are_validated_by_kernels():
    checked(polygon(16, 31))
    crossing = Polygon(((14.1, 35.1), (14.2, 35.2), (14.2, 35.1), (14.1, 35.2)))
    with pytest.raises(RefusedError, match="edges 0 and 2 of ring 0 meet"):
        checked(crossing)
    lon, lat = checked_area(Polygon(polygon(1, 60).holes[0]), Limits(), FRAME, "area")
    assert (lon, lat) == pytest.approx((14.2, 35.2), abs=1e-3)
    with pytest.raises(RefusedError, match="edges 0 and 2 of ring 0 meet"):
        checked_area(crossing, Limits(), FRAME, "area")


def test_a_ring_that_repeats_its_first_corner_is_refused():
    outer = ((14.1, 35.1), (14.2, 35.2), (14.2, 35.1), (14.1, 35.1))
    limit = r"vertices 3 and 0 of ring 0 are equal, must be .*; a ring closes by itself"
    with pytest.raises(RefusedError, match=limit):
        checked(Polygon(outer))


def test_corners_next_to_nothing_are_0():
    frame = Frame.of(Area(-1.0, -1.0, 1.0, 1.0))
    tiny = 5e-324
    where = Polygon(((-0.1, -0.1), (0.1, tiny), (0.1, 0.1)))
    spec = Boolean((Clause(("tea",), ()),), where, False)
    found = BooleanKind.checked(spec, Limits(), frame).range
    assert found == Polygon(((-0.1, -0.1), (0.1, 0.0), (0.1, 0.1)))


def wide(number, count=64):
    """A subscription with so many clauses of 32 keywords."""
    clauses = (
        Clause(
            tuple(sorted(f"{number}-{i}-{j}" for j in range(16))),
            tuple(sorted(f"not-{number}-{i}-{j}" for j in range(16))),
        )
        for i in range(count)
    )
    return Boolean(tuple(clauses), Circle(500.0, None), True)


def subscribe(planner, coordinator, line, number, spec):
    (plan,) = planner.plan_batch([c.Subscribe(line, "d", number, spec, HERE)])
    if isinstance(plan, Plan):
        batch = EvaluationBatch()
        plan.apply(batch)
        coordinator.evaluate(batch)
    return plan


def test_keywords_in_clauses_of_a_device_are_bounded():
    coordinator = Coordinator(FRAME, Limits(), clock=Clock(is_virtual=True))
    line, planner = attached(coordinator), Planner(coordinator)
    for number in (1, 2):
        assert isinstance(subscribe(planner, coordinator, line, number, wide(number)), Plan)
    refused = subscribe(planner, coordinator, line, 3, CIRCLE)
    assert isinstance(refused, RefusedError)
    assert (refused.reason, refused.field) == (Reason.TOO_MANY, "spec.boolean.clauses")
    assert "4097 keywords in clauses of the device" in str(refused)
    assert "at most 4096" in str(refused)
    assert set(coordinator.sessions["d"].handles) == {1, 2}
    # What takes the place of one of them may have as many; what is there may be asked for again.
    assert isinstance(subscribe(planner, coordinator, line, 2, wide(4, 63)), Plan)
    assert isinstance(subscribe(planner, coordinator, line, 2, wide(4, 63)), Plan)
    assert isinstance(subscribe(planner, coordinator, line, 3, CIRCLE), Plan)


# -- deltas of many changes ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_many_changes_make_the_deltas_that_few_do(seed, monkeypatch):
    chance = random.Random(seed)
    coordinator = coordinator_of(virtual_time=True)
    publish(coordinator, 60)
    matching, ids = coordinator.matching, list(coordinator.matching.objects)
    rows = []
    for handle in range(1, 6):
        some = chance.sample(ids, 30)
        count = chance.choice((0, 10, 30))
        rows += [(handle, one, 0.0, 1) for one in some[:count]]
        share_m = chance.choice((0.0, 2.5))
        rows += [(handle, one, share_m, 0) for one in some[count:]]
    first, second = (np.array(part, dtype=CHANGE_DTYPE) for part in (rows, rows[::-1]))
    found = []
    for many in (1, 10**9):
        monkeypatch.setattr(matching_service, "_MANY", many)
        deltas = {}
        matching.note(first, Cause.REPORTED, DropReason.OUT_OF_REACH, deltas)
        found.append({handle: (list(one.add), dict(one.drop)) for handle, one in deltas.items()})
        matching.note(second, Cause.REPORTED, DropReason.OUT_OF_REACH, deltas)
        found[-1]["then"] = {handle: (one.add, one.drop) for handle, one in deltas.items()}
    assert found[0] == found[1]


def test_an_object_of_a_request_is_checked_as_before():
    """Its point is that of its polygon."""
    new = NewObject(0.0, 0.0, ("tea",), 1, b"", "", Polygon(polygon(1, 5).holes[0]))
    assert FRAME.covers(*checked_area(new.area, Limits(), FRAME, "area"))
