"""The suite rt-tree in miniature: every experiment runs, and every variant is exact."""

from __future__ import annotations

from bench.ap_tree.variants import VARIANTS
from bench.rt_tree.experiments import ORDERS, RT_TREE
from index.published.rt_tree import orders

SMALL = ("subscriptions=300", "objects=40", "history=50")


def test_every_experiment_runs(run_experiments):
    found = run_experiments("rt-tree", settings=SMALL)
    assert set(found) == {f"rt-tree/{one.name}" for one in RT_TREE.experiments}
    rows = [row for some in found.values() for row in some]
    assert all(row["lists_audited"] > 0 for row in rows)
    groups = {row.get("group") for row in rows} - {None}
    assert groups == {"short points", "short areas", "long points", "long areas"}
    for length in ("short", "long"):
        results = {row["group"]: row["results_per_object"] for row in found["rt-tree/figure-7"]}
        assert results[f"{length} areas"] > results[f"{length} points"]


def test_keywords_may_be_as_frequent(run_experiments):
    settings = ["data=uniform", *SMALL]
    found = run_experiments("rt-tree/line-up", settings=settings, variants=["rt-plus-plus-tree"])
    (row,) = found["rt-tree/line-up"]
    assert row["data"] == "uniform"


def test_orders_of_tokens_are_variants():
    assert ORDERS == orders.ORDERS
    assert all(f"rt-plus-plus-tree-{one}" in VARIANTS for one in ORDERS)
