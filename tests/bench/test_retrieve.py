"""The benchmark of object indexes: every variant is right, and would be caught if it were not."""

from __future__ import annotations

import numpy as np
import pytest

from bench.retrieve import run as retrieve
from bench.retrieve.run import VARIANTS, Retrieve, RetrieveParameters
from index.catalogue import OBJECT_INDEXES
from index.naive import NaiveObjectIndex

SMALL = RetrieveParameters(
    objects=800, location_requests=60, singles=20, large_batch=150, small_batch=20, audited=60
)


def quiet(_stage, _done, _total):
    """Nobody is told."""


@pytest.fixture(scope="module")
def workload(city):
    return Retrieve(city, SMALL)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_finds_what_the_oracle_says(workload, name):
    rows = workload.measure(name, (0, 5), 60.0, quiet)
    assert [row["extra"] for row in rows] == [0, 5]
    for row in rows:
        assert (row["lists_audited"], row["mismatches"]) == (60, 0)
        assert row["objects"] == 800
        assert row["bytes_per_object"] > 0
        assert (row["subscriptions_measured"], row["subscriptions_in_batch"]) == (20, 60)


def test_all_object_indexes_of_the_catalogue_are_variants():
    assert set(VARIANTS) == {*OBJECT_INDEXES, "inverted-file"}


class Forgetful(NaiveObjectIndex):
    """Moves some objects away."""

    def insert(self, objects):
        super().insert(objects)
        if len(objects) > 100:
            self._table.rows["x_m"][:100] += 1e7


def test_the_audit_notices_a_wrong_list(city, monkeypatch):
    monkeypatch.setitem(retrieve.VARIANTS, "forgetful", Forgetful)
    (row,) = Retrieve(city, SMALL).measure("forgetful", (4,), 60.0, quiet)
    assert row["mismatches"] > 5


def test_a_small_budget_means_fewer_objects_and_answers(city):
    workload = Retrieve(city, RetrieveParameters(objects=12_000, location_requests=40, audited=20))
    (row,) = workload.measure("naive", (1,), 1e-6, quiet)
    assert row["objects"] < 12_000
    assert (row["subscriptions_measured"], row["subscriptions_in_batch"]) == (10, 10)
    assert (row["lists_audited"], row["mismatches"]) == (10, 0)


def test_the_command_writes_rows_and_a_picture(run_bench):
    rows = run_bench("retrieve", "--objects=700", "--extra=0", "--extra=3", "--budget-s=20")
    assert {row["variant"] for row in rows} == set(VARIANTS) - {"naive"}
    assert {row["extra"] for row in rows} == {0, 3}
    assert all(np.isfinite(row["inserts_per_s"] + row["removes_per_s_small"]) for row in rows)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--variant=best"], "variant is 'best', must be one of naive, iqf, iqf-plus, iq-tree"),
        (["--data=osm"], "set NEARCAST_DATA to the folder that holds text/pois_malta.csv.gz"),
        (["--extra=-1"], "-1 is not in the range 0<=x<=1000"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(refused, arguments, said):
    assert said in refused("retrieve", *arguments)
