"""The replay against a real server, and an audit that notices what is wrong."""

from __future__ import annotations

import pytest

from nearcast import RegionMode, TopK
from nearcast.errors import RefusedError
from safe_region.earth.frame import Area
from server.main import Server
from server.settings import load_settings
from simulator.replay.audit import Audit, UndecidedError
from simulator.replay.options import ReplayClock, ReplayError, ReplayOptions
from simulator.replay.recording import Recording
from simulator.replay.replay import Replay
from tests.support.servers import serving

AUDIT_EVERY = 5


@pytest.fixture
async def server(simulation):
    settings = load_settings(
        {"area": list(simulation.world.area), "store": ":memory:", "port": 0, "virtual_time": True}
    )
    async with serving(settings) as server:
        yield server


def options(server: Server, **more) -> ReplayOptions:
    return ReplayOptions(f"127.0.0.1:{server.port}", fleet_count=2, audit_every=AUDIT_EVERY, **more)


def replay_of(simulation, server, progress=None, **more) -> Replay:
    return Replay(Recording(simulation.path), options(server, **more), progress)


def lists_of(replay):
    return [(one.place, one.result) for one in replay.devices.audited()]


def is_stationary(subscription):
    return subscription.spec.region is RegionMode.STATIONARY


def some_top_k(replay, wanted):
    """A top-k subscription without a window."""
    return next(
        (place, one)
        for place, one in lists_of(replay)
        if isinstance(one.spec, TopK) and one.spec.window is None and is_stationary(one) is wanted
    )


async def test_every_result_is_exact_and_few_devices_report(simulation, server):
    seen = []
    replay = replay_of(simulation, server, lambda *report: seen.append(report))
    report = await replay.run()
    lists = simulation.subscriptions.num_rows
    ticks = simulation.world.tick_count
    assert report.mismatches == []
    assert report.audited == lists * len({*range(0, ticks, AUDIT_EVERY), ticks - 1})
    assert 0 < report.audited_boolean < report.audited
    assert 0 < report.audited_windows < report.audited
    stationary = simulation.subscriptions.num_rows - simulation.subscriptions["place"].null_count
    assert report.subscriptions == lists
    assert report.stationary_subscriptions == stationary > 0
    assert report.audited_stationary == stationary * report.audited / lists
    assert report.reports_of_stationary == 0
    assert 0 < report.audited_weighed < report.audited - report.audited_boolean
    assert report.fixed_devices > 0
    assert report.reports_of_fixed == 0
    assert report.counters.moves == report.devices * (ticks - 1)
    assert 0 < report.counters.reports < 0.05 * report.counters.moves
    assert report.counters.reports < report.fixes < report.counters.moves
    assert 0 < report.wake_ups < report.fixes
    assert report.reports_without_fix == 0
    assert report.objects_published == simulation.objects.num_rows
    assert report.objects_retracted > 0
    assert report.counters.bytes_sent > 0
    assert report.undecided == 0
    assert 0.0 < report.latency_ms(0.5) <= report.latency_ms(0.99)
    assert seen[-1] == ("replay", ticks, ticks)
    moment = report.timeline.moments[-1]
    assert moment.moves == report.counters.moves
    assert moment.published == report.objects_published
    assert moment.audited == report.audited


async def test_the_audit_notices_an_object_that_no_device_received(simulation, server):
    """The replay notes objects that the server does not have: at a device's feet, where one stands."""
    replay = replay_of(simulation, server)
    follow = replay.follow
    last = simulation.world.tick_count - 1

    def plant(fixes) -> None:
        follow(fixes)
        if replay.tick_number == last:
            published = replay.published
            some = next(iter(published.objects.values()))
            for number, is_still in ((-1, False), (-2, True)):
                place, subscription = some_top_k(replay, is_still)
                x_m, y_m = published.frame.project(place.lon, place.lat)
                published.objects[number] = some._replace(
                    object_id=number,
                    x_m=x_m,
                    y_m=y_m,
                    keywords=frozenset(subscription.spec.keywords),
                    expiry_ms=2**60,
                )

    replay.follow = plant
    report = await replay.run()
    assert report.mismatch_count == len(report.mismatches) == report.timeline.moments[-1].mismatches
    for number, is_still in ((-1, False), (-2, True)):
        place, subscription = some_top_k(replay, is_still)
        (mismatch,) = [
            one
            for one in report.mismatches
            if (one.device_id, one.subscription_id) == (place.device_id, subscription.id)
        ]
        assert mismatch.tick == last
        assert number in mismatch.expected
        assert number not in mismatch.found


