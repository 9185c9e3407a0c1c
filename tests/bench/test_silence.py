"""The benchmark of silence: every variant is right, and counts what it sends."""

from __future__ import annotations

import numpy as np
import pytest

from bench import device_kernels
from bench.device_kernels import NOBODY
from bench.runner import affordable
from bench.silence.experiments import SILENCE, SilenceParameters
from bench.silence.run import SilenceBenchmark, SilenceRun
from bench.silence.variants import VARIANTS
from bench.silence.wire_sizes import wire_sizes
from bench.silence.workload import FOREVER, prepare

SMALL = SilenceParameters(
    devices=80,
    objects=700,
    seconds=20,
    arrivals_per_s=1.5,
    expiries_per_s=2.0,
    audited=40,
    audits=4,
    speed_max_mps=60.1,
)

WITH_WINDOWS = ("anchored-cost-ahead-seconds", "anchored-cost-ahead-count")


def quiet(_stage, _done, _total):
    """Nobody is told."""


def driving(seconds):
    """Straight ahead at 60 metres a second."""
    angles = np.linspace(0.0, 6.0, 12)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return 60.0 * directions[:, None, :] * np.arange(seconds + 1)[None, :, None]


@pytest.fixture(scope="module")
def workload(city):
    return prepare(city, driving(SMALL.seconds), SMALL)


@pytest.fixture(scope="module")
def sizes(city, workload):
    return wire_sizes(city, workload.objects, 1)


def measure(name, workload, parameters, sizes):
    """Measure a variant on a workload that is there."""
    benchmark = SilenceBenchmark([parameters], quiet)
    benchmark.workload = lambda wanted: (workload.first(wanted.devices), sizes)
    (row,) = benchmark.measure(name, affordable(benchmark, name, parameters))
    return row


@pytest.fixture(scope="module")
def rows(workload, sizes):
    """Run each variant once, for all tests."""
    return {name: measure(name, workload, SMALL, sizes) for name in VARIANTS if name not in WITH_WINDOWS}


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in WITH_WINDOWS])
def test_every_variant_shows_the_results_of_the_oracle(rows, name):
    row = rows[name]
    assert row["mismatches"] == 0
    assert row["lists_audited"] == (0 if name == "periodic-30" else 160)
    assert row["seconds"] == 20
    if name not in {"anchored-20", "periodic-30"}:
        assert row["reports_per_device_hour"] > 0
        assert row["bytes_up"] > 0


def test_the_figures_agree_with_each_other(rows):
    reports = {name: row["reports_per_device_hour"] for name, row in rows.items()}
    assert reports["anchored-20"] < reports["anchored-5"] < reports["anchored-0"]
    assert reports["set-constant"] < reports["asr"]
    assert reports["periodic-1"] == 3600.0
    assert reports["periodic-5"] == 720.0
    assert rows["periodic-1"]["stale_share"] == 0.0 < rows["periodic-5"]["stale_share"]
    for name in ("asr", "lsr"):
        assert rows[name]["questions_per_device_hour"] == rows[name]["answers_per_device_hour"] > 0
        assert rows[name]["pushes_per_device_hour"] == 0
    assert rows["anchored-5"]["questions_per_device_hour"] == 0
    assert rows["anchored-5"]["pushes_per_device_hour"] > 0


def test_devices_look_where_they_are_when_they_have_to(rows):
    for name in ("asr", "anchored-0", "anchored-5", "anchored-cost-ahead"):
        row = rows[name]
        seldom = row["reports_per_device_hour"] + row["wake_ups_per_device_hour"]
        assert 0 < seldom < row["fixes_per_device_hour"] < 3600.0
        assert row["reports_without_fix"] == 0
    assert rows["anchored-20"]["fixes_per_device_hour"] < rows["anchored-0"]["fixes_per_device_hour"]
    for name, fixes in {"lsr": 3600.0, "set-constant": 3600.0, "periodic-5": 720.0}.items():
        assert rows[name]["fixes_per_device_hour"] == fixes


def test_devices_that_are_faster_than_they_assume_report_without_a_fix(workload, sizes):
    slow = SMALL.changed(speed_max_mps=5.0)
    assert measure("anchored-5", workload, slow, sizes)["reports_without_fix"] > 0


