"""`nearcast bench rt-tree` in miniature: every experiment runs, and every variant is exact."""

from __future__ import annotations

import pytest

from bench.rt_tree.run import EXPERIMENTS, VARIANTS

SMALL = ("--subscriptions=300", "--objects=40", "--history=50")


def test_every_experiment_runs(run_bench):
    rows = run_bench("rt-tree", *(f"--experiment={name}" for name in EXPERIMENTS), *SMALL)
    assert {row["experiment"] for row in rows} == set(EXPERIMENTS)
    assert all(row["mismatches"] == 0 for row in rows)
    assert all(row["lists_audited"] > 0 for row in rows)
    groups = {row.get("group") for row in rows} - {None}
    assert groups == {"short points", "short areas", "long points", "long areas"}
    for length in ("short", "long"):
        found = {
            row["group"]: row["results_per_object"] for row in rows if row["experiment"] == "figure-7"
        }
        assert found[f"{length} areas"] > found[f"{length} points"]


def test_keywords_may_be_as_frequent(run_bench):
    options = ("--data=uniform", "--variant=rt-plus-plus-tree", "--experiment=line-up", *SMALL)
    (row,) = run_bench("rt-tree", *options)
    assert row["data"] == "uniform"
    assert row["mismatches"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--experiment=figure-9"], "experiment is 'figure-9', must be one of figure-6, "),
        (["--variant=r-tree"], "variant is 'r-tree'"),
    ],
)
def test_what_is_not_known_is_named(refused, arguments, said):
    assert said in refused("rt-tree", *arguments)
    assert "rt-plus-tree-df" in VARIANTS
