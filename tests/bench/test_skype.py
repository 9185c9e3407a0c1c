"""`nearcast bench skype` in miniature: every experiment runs, and every system is exact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.skype.run import EXPERIMENTS, SYSTEMS, SkypeRun, measure
from bench.skype.workload import SkypeParameters, SkypeWorkload

SMALL = ("--subscriptions=50", "--window=60", "--messages=20", "--k=3", "--batch=10")
PARAMETERS = SkypeParameters(100, 150, messages=100, k=4, batch=20, audited=30)


def quiet(_stage, _done, _total):
    """Nobody is told."""


def test_every_experiment_runs(run_bench):
    names = [f"--experiment={name}" for name in EXPERIMENTS]
    rows = run_bench("skype", *SMALL, *names, "--variant=igpt-cskyband", "--variant=igpt-kmax")
    assert {row["experiment"] for row in rows} == set(EXPERIMENTS)
    assert all(row["messages"] == 20 for row in rows if row["experiment"] != "figure-20")
    assert sum(row["changes_per_message"] for row in rows) > 0
    assert all(row["mismatches"] == 0 for row in rows)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_is_exact(city, name):
    row = measure(SYSTEMS[name], city, PARAMETERS, 60.0, quiet)
    assert (row["lists_audited"], row["mismatches"]) == (30, 0)
    assert row["messages"] == 100


def test_windows_of_time_and_keywords_by_zipf(city):
    parameters = SkypeParameters(100, 150, messages=200, k=4, seconds=30, zipf=True, audited=30)
    row = measure(SYSTEMS["ours"], city, parameters, 60.0, quiet)
    assert (row["lists_audited"], row["mismatches"]) == (30, 0)
    assert row["messages"] > 150


def test_a_forgotten_change_is_noticed(city):
    parameters = replace(PARAMETERS, audited=100)
    run = SkypeRun(SYSTEMS["ours"], SkypeWorkload(city, parameters), quiet)
    publish = run.engine.publish

    def forgetful(objects, expiry_ms):
        found = publish(objects, expiry_ms)
        return found._replace(changes=found.changes[1:])

    run.engine.publish = forgetful
    run.go(60.0)
    assert run.audit.mismatches > 0