async def test_the_audit_notices_a_wrong_order(simulation, server):
    replay = replay_of(simulation, server)
    await replay.run()
    place, subscription, found = next(
        (place, one, one.scored)
        for place, one in lists_of(replay)
        if isinstance(one.spec, TopK) and len(one.scored) >= 2
    )

    class Swapped:
        id = subscription.id
        spec = subscription.spec
        state = subscription.state
        idf_generation = subscription.idf_generation
        scored = (found[1], found[0], *found[2:])

    published = replay.published
    audit = Audit(published, 0, [published.at(replay.now_ms())])
    assert audit.compare(subscription, place) is None
    assert audit.compare(Swapped(), place) is not None


async def test_a_list_is_undecided_only_where_an_unknown_instant_matters(simulation, server):
    """What may have expired or not makes both answers right, and others neither right nor wrong."""
    replay = replay_of(simulation, server)
    await replay.run()
    published, now_ms = replay.published, replay.now_ms()
    place, subscription, found = next(
        (place, one, one.scored)
        for place, one in lists_of(replay)
        if isinstance(one.spec, TopK) and one.spec.window is None and len(one.scored) >= 2
    )
    shown = list(found)

    class Shown:
        id = subscription.id
        spec = subscription.spec
        state = subscription.state
        idf_generation = subscription.idf_generation

        @property
        def scored(self):
            return shown

    def compare():
        surely, perhaps = published.around(now_ms - 100, now_ms + 100)
        return Audit(published, 0, [surely, perhaps]).compare(Shown(), place)

    best = found[0][0]
    away = min(one.object_id for one in published.objects.values() if one.expiry_ms > now_ms + 1_000)
    for one in list(published.objects.values()):
        if one.expiry_ms < now_ms + 1_000:  # nothing else is in doubt
            published.objects[one.object_id] = one._replace(expiry_ms=now_ms + 1_000)
    published.objects[best] = published.objects[best]._replace(expiry_ms=now_ms)
    assert away
    assert compare() is None  # with it
    shown = found[1:]
    if len(shown) < subscription.spec.k - 1:
        assert compare() is None  # without it: nothing takes its place
    shown = list(reversed(found))
    with pytest.raises(UndecidedError):
        compare()


async def test_an_audit_of_a_share_looks_at_others_each_time(simulation, server):
    replay = replay_of(simulation, server, audit_share=0.25)
    looked_at = []
    compare = replay.compare

    def note(audit, one):
        looked_at.append((replay.tick_number, one.place.device_id, one.result.id))
        compare(audit, one)

    replay.compare = note
    report = await replay.run()
    lists = simulation.subscriptions.num_rows
    audits = len({*range(0, simulation.world.tick_count, AUDIT_EVERY), simulation.world.tick_count - 1})
    assert report.audited == len(looked_at)
    assert 0.15 * lists * audits < report.audited < 0.35 * lists * audits
    assert len({one[1:] for one in looked_at}) > 0.9 * lists
    assert report.mismatches == []


async def test_devices_that_are_faster_than_assumed_would_miss_reports(simulation, server):
    report = await replay_of(simulation, server, speed_max_mps=0.5).run()
    assert report.reports_without_fix > 0
    assert report.mismatches == [], "the devices of a replay look at every tick"


async def test_a_replay_that_keeps_time(simulation, server):
    """Virtual time a thousand times as fast as real: as exact, and never ahead of the clock."""
    replay = replay_of(simulation, server, clock=ReplayClock.parse("1000"))
    report = await replay.run()
    assert report.mismatches == []
    assert report.elapsed_s >= simulation.world.seconds / 1000.0


@pytest.mark.parametrize("text", ["", "fast", "0", "-1", "nan", "inf", "1e7"])
def test_a_clock_that_is_none(text):
    with pytest.raises(ReplayError, match="must be virtual, real, or a number greater than 0"):
        ReplayClock.parse(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [("fleet_count", 0), ("audit_every", 0), ("audit_share", 0.0), ("audit_share", 1.5)],
)
def test_options_out_of_their_limits(name, value):
    with pytest.raises(ReplayError, match=f"{name} is {value}, must be"):
        ReplayOptions("127.0.0.1:1", **{name: value})


async def test_a_server_of_another_area_is_refused(simulation):
    area = simulation.world.area
    other = Area(area.lon_min - 1.0, area.lat_min, area.lon_max, area.lat_max)
    settings = load_settings({"area": list(other), "store": ":memory:", "port": 0, "virtual_time": True})
    async with serving(settings) as server:
        with pytest.raises(ReplayError, match="must be the simulation's"):
            await replay_of(simulation, server).run()


async def test_a_server_in_real_time_is_refused(simulation):
    settings = load_settings({"area": list(simulation.world.area), "store": ":memory:", "port": 0})
    async with serving(settings) as server:
        with pytest.raises(RefusedError, match="--virtual-time"):
            await replay_of(simulation, server).run()


async def test_a_server_in_virtual_time_is_refused_for_a_real_replay(simulation, server):
    with pytest.raises(ReplayError, match="start it without --virtual-time"):
        await replay_of(simulation, server, clock=ReplayClock.parse("real")).run()
