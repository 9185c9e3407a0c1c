"""The suite ap-tree in miniature: every experiment runs, and every variant is exact."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bench.ap_tree.building import build
from bench.ap_tree.experiments import AP_TREE, ApTreeParameters
from bench.ap_tree.rebuild import slices
from bench.ap_tree.variants import VARIANTS
from bench.ap_tree.workload import draw
from bench.peers import postgres
from bench.rt_tree.experiments import ORDERS
from index.naive import NaiveClauseIndex
from index.published.clause_cells.workload_kernels import frequency_of
from tests.index.boxes import BoxDice, insert, matched, move
from tests.index.brute import ids

SMALL = ("subscriptions=400", "objects=60", "history=100")


@pytest.fixture
def run(run_experiments):
    """Run an experiment in miniature; return its rows."""

    def run_small(name):
        return run_experiments(f"ap-tree/{name}", settings=SMALL)[f"ap-tree/{name}"]

    return run_small


def test_every_variant_is_exact(run):
    rows = run("peers")
    assert {row["variant"] for row in rows} == {
        name for name in VARIANTS if not name.startswith("ap-tree-") and not name.endswith(ORDERS)
    }
    assert all(row["mismatches"] == 0 for row in rows)
    assert all((row["lists_audited"] > 0) != ("skipped" in row) for row in rows)
    assert sum(row.get("results_per_object", 0) for row in rows) > 0


@pytest.mark.parametrize(
    "experiment", [one.name for one in AP_TREE.experiments if one.name not in ("peers", "rebuild")]
)
def test_every_experiment_runs(run, experiment):
    rows = run(experiment)
    assert rows
    if experiment in {"figure-16", "figure-17"}:
        assert all(row["us_per_insert_settled"] >= row["us_per_insert"] > 0 for row in rows)
    if experiment == "figure-18":
        assert all(row["clauses"] > row["subscriptions"] for row in rows)


def test_indexes_are_settled_after_insertions(city):
    parameters = ApTreeParameters(
        subscriptions=4_000, objects=100, history=500, theta_kl=0.0001, first_share=0.5
    )
    workload = draw(city, parameters)
    built = build(VARIANTS["ap-tree"], "ap-tree", city, workload, parameters, lambda *_: None)
    assert built.insertions.rebuilds > 0
    assert built.insertions.settled_us > built.insertions.us
    (last,) = slices(built.clause_index)
    assert last.wall_ms >= 0.0, "one slice that finds nothing to do"
    built.clause_index.check()


@pytest.mark.parametrize("name", ["iq-tree-subscriptions", "rq-tree"])
def test_a_cost_model_knows_the_keywords_of_the_history(city, name):
    parameters = ApTreeParameters(subscriptions=300, objects=10, history=3_000)
    workload = draw(city, parameters)
    index = build(VARIANTS[name], name, city, workload, parameters, lambda *_: None).clause_index
    required = np.unique(workload.required.ids)
    of_objects, of_clauses = (
        np.bincount(lists.ids, minlength=required[-1] + 1)[required]
        for lists in (workload.history.keywords, workload.required)
    )
    arrays = index._arrays()  # noqa: SLF001 - what it has learned is in its arrays alone
    believed = [frequency_of(arrays, word) for word in required.tolist()]
    assert believed == pytest.approx((of_objects + of_clauses) / (3_000 + 300))
    index.check()


def test_a_rebuild_is_a_histogram(run):
    (row,) = run("rebuild")
    assert 0 < row["slices_under_50_ms"] <= row["slices"]


@pytest.mark.skipif(postgres.missing() is not None, reason=str(postgres.missing()))
def test_postgresql_finds_the_matches_of_the_naive_index():
    dice = BoxDice(5)
    peer, naive = postgres.PostgresIndex(), NaiveClauseIndex()
    clauses = [dice.clause(key) for key in range(300)]
    moved = [dataclasses.replace(one, box=dice.box()) for one in clauses[:50]]
    objects = [dice.area_object(key) for key in range(80)]
    for index in (peer, naive):
        insert(index, clauses)
        move(index, moved)
        index.remove(ids(range(40, 90)))
    assert len(peer) == len(naive) == 250
    found = matched(peer, objects)
    assert found == matched(naive, objects)
    assert [matched(peer, [one])[0] for one in objects[:9]] == found[:9]
    assert any(found)
    with pytest.raises(KeyError, match="id 1 is already"):
        insert(peer, [dice.clause(1)])
