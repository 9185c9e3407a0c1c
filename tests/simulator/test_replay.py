"""The replay against a real server, and an audit that notices what is wrong."""

from __future__ import annotations

import pytest

from nearcast import TopK
from nearcast.errors import RefusedError
from safe_region.frame import Area
from server.main import Server
from server.settings import load_settings
from simulator.replay.audit import audit_list
from simulator.replay.replay import Replay, ReplayError, ReplayOptions
from tests.support.servers import serving

AUDIT_EVERY = 5


@pytest.fixture
async def server(simulation):
    settings = load_settings(
        {"area": list(simulation.world.area), "store": ":memory:", "port": 0, "virtual_time": True}
    )
    async with serving(settings) as server:
        yield server


def options(server: Server) -> ReplayOptions:
    return ReplayOptions(f"127.0.0.1:{server.port}", fleet_count=2, audit_every=AUDIT_EVERY)


def device_of_top_k(replay, tick):
    """A device that has a top-k subscription: where it is, and what it asks for."""
    for fix in replay._fixes[tick]:
        for one in replay._subscriptions[fix.device_id]:
            if isinstance(one.spec, TopK) and one.spec.window is None:
                return fix, one.spec
    raise AssertionError


def standing_one(replay):
    """A subscription that stands, without a window."""
    return next(one for one in replay._standing if one.subscription.spec.window is None)


async def test_every_list_is_exact_and_hardly_anybody_speaks(simulation, server):
    seen = []
    replay = Replay(simulation, options(server), lambda *report: seen.append(report))
    report = await replay.run()
    lists = simulation.subscriptions.num_rows
    ticks = simulation.world.seconds * 1000 // simulation.world.period_ms
    assert report.mismatches == []
    assert report.audited == lists * (1 + len(set(range(AUDIT_EVERY, ticks, AUDIT_EVERY)) | {ticks}))
    assert 0 < report.audited_boolean < report.audited
    assert 0 < report.audited_windows < report.audited
    standing = [row for row in replay._subscription_rows if row.place is not None]
    assert report.standing_subscriptions == len(standing) > 0
    assert report.audited_standing == len(standing) * report.audited / lists
    assert report.reports_of_standing == 0
    assert 0 < report.audited_weighed < report.audited - report.audited_boolean
    assert report.fixed_devices > 0
    assert report.reports_of_fixed == 0
    assert report.counters.moves == report.devices * ticks
    assert 0 < report.counters.reports < 0.05 * report.counters.moves
    assert report.objects_published == simulation.objects.num_rows
    assert report.objects_retracted > 0
    assert report.counters.bytes_sent > 0
    assert seen[-1] == ("replay", ticks, ticks)


async def test_the_audit_notices_an_object_that_nobody_was_told_about(simulation, server):
    """The replay notes objects that the server does not have: at a device's feet, where one stands."""
    replay = Replay(simulation, options(server))
    follow = replay._follow
    ticks = simulation.world.seconds * 1000 // simulation.world.period_ms

    def plant(tick: int) -> None:
        follow(tick)
        if tick == ticks:
            published = replay._published
            some = next(iter(published.objects.values()))
            fix, spec = device_of_top_k(replay, tick)
            standing = standing_one(replay)
            for number, lon, lat, wanted in (
                (-1, fix.lon, fix.lat, spec.keywords),
                (-2, standing.lon, standing.lat, standing.subscription.spec.keywords),
            ):
                x_m, y_m = published.frame.project(lon, lat)
                published.objects[number] = some._replace(
                    object_id=number, x_m=x_m, y_m=y_m, keywords=frozenset(wanted), expiry_ms=2**60
                )

    replay._follow = plant
    report = await replay.run()
    fix, _ = device_of_top_k(replay, ticks)
    mismatches = [one for one in report.mismatches if one.device_id == fix.device_id]
    assert mismatches
    assert mismatches[0].tick == ticks
    assert -1 in mismatches[0].expected
    assert -1 not in mismatches[0].found
    (mismatch,) = [one for one in report.mismatches if one.device_id == standing_one(replay).device_id]
    assert mismatch.tick == ticks
    assert -2 in mismatch.expected
    assert -2 not in mismatch.found


async def test_the_audit_notices_a_wrong_order(simulation, server):
    replay = Replay(simulation, options(server))
    await replay.run()
    tick = len(replay._fixes) - 1
    for fix in replay._fixes[tick]:
        subscription = next(iter(replay._subscriptions[fix.device_id]), None)
        found = subscription.results() if subscription else []
        if len(found) >= 2 and isinstance(subscription.spec, TopK):
            break

    class Swapped:
        id = subscription.id
        spec = subscription.spec
        state = subscription.state
        idf_generation = subscription.idf_generation

        @staticmethod
        def results():
            return [found[1], found[0], *found[2:]]

    place = (fix.device_id, fix.lon, fix.lat, tick, replay._now_ms(tick))
    assert audit_list(replay._published, subscription, *place) is None
    assert audit_list(replay._published, Swapped(), *place) is not None


async def test_a_server_of_another_area_is_refused(simulation):
    area = simulation.world.area
    other = Area(area.lon_min - 1.0, area.lat_min, area.lon_max, area.lat_max)
    settings = load_settings({"area": list(other), "store": ":memory:", "port": 0, "virtual_time": True})
    async with serving(settings) as server:
        with pytest.raises(ReplayError, match="must be the simulation's"):
            await Replay(simulation, options(server)).run()


async def test_a_server_in_real_time_is_refused(simulation):
    settings = load_settings({"area": list(simulation.world.area), "store": ":memory:", "port": 0})
    async with serving(settings) as server:
        with pytest.raises(RefusedError, match="--virtual-time"):
            await Replay(simulation, options(server)).run()
