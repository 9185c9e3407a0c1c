"""The suite skype in miniature: every experiment runs, and every system is exact."""

from __future__ import annotations

import pytest

from bench.skype.experiments import SKYPE, SkypeParameters
from bench.skype.run import SYSTEMS, SkypeRun
from bench.skype.workload import SkypeWorkload

SMALL = ("subscriptions=50", "window=60", "messages=20", "k=3", "batch=10")
PARAMETERS = SkypeParameters(subscriptions=100, window=150, messages=100, k=4, batch=20, audited=30)


def quiet(_stage, _done, _total):
    """Nobody is told."""


def measure(name, data, parameters):
    """Measure a system on a workload of these data."""
    run = SkypeRun(SYSTEMS[name], SkypeWorkload(data, parameters), quiet)
    run.go(60.0)
    return run.figures()


@pytest.mark.slow
def test_every_experiment_runs(run_experiments):
    found = run_experiments("skype", settings=SMALL, variants=["igpt-cskyband", "igpt-kmax"])
    assert set(found) == {f"skype/{one.name}" for one in SKYPE.experiments}
    assert [row["factor"] for row in found["skype/figure-10"]] == [1, 2, 3, 4, 5, 6, 1, 6]
    assert all(row["messages"] == 20 for name in found for row in found[name] if name[-2:] != "20")
    assert sum(row["changes_per_message"] for rows in found.values() for row in rows) > 0


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_is_exact(city, name):
    row = measure(name, city, PARAMETERS)
    assert (row["lists_audited"], row["mismatches"]) == (30, 0)
    assert row["messages"] == 100


def test_windows_of_time_and_keywords_by_zipf(city):
    parameters = SkypeParameters(
        subscriptions=100, window=150, messages=200, k=4, seconds=30, zipf=True, audited=30
    )
    row = measure("ours", city, parameters)
    assert (row["lists_audited"], row["mismatches"]) == (30, 0)
    assert row["messages"] > 150


def test_a_forgotten_change_is_noticed(city):
    parameters = PARAMETERS.changed(audited=100)
    run = SkypeRun(SYSTEMS["ours"], SkypeWorkload(city, parameters), quiet)
    publish = run.engine.publish

    def forgetful(objects, expiry_ms):
        found = publish(objects, expiry_ms)
        return found._replace(changes=found.changes[1:])

    run.engine.publish = forgetful
    run.go(60.0)
    assert run.audit.mismatches > 0
