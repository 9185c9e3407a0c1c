"""The audit of results that are too large to be sent."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pytest

from nearcast import Boolean, Bounds, Circle, Rectangle, Spec, SubscriptionState
from nearcast.limits import DEFAULT_LIMITS
from safe_region import oracle
from safe_region.earth.frame import Area, Frame
from safe_region.regions.ranges import RangeRegion, RectangleRegion
from safe_region.regions.region import Buffered
from simulator.replay.audit import Audit, Place, expected_list
from simulator.replay.published_objects import PublishedObjects

AREA = Area(14.0, 35.0, 14.2, 35.2)
FRAME = Frame.of(AREA)
HERE = Place("device", 14.1, 35.1)
MOST = DEFAULT_LIMITS.matches_max
NOW_MS = 1_000


class Shown(NamedTuple):
    """A result as a device shows it."""

    spec: Spec
    scored: list[tuple[int, float]]
    region: Any = None
    state: SubscriptionState = SubscriptionState.TOO_MANY
    id: int = 1
    idf_generation: int = 0


def published(count):
    dice = random.Random(4)
    found = PublishedObjects(FRAME)
    middle = FRAME.project(HERE.lon, HERE.lat)
    for number in range(count):
        x_m, y_m = middle.x_m + dice.uniform(-900.0, 900.0), middle.y_m + dice.uniform(-900.0, 900.0)
        found.objects[number] = oracle.OracleObject(
            number, x_m, y_m, frozenset({"tea"}), 0, NOW_MS + 1 + number
        )
    return found


def compare(objects, shown):
    return Audit(objects, 0, [objects.at(NOW_MS)]).compare(shown, HERE)


def matching(objects, spec, point):
    found = expected_list(spec, point, FRAME, objects.objects.values(), NOW_MS, objects.latest_id)
    return [one.object_id for one, _ in found]


def scored(ids):
    return [(one, 0.0) for one in ids]


WHOLE = Boolean("tea", Bounds(*AREA))


def test_a_part_of_a_result_that_is_too_large_is_right():
    objects = published(MOST + 200)
    ids = matching(objects, WHOLE, FRAME.project(HERE.lon, HERE.lat))
    assert compare(objects, Shown(WHOLE, scored(ids[:MOST]))) is None
    assert compare(objects, Shown(WHOLE, scored(ids[150:1_050]))) is None


@pytest.mark.parametrize("count", [0, 5, 899, MOST + 1])
def test_a_part_of_another_size_is_wrong(count):
    objects = published(MOST + 200)
    ids = matching(objects, WHOLE, FRAME.project(HERE.lon, HERE.lat))
    assert compare(objects, Shown(WHOLE, scored(ids[:count]))) is not None


def test_a_part_in_a_wrong_order_or_with_another_object_is_wrong():
    objects = published(MOST + 200)
    ids = matching(objects, WHOLE, FRAME.project(HERE.lon, HERE.lat))
    assert compare(objects, Shown(WHOLE, scored([ids[1], ids[0], *ids[2:950]]))) is not None
    assert compare(objects, Shown(WHOLE, scored([*ids[:950], 9_999]))) is not None


@pytest.mark.parametrize("ids", [(), (3,), tuple(range(100))])
def test_a_small_result_is_not_too_large(ids):
    objects = published(100)
    assert compare(objects, Shown(WHOLE, scored(ids))) is not None


def moving(shape):
    if shape == "circle":
        return Boolean("tea", Circle(800.0), moving=True), RangeRegion(800.0)
    spec = Boolean("tea", Rectangle(1_600.0, 1_300.0), moving=True)
    return spec, RectangleRegion(1_600.0, 1_300.0)


def held_at(region, objects, ids, point):
    rows = [objects.objects[one] for one in ids]
    region.update(
        point,
        0.0,
        True,
        MOST,
        [Buffered(one.object_id, one.x_m, one.y_m, 0.0, one.expiry_ms) for one in rows],
    )
    return region


@pytest.mark.parametrize("shape", ["circle", "rectangle"])
def test_a_moving_range_is_judged_where_the_server_evaluated_it(shape):
    objects = published(1_500)
    spec, region = moving(shape)
    here = FRAME.project(HERE.lon, HERE.lat)
    anchor = here._replace(x_m=here.x_m + 60.0)
    there = matching(objects, spec, anchor)
    held_at(region, objects, there[:MOST], anchor)
    ids = [one for _, one in region.evaluate(*here, NOW_MS).best]
    assert 0 < len(ids) < MOST
    assert compare(objects, Shown(spec, scored(ids), region)) is None
    assert compare(objects, Shown(spec, scored(ids))) is None  # in another program
    for wrong in ([], ids[1:], [*ids, there[-1]]):
        assert compare(objects, Shown(spec, scored(wrong), region)) is not None


@pytest.mark.parametrize("shape", ["circle", "rectangle"])
@pytest.mark.parametrize("count", [0, 50])
def test_a_small_moving_range_is_not_too_large(shape, count):
    objects = published(100)
    spec, region = moving(shape)
    here = FRAME.project(HERE.lon, HERE.lat)
    held_at(region, objects, matching(objects, spec, here)[:count], here)
    ids = [one for _, one in region.evaluate(*here, NOW_MS).best]
    assert compare(objects, Shown(spec, scored(ids), region)) is not None
