"""The benchmark of Lamps: every variant runs, is audited, and would be caught if it were wrong."""

from __future__ import annotations

import numpy as np
import pytest

from bench import datasets
from bench.engines import top_k_of
from bench.lamps.benchmark import VARIANTS
from bench.lamps.experiments import LAMPS, LampsParameters
from bench.lamps.run import Lamps
from bench.trajectories import STILL_M, Trajectories

SMALL = LampsParameters(subscriptions=300, objects=400, ticks=4, audited=120, warm_up_s=0)


@pytest.fixture(scope="module")
def data():
    return datasets.synthetic(2_000)


def quiet(_stage, _done, _total):
    """Nobody is told."""


def walking(seconds):
    """A few walks of a metre and a half a second."""
    angles = np.linspace(0.0, 6.0, 12)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return 30.0 * directions[:, None, :] * np.arange(seconds + 1)[None, :, None]


POLYGONS = SMALL.changed(subscriptions=60, audited=60)
"""Local safe regions take milliseconds each."""


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("naive", SMALL),
        ("lamps-without-asr", POLYGONS),
        ("lamps-without-sq-tree", SMALL),
        ("lamps-without-iqf", SMALL),
        ("lamps", SMALL),
    ],
)
def test_every_variant_shows_the_results_of_the_oracle(data, name, parameters):
    lamps = Lamps(VARIANTS[name], data, walking(parameters.ticks), parameters)
    lamps.build(quiet)
    lamps.run(quiet, 60.0)
    assert (lamps.audit.lists, lamps.audit.mismatches) == (parameters.audited, 0)
    assert sum(lamps.ticks.moved_count) > 0
    assert sum(lamps.ticks.generated_count) > 0
    assert lamps.memory_bytes() > 0


@pytest.mark.parametrize("name", ["anchored-0", "anchored-5", "anchored-cost", "anchored-cost-ahead"])
def test_anchored_variants_are_quieter_and_as_exact(data, name):
    parameters = SMALL.changed(warm_up_s=10)
    walks = walking(parameters.warm_up_s + parameters.ticks)
    counts = {}
    for one in ("lamps", name):
        lamps = Lamps(VARIANTS[one], data, walks, parameters)
        lamps.build(quiet)
        lamps.warm_up(quiet)
        lamps.run(quiet, 60.0)
        assert (lamps.audit.lists, lamps.audit.mismatches) == (parameters.audited, 0)
        ticks = lamps.ticks
        counts[one] = sum(ticks.generated_count) + sum(ticks.expired_count) + sum(ticks.moved_count)
    assert counts[name] < counts["lamps"]


def test_regions_are_of_all_ages_when_it_is_measured(data):
    parameters = SMALL.changed(warm_up_s=60)
    lamps = Lamps(VARIANTS["lamps"], data, walking(70), parameters)
    lamps.build(quiet)
    subscriptions = top_k_of(lamps.engine).subscriptions
    made_ms = [set(subscriptions.rows["anchored_ms"][subscriptions.used()].tolist())]
    lamps.warm_up(quiet)
    made_ms.append(set(subscriptions.rows["anchored_ms"][subscriptions.used()].tolist()))
    assert made_ms[0] == {0}
    assert made_ms[1] <= set(range(0, 61_000, 5_000))
    assert len(made_ms[1]) > 6
    assert lamps.warm_up_s > 0.0
    lamps.run(quiet, 60.0)
    assert lamps.audit.mismatches == 0


def test_devices_without_regions_have_nothing_to_wait_for(data):
    lamps = Lamps(VARIANTS["naive"], data, walking(70), SMALL.changed(warm_up_s=60))
    lamps.build(quiet)
    lamps.warm_up(quiet)
    assert (lamps.warm_up_s, lamps.ticks.moved_count) == (0.0, [])
    lamps.run(quiet, 60.0)
    assert (lamps.audit.lists, lamps.audit.mismatches) == (SMALL.audited, 0)


def test_the_audit_notices_a_wrong_list(data):
    lamps = Lamps(VARIANTS["lamps"], data, walking(SMALL.ticks), SMALL)
    lamps.build(quiet)
    # An object that the audit believes in and the engine never saw.
    stranger = data.objects(1, 10_000_000, np.random.default_rng(1))
    for row in range(200):
        words = lamps.subscriptions.interests.keywords.row(row)
        batch = type(stranger)(
            stranger.ids + row,
            lamps.subscriptions.x_m[row : row + 1],
            lamps.subscriptions.y_m[row : row + 1],
            datasets.KeywordLists.of([words]),
        )
        lamps.audit.publish(batch)
    lamps.run(quiet, 60.0)
    assert lamps.audit.mismatches > 20


def test_journeys_start_at_devices_and_turn_by_right_angles():
    chance = np.random.default_rng(3)
    start = chance.uniform(-10.0, 10.0, (2, 50))
    trajectories = Trajectories(walking(9), start[0], start[1], chance)
    for second, far in ((0, 0.0), (1, 30.0), (9, 270.0), (10, 240.0), (18, 0.0)):
        x_m, y_m = trajectories.at(second)
        assert np.hypot(x_m - start[0], y_m - start[1]) == pytest.approx(far)
    assert (Trajectories(STILL_M, start[0], start[1], chance).at(5)[0] == start[0]).all()


def test_objects_are_drawn_without_repetition_first(data):
    objects = data.objects(3_000, 1, np.random.default_rng(2))
    assert len(np.unique(np.stack([objects.x_m, objects.y_m]), axis=1).T) == 3_000
    assert set(np.round(objects.x_m[:2_000], 6)) == set(np.round(data.x_m, 6))
    assert objects.ids.tolist() == list(range(1, 3_001))


def test_the_experiments(run_experiments):
    settings = ["subscriptions=200", "objects=300", "ticks=3", "warm_up_s=10"]
    names = ["lamps/table-3", "lamps/figure-9", "lamps/figure-11", "lamps/figure-12"]
    variants = ["lamps", "lamps-without-sq-tree", "iqf"]
    found = run_experiments(*names, settings=settings, variants=variants)
    table, frequent, expected, by_k = (found[name] for name in names)
    assert [row["variant"] for row in table] == ["lamps-without-sq-tree", "lamps"]
    assert all(row["warm_up_s"] == 10 for row in table)
    assert [row["frequent_percent"] for row in frequent] == [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0]
    assert [row["subscriptions"] for row in expected] == [40, 80, 120, 160, 200]
    assert all(row["objects_seen"] == row["objects"] == 300 for row in expected)
    assert all(0.0 < row["error"] < 1.0 for row in expected)
    assert [row["k_max"] for row in by_k] == [5, 5, 10, 10, 15, 15, 20, 20]
    assert LAMPS.parameters().warm_up_s == 180
