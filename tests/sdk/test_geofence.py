"""Circles of silence for the geofencing of phones, and reports before the edge."""

from __future__ import annotations

import math
import random

import pytest

from nearcast import SubscriptionState, TopK
from nearcast.geofence import ground_radius_m
from safe_region.earth.frame import Area, Frame
from safe_region.earth.ground import ground_distance_m
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity
from tests.sdk.test_privacy import FRAME, expected, ids, published
from tests.support.draws import PLANE
from tests.support.geodesics import step_from
from tests.support.world import World

# One metre per degree: a circle on the plane has no counterpart on the ground.
RADIUS_OF = "nearcast.protocol.device_session.ground_radius_m"


@pytest.mark.parametrize("seed", range(40))
async def test_within_the_circle_the_device_never_needs_to_report(seed, monkeypatch):
    monkeypatch.setattr(RADIUS_OF, lambda _frame, _lon, _lat, radius_m: radius_m)
    world = World(seed, buffer_extra=seed % 5)
    device = world.add_device()
    for _ in range(30):
        world.publish()
    session = device.session
    for _ in range(2):
        specs = iter(lambda: world.draws.spec(is_anchored=device.is_vague), None)
        session.subscribe(next(spec for spec in specs if spec.region is not RegionMode.STATIONARY))
    await world.deliver()
    tried = 0
    for _ in range(60):
        world.move(device)
        await world.deliver()
        fence = session.geofence()
        assert (fence.lon, fence.lat) == (device.lon, device.lat)
        radius_m = min(fence.radius_m, 20.0)
        if radius_m == 0.0:
            continue
        tried += 1
        reports, accuracy_m = session.counters.reports, session.location.accuracy_m
        for _ in range(10):
            angle = world.random.uniform(0.0, 2.0 * math.pi)
            share = world.random.choice((world.random.random(), 1.0 - 1e-9))
            lon = fence.lon + share * radius_m * math.cos(angle) / PLANE.x_m_per_deg
            lat = fence.lat + share * radius_m * math.sin(angle) / PLANE.y_m_per_deg
            session.move(lon, lat, accuracy_m=accuracy_m)
            assert session.counters.reports == reports
        session.move(fence.lon, fence.lat, accuracy_m=accuracy_m)
        assert session.counters.reports == reports
        await world.audit()
    assert tried > 10
    await world.stop()


@pytest.mark.parametrize("seed", range(20))
def test_on_the_ground_the_circle_is_not_larger(seed):
    """A step along a geodesic of the ellipsoid stays within the circle on the plane."""
    chance = random.Random(seed)
    south = chance.choice((0.0, -1.0, chance.uniform(-80.0, 78.0)))
    frame = Frame.of(Area(14.0, south, 15.0, south + chance.uniform(0.1, 2.0)))
    for _ in range(100):
        lat = chance.uniform(frame.area.lat_min - 1.0, frame.area.lat_max + 1.0)
        plane_m = 10.0 ** chance.uniform(0.0, 5.5)
        ground_m = ground_radius_m(frame, 14.5, lat, plane_m)
        assert 0.3 * min(plane_m, 100_000.0) < ground_m <= plane_m, "not smaller than need be"
        bearing = chance.choice((0.0, 0.5, 1.0, 1.5, chance.uniform(0.0, 2.0))) * math.pi
        there = step_from(14.5, lat, bearing, ground_m)
        assert math.dist(frame.project(14.5, lat), frame.project(*there)) <= plane_m
    assert math.isinf(ground_radius_m(frame, 14.5, lat, math.inf))


def test_the_circle_ends_at_the_antimeridian():
    """Beyond it a device is at the other end of the plane."""
    frame = Frame.of(Area(178.0, -19.0, 180.0, -17.0))
    assert ground_radius_m(frame, 179.0, -18.0, 50_000.0) > 49_000.0
    for lon in (179.99, -179.99):
        radius_m = ground_radius_m(frame, lon, -18.0, 50_000.0)
        assert 900.0 < radius_m < ground_distance_m(lon, -18.0, 180.0, -18.0)
    assert ground_radius_m(frame, 180.0, -18.0, 50_000.0) == 0.0


SPEC = TopK({"sushi"}, k=3, alpha=0.9, similarity=Similarity.JACCARD)
PREFETCH_M = 100.0


async def stroll(client, prefetch_m):
    """Walk straight on; return how often the list was not exact before the answer, and the reports."""
    objects = await published(client, random.Random(1), 700)
    device = await client.attach("d", lon=14.46, lat=35.5, prefetch_m=prefetch_m)
    subscription = await device.subscribe(SPEC)
    stale = 0
    for step in range(150):
        lon = 14.46 + step * 0.0005  # 45 m
        await device.move(lon, 35.5)
        if subscription.state is SubscriptionState.EXACT:
            assert ids(subscription) == expected(SPEC, objects, lon, 35.5)
        else:
            stale += 1
        await client.sync()
        assert subscription.state is SubscriptionState.EXACT
    return stale, device.counters.reports


async def test_with_prefetch_the_next_region_is_there_in_time(client):
    stale, reports = await stroll(client, PREFETCH_M)
    assert stale == 0
    assert reports > 3


async def test_without_prefetch_it_is_not(client):
    stale, reports = await stroll(client, 0.0)
    assert stale == reports > 3


async def test_prefetch_does_not_report_for_ever(client):
    """Where regions are small, a huge prefetch distance costs a few reports, not one a move."""
    await published(client, random.Random(2), 400)
    device = await client.attach("d", lon=14.5, lat=35.5, prefetch_m=1_000_000.0)
    await device.subscribe(SPEC)
    for _ in range(50):
        await device.move(14.5, 35.5)
        await device.move(14.500001, 35.5)
        await client.sync()
    assert device.counters.reports == 0


async def test_the_circle_of_a_device_is_the_least_of_its_subscriptions(client):
    device = await client.attach("d", lon=14.5, lat=35.5)
    assert math.isinf(device.geofence().radius_m)
    anywhere = await device.subscribe(TopK({"tea"}))
    assert math.isinf(anywhere.geofence().radius_m)
    await published(client, random.Random(3), 100)
    near = await device.subscribe(TopK({"sushi"}, k=2))
    nearer = await device.subscribe(TopK({"sushi"}, k=12))
    await client.sync()
    fences = [one.geofence() for one in (anywhere, near, nearer)]
    assert device.geofence().radius_m == min(fence.radius_m for fence in fences) < math.inf
    assert 0 < device.geofence().until_ms == near.geofence().until_ms
    radius_m = near.geofence().radius_m
    await device.move(14.5, 35.5, accuracy_m=5.0)
    assert near.geofence().radius_m == pytest.approx(radius_m - 5.0, rel=0.01, abs=0.1)
    before = device.counters.reports
    x_m, y_m = FRAME.project(14.5, 35.5)
    await device.move(*FRAME.unproject(x_m + 0.99 * device.geofence().radius_m, y_m), accuracy_m=5.0)
    assert device.counters.reports == before