def test_the_audit_notices_missing_notifications(workload):
    for name in ("anchored-5", "set-constant"):
        run = SilenceRun(VARIANTS[name], workload, SMALL)
        everywhere = workload.objects
        for number in range(80):
            words = workload.drawn.interests.keywords.row(number)
            run.audit.publish(
                type(everywhere)(
                    np.array([10_000 + number]),
                    workload.drawn.x_m[number : number + 1],
                    workload.drawn.y_m[number : number + 1],
                    type(everywhere.keywords).of([words]),
                )
            )
        run.go(4, 60.0, quiet)
        assert run.audit.mismatches > 30


def test_windows_and_lifetimes_that_end_at_the_same_moments(city, sizes):
    small = SMALL.changed(window_s=7.0, arrivals_per_s=0.0, expiries_per_s=0.0)
    happens = prepare(city, driving(small.seconds), small)
    names = ("anchored-cost-ahead", *WITH_WINDOWS)
    runs = [measure(name, happens, small, sizes) for name in names]
    lifetimes, seconds, count = runs
    for row in runs:
        assert row["mismatches"] == 0
        assert row["lists_audited"] == 160
        assert row["pushes_per_device_hour"] > 0
    assert lifetimes == seconds
    assert count["drops_per_device_hour"] > 0
    ages = np.arange(small.seconds + 1)[:, None] * 1000 - happens.created_ms[None, :]
    alive = ((ages >= 0) & (ages < 7_000)).sum(axis=1)
    assert abs(alive.mean() - small.objects) < 0.1 * small.objects


def test_every_variant_is_compared():
    lifetimes, windows = SILENCE.experiments
    assert set(windows.variants) == set(VARIANTS)
    assert set(lifetimes.variants) == set(VARIANTS) - set(WITH_WINDOWS)


def test_objects_arrive_and_expire_at_the_requested_rates(workload):
    assert np.diff(workload.arrived).sum() == 30
    assert set(np.diff(workload.arrived)) == {1, 2}
    gone = workload.expiry_ms[workload.expiry_ms < FOREVER]
    assert np.bincount(gone // 1000)[1:].tolist() == [2] * 20
    born = np.searchsorted(workload.arrived, np.arange(len(workload.expiry_ms)), side="right")
    assert (workload.expiry_ms > 1000 * born).all()


def test_without_movement_there_are_no_reports(city, sizes):
    still = SMALL.changed(arrivals_per_s=0.0, expiries_per_s=0.0)
    workload = prepare(city, np.zeros((1, 2, 2)), still)
    for name in ("asr", "lsr", "set-constant", "anchored-0", "periodic-5"):
        row = measure(name, workload, still, sizes)
        assert row["objects_per_device_hour"] == row["bytes_down"] == row["stale_share"] == 0.0
        assert row["mismatches"] == 0


def test_a_slow_variant_takes_the_first_devices_only(workload, sizes):
    row = measure("lsr", workload, SMALL.changed(budget_s=1e-3), sizes)
    assert row["devices"] < 80
    assert row["seconds"] == 1
    assert row["mismatches"] == 0


def test_sets_are_compared_by_their_objects():
    starts = np.array([0, 3, 5, 6])
    before = np.array([NOBODY, 4, 9, 1, 2, NOBODY])
    after = np.array([4, 7, 9, 1, 3, NOBODY])
    entered, left = np.empty(3, dtype=np.int32), np.empty(3, dtype=np.int32)
    device_kernels.compare_sets(starts, before, after, entered, left)
    assert (entered.tolist(), left.tolist()) == ([1, 1, 0], [0, 1, 0])


def test_messages_have_the_sizes_they_should(sizes):
    assert sizes.entry > sizes.delta > sizes.report > sizes.drop
    assert sizes.up(10, 0) == pytest.approx(10 * sizes.report)
    assert sizes.down(2, 3, 1, 0) == pytest.approx(2 * sizes.delta + 3 * sizes.entry + sizes.drop)


def test_the_experiment(run_experiments):
    small = ["devices=30", "seconds=10", "objects=300", "arrivals_per_s=1", "budget_s=20"]
    names = ["asr", "set-constant", "anchored-2", "anchored-10", "periodic-5"]
    rows = run_experiments("silence/lifetimes", settings=small, variants=names)["silence/lifetimes"]
    assert [row["variant"] for row in rows] == names
