"""The benchmark of ranges that move: every variant is right, and counts what it sends."""

from __future__ import annotations

import pytest

from bench.ranges.experiments import RangesParameters
from bench.ranges.run import RangesRun
from bench.ranges.variants import VARIANTS
from bench.ranges.workload import draw
from bench.silence.wire_sizes import wire_sizes
from tests.bench.test_silence import driving

SMALL = RangesParameters(
    devices=60, objects=4_000, seconds=24, arrivals_per_s=20.0, expiries_per_s=15.0, audited=40, audits=4
)
RADIUS_M = 400.0
LISTS = {"periodic-5": 120, "periodic-30": 0, "ap-plus-periodic-30": 0}
"""Audited of those that are right now and then only."""


def quiet(_stage, _done, _total):
    """Nobody is told."""


@pytest.fixture(scope="module")
def workload(city):
    return draw(city, driving(SMALL.seconds), SMALL, RADIUS_M)


@pytest.fixture(scope="module")
def rows(city, workload):
    sizes = wire_sizes(city, workload.happens.objects, 1)
    found = {}
    for name, variant in VARIANTS.items():
        run = RangesRun(name, variant, workload, SMALL)
        run.go(quiet)
        found[name] = run.figures(sizes)
    return found


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_shows_the_results_of_the_oracle(rows, name):
    row = rows[name]
    assert row["mismatches"] == 0
    assert row["lists_audited"] == LISTS.get(name, 160)


def test_more_slack_means_fewer_reports(rows):
    reports = {name: row["reports_per_device_hour"] for name, row in rows.items()}
    assert reports["anchored-0.0625"] > reports["anchored-0.5"] > reports["anchored-4"]
    assert reports["anchored-cost-ahead"] < reports["anchored-cost"] < reports["anchored-0.25"]
    assert reports["periodic-5"] == 600.0  # four times in 24 seconds
    assert rows["periodic-5"]["stale_share"] > 0.0 == rows["set-constant"]["stale_share"]
    assert rows["set-constant"]["pushes_per_device_hour"] > 0


def test_the_audit_notices_missing_notifications(workload):
    run = RangesRun("anchored-1", VARIANTS["anchored-1"], workload, SMALL)
    run.devices.learn = lambda _published: None
    move = run.devices.move
    run.devices.move = lambda second: move(second) if second < 3 else None
    run.go(quiet)
    assert run.audit.mismatches > 0


def test_the_experiment(run_experiments):
    settings = ["radius_m=300,600", "devices=20", "seconds=4", "objects=500"]
    rows = run_experiments("ranges/radius", settings=settings)["ranges/radius"]
    assert [row["variant"] for row in rows] == [*VARIANTS, *VARIANTS]
    assert [row["radius_m"] for row in rows] == [300.0] * len(VARIANTS) + [600.0] * len(VARIANTS)
