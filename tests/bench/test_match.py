"""The benchmark of subscription indexes: every variant is right, and would be caught if it were not."""

from __future__ import annotations

import numpy as np
import pytest

from bench import datasets
from bench.match.audits import MatchAudit
from bench.match.experiments import MatchParameters
from bench.match.run import VARIANTS, MatchBenchmark
from bench.match.workload import prepare
from index.batches import Matches
from index.naive import NaiveSubscriptionIndex
from safe_region.scoring.formulas import Similarity

SMALL = MatchParameters(subscriptions=400, objects=600, arrivals=60, moved=100, audited=60)


def quiet(_stage, _done, _total):
    """Nobody is told."""


@pytest.fixture(scope="module", params=["jaccard", "dice", "cosine"])
def workload(request, city):
    return prepare(city, SMALL.changed(similarity=request.param), quiet)


def measure(name, workload, audit, count=400):
    """Measure a variant on a workload that is there."""
    parameters = SMALL.changed(subscriptions=count)
    benchmark = MatchBenchmark([parameters], quiet)
    benchmark.workload = lambda _parameters: (workload, audit)
    (row,) = benchmark.measure(name, parameters)
    return row


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_finds_the_matches_of_the_definition(workload, name):
    audit = MatchAudit(workload, SMALL.audited)
    assert sum(map(len, audit.expected)) > 100
    row = measure(name, workload, audit)
    assert (row["lists_audited"], row["mismatches"]) == (120, 0)
    assert row["objects_measured"] == 60
    assert row["subscriptions"] == 400
    assert row["bytes_per_subscription"] > 0


def test_the_audit_notices_missing_and_excess_matches(workload):
    index = NaiveSubscriptionIndex()
    index.insert(workload.reaches, workload.interests)
    found = index.match(workload.arrivals)
    audit = MatchAudit(workload, 60)
    assert audit.mismatches(found, 400) == 0
    row = int(np.argmax(np.diff(found.offsets)))
    assert audit.mismatches(Matches(found.offsets, np.where(found.ids > 0, 1, 0)), 400) > 0
    fewer = np.concatenate([found.offsets[: row + 1], found.offsets[row + 1 :] - 1])
    less = Matches(fewer, np.delete(found.ids, found.offsets[row]))
    assert audit.mismatches(less, 400) == 1


def test_reaches_are_lengths_of_objects_or_infinite(workload):
    finite = np.isfinite(workload.reaches.reach_m)
    assert 0 < finite.sum() < 400
    assert set(workload.reaches.reach_id[finite]) <= set(workload.live.ids)


def test_the_first_subscriptions_of_a_workload_are_a_workload(workload):
    some = workload.first(150)
    audit = MatchAudit(workload, 60)
    row = measure("naive", some, audit, 150)
    assert row["mismatches"] == 0
    assert MatchAudit(some, 60).expected == [[i for i in ids if i <= 150] for ids in audit.expected]


def test_subscriptions_are_all_distinct():
    """Places without a spread and few keywords: most would be drawn twice."""
    flat = datasets.Dataset(
        "flat", np.zeros(3), np.zeros(3), datasets.KeywordLists.of([[1], [2], [1, 2]]), 1e-9
    )
    drawn = datasets.distinct_subscriptions(flat, 50, 2, Similarity.DICE, np.random.default_rng(1))
    assert len(datasets.repeated_rows(drawn)) == 0
    twice = datasets.Subscriptions(
        drawn.handles[:4],
        datasets.InterestBatch(
            np.ones(4), np.ones(4, dtype=np.int8), datasets.KeywordLists.of([[1], [1, 2], [1], [1]])
        ),
        np.ones(4),
        np.array([3, 3, 3, 4]),
        np.zeros(4),
        np.zeros(4),
    )
    assert datasets.repeated_rows(twice).tolist() == [2]
    replaced = datasets.replaced(twice, np.array([2]), drawn)
    assert datasets.repeated_rows(replaced).tolist() == []
    assert replaced.interests.keywords.row(2).tolist() == drawn.interests.keywords.row(0).tolist()


def test_the_experiments(run_experiments):
    small = ["subscriptions=100,300", "objects=900", "budget_s=20"]
    rows = run_experiments("match/fixed-objects", settings=small)["match/fixed-objects"]
    assert [row["variant"] for row in rows] == [*VARIANTS, *VARIANTS]
    assert {row["objects"] for row in rows} == {900}
    found = run_experiments("match/constant-results", settings=small, variants=["sq-plus-tree"])
    rows = found["match/constant-results"]
    assert [(row["subscriptions"], row["objects"]) for row in rows] == [(100, 300), (300, 900)]
    assert all(row["candidates_per_result"] >= 1.0 for row in rows)
