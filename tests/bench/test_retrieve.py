"""The benchmark of object indexes: every variant is right, and would be caught if it were not."""

from __future__ import annotations

import numpy as np
import pytest

from bench.retrieve import run as retrieve
from bench.retrieve.experiments import RETRIEVE, RetrieveParameters
from bench.retrieve.run import VARIANTS, Retrieve, RetrieveBenchmark
from bench.runner import affordable
from index.catalogue import OBJECT_INDEXES
from index.naive import NaiveObjectIndex

SMALL = RetrieveParameters(
    objects=800, searches=60, singles=20, large_batch=150, small_batch=20, audited=60
)


def quiet(_stage, _done, _total):
    """Nobody is told."""


@pytest.fixture(scope="module")
def workload(city):
    return Retrieve(city, SMALL)


def measure(name, workload, parameters):
    """Measure a variant on a workload that is there."""
    benchmark = RetrieveBenchmark([parameters], quiet)
    benchmark.workload = lambda _parameters: workload
    return benchmark.measure(name, affordable(benchmark, name, parameters))


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_finds_the_results_of_the_oracle(workload, name):
    rows = measure(name, workload, SMALL.changed(extras=(0, 5)))
    assert [row["extra"] for row in rows] == [0, 5]
    for row in rows:
        assert (row["lists_audited"], row["mismatches"]) == (60, 0)
        assert row["objects"] == 800
        assert row["bytes_per_object"] > 0
        assert (row["subscriptions_measured"], row["subscriptions_in_batch"]) == (20, 60)


def test_all_object_indexes_of_the_catalogue_are_variants():
    assert set(VARIANTS) == {*OBJECT_INDEXES, "inverted-file"}
    assert {name for one in RETRIEVE.experiments for name in one.variants} == set(VARIANTS)


class Forgetful(NaiveObjectIndex):
    """Moves some objects away."""

    def insert(self, objects):
        super().insert(objects)
        if len(objects) > 100:
            self._table.rows["x_m"][:100] += 1e7


def test_the_audit_notices_a_wrong_list(city, monkeypatch):
    monkeypatch.setitem(retrieve.VARIANTS, "forgetful", Forgetful)
    (row,) = measure("forgetful", Retrieve(city, SMALL), SMALL.changed(extras=(4,)))
    assert row["mismatches"] > 5


def test_a_small_budget_means_fewer_objects_and_results(city):
    parameters = RetrieveParameters(objects=12_000, searches=40, audited=20, extras=(1,), budget_s=1e-6)
    (row,) = measure("naive", Retrieve(city, parameters), parameters)
    assert row["objects"] < 12_000
    assert (row["subscriptions_measured"], row["subscriptions_in_batch"]) == (10, 10)
    assert (row["lists_audited"], row["mismatches"]) == (10, 0)


def test_the_experiments(run_experiments):
    settings = ["objects=700", "extras=0,3", "budget_s=20"]
    found = run_experiments("retrieve/published", settings=settings)
    rows = found["retrieve/published"]
    assert {row["variant"] for row in rows} == set(VARIANTS) - {"naive"}
    assert [row["extra"] for row in rows] == [0, 3] * 5
    assert all(np.isfinite(row["inserts_per_s"] + row["removes_per_s_small"]) for row in rows)
