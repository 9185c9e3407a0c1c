"""The suite ap-plus in miniature: every experiment runs, and every variant is exact."""

from __future__ import annotations

import numpy as np
import pytest

from bench import datasets
from bench.ap_plus.devices import DeviceBenchmark
from bench.ap_plus.drives import drives
from bench.ap_plus.experiments import AP_PLUS, ApPlusParameters
from bench.ap_plus.moving_run import MovingRun, tree_of
from bench.ap_plus.run import MovingBenchmark
from bench.ap_plus.workload import ApPlusWorkload
from bench.benchmark import TooSlowError
from bench.runner import affordable
from index.batches import Matches, Moves

SMALL = ("subscriptions=100", "objects=200", "timestamps=2", "area=0.01")
PARAMETERS = ApPlusParameters(subscriptions=150, objects=300, timestamps=3, area=0.01, singles=5)


def quiet(_stage, _done, _total):
    """Nobody is told."""


@pytest.fixture(scope="module")
def roads():
    return drives("city", PARAMETERS.seconds, 1)


def measure(name, data, roads, parameters):
    """Measure an index on a workload of these data."""
    benchmark = MovingBenchmark([parameters], quiet)
    benchmark.workload = lambda wanted: ApPlusWorkload(data, roads, wanted)
    wanted = affordable(benchmark, name, parameters)
    while True:
        try:
            (row,) = benchmark.measure(name, wanted)
        except TooSlowError:
            wanted = benchmark.smaller(name, wanted)
        else:
            return row


@pytest.mark.slow
def test_every_experiment_runs(run_experiments):
    found = run_experiments("ap-plus", settings=SMALL)
    assert set(found) == {f"ap-plus/{one.name}" for one in AP_PLUS.experiments}
    with_devices = [*found.pop("ap-plus/figure-26"), *found.pop("ap-plus/figure-27")]
    assert {row["variant"] for row in with_devices} == set(DeviceBenchmark.VARIANTS)
    assert all(row["server_us_per_device_s"] > 0.0 for row in with_devices)
    rows = [row for some in found.values() for row in some]
    assert {row["variant"] for row in rows} == set(MovingBenchmark.VARIANTS)
    assert all(row["timestamps"] == 2 for row in rows)
    assert sum(row["changes_per_move"] for row in rows) > 0
    assert all("us_per_location_update" in row for row in found["ap-plus/figure-19"])


@pytest.mark.parametrize("name", MovingBenchmark.VARIANTS)
def test_every_variant_is_exact(city, roads, name):
    row = measure(name, city, roads, PARAMETERS)
    assert (row["lists_audited"], row["mismatches"]) == (200, 0)
    assert row["subscriptions"] == 150


@pytest.mark.parametrize("name", ["ap-plus-tree", "ap-plus-k"])
def test_a_tree_knows_how_clauses_move_before_it_is_measured(city, roads, name):
    parameters = PARAMETERS.changed(learning=3)
    run = MovingRun(name, ApPlusWorkload(city, roads, parameters), np.inf, quiet)
    tree, known = tree_of(run.index), []

    def pace():
        return float(tree._arrays.motions.pace[0])  # noqa: SLF001 - it is in its arrays alone

    assert pace() == 0.0
    rebuild = tree.rebuild

    def noted():
        known.append((pace(), run.timestamps))
        rebuild()

    tree.rebuild = noted
    run.go()
    moves_of_each, arrivals = parameters.mobility, parameters.arrivals
    assert known == [(pytest.approx(moves_of_each / arrivals), 0)]
    assert (run.timestamps, run.audit.mismatches) == (parameters.timestamps, 0)


def test_rebuilds_are_counted_apart_from_moves(city, roads):
    run = MovingRun("ap-plus-tree", ApPlusWorkload(city, roads, PARAMETERS), np.inf, quiet)
    move = run.index.move

    def restless(ids, boxes):
        """Rebuild the whole tree beside, as if it had drifted."""
        found = move(ids, boxes)
        run.index.begin_rebuild()
        while run.index.maintain():
            pass
        return found

    run.index.move = restless
    run.go()
    row = run.figures()
    calls = row["timestamps"] * (PARAMETERS.singles + 1)
    assert row["rebuilds"] >= calls
    assert row["us_rebuilding_per_move"] > 0.0
    in_all_us = row["us_per_move_batch"] + row["us_rebuilding_per_move"]
    assert row["us_per_move_in_all"] == pytest.approx(in_all_us, abs=0.002)
    assert row["mismatches"] == 0


def test_a_wrong_index_is_noticed(city, roads):
    """One that does not say what ranges come to."""
    run = MovingRun("pairs", ApPlusWorkload(city, roads, PARAMETERS), np.inf, quiet)
    move = run.index.move

    def forgetful(ids, boxes):
        nothing = Matches.of(np.zeros(len(ids), dtype=np.int64), np.empty(0, dtype=np.int64))
        return Moves(nothing, move(ids, boxes).left)

    run.index.move = forgetful
    run.go()
    assert run.audit.mismatches > 0


def test_ranges_drive_on_roads_and_objects_lie_beside_them(city, roads):
    workload = ApPlusWorkload(city, roads, PARAMETERS)
    rows = workload.moving(1)
    assert len(rows) == 30
    before, after = workload.boxes(rows, 0), workload.boxes(rows, 1)
    moved_m = np.hypot(after.x1_m - before.x1_m, after.y1_m - before.y1_m)
    assert np.median(moved_m) > 100.0
    assert moved_m.max() < 30.0 * 40.0
    assert (workload.expiry_ms[workload.arriving(2)] > 60_000).all()


def test_a_slow_variant_is_measured_at_a_smaller_size(roads):
    data = datasets.synthetic(2_000)
    parameters = ApPlusParameters(
        subscriptions=40_000, objects=40_000, timestamps=2, singles=0, budget_s=0.05
    )
    row = measure("pairs", data, roads, parameters)
    assert row["subscriptions"] == row["objects"] < 40_000
    assert row["mismatches"] == 0
