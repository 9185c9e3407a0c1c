"""The benchmark of a cluster: real nodes, over real servers of a log."""

from __future__ import annotations

import pytest

from cluster.local_servers import program

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(program() is None, reason="nats-server is not installed"),
]


@pytest.mark.slow
def test_devices_of_nodes_that_are_killed_are_exact_again(run_experiments):
    settings = ["devices=16", "objects=1000", "kills=2"]
    variants = ["fleet"]
    (row,) = run_experiments("cluster/takeover", settings=settings, variants=variants)["cluster/takeover"]
    assert (row["kills"], row["nodes"], len(row["runs_exact_s"])) == (2, 2, 2)
    assert row["struck"] > 0
    assert 0 < row["all_exact_s_p50"] <= row["all_exact_s_max"]
    assert row["lists_audited"] == 16


@pytest.mark.slow
def test_devices_of_nodes_that_are_stopped_are_away_for_a_while(run_experiments):
    settings = ["devices=16", "objects=1000", "kills=2"]
    (row,) = run_experiments("cluster/drain", settings=settings, variants=["drain"])["cluster/drain"]
    assert (row["stops"], row["nodes"], len(row["runs_away_s"])) == (2, 2, 2)
    assert row["struck"] > 0
    assert 0 < row["away_s_p50"] <= row["all_away_s_max"]
    assert row["lists_audited"] == 16


@pytest.mark.slow
def test_the_load_beside_a_single_server(run_experiments):
    settings = ["devices=12", "objects=1000", "seconds=0.3", "rounds=1"]
    (row,) = run_experiments("cluster/load", settings=settings)["cluster/load"]
    assert row["reports_cpu_ratio"] > 0
    assert row["several_reports_cpu_ratio"] > 0
    assert row["applied_cpu_ratio"] > 0
    assert row["log_cpu_us"] > 0
    assert row["publish_count"] > 0
    assert row["cluster_publish_count"] > 0
    assert row["lists_audited"] == 3 * 12


@pytest.mark.slow
def test_a_load_beside_what_is_planned_for_it(run_experiments):
    settings = ["devices=12", "objects=1000", "seconds=1", "rounds=1"]
    (row,) = run_experiments("cluster/plan", settings=settings)["cluster/plan"]
    assert row["reports_per_s"] > 0
    assert row["deltas_per_s"] > 0
    assert row["published_per_s"] > 0
    assert row["node_cores_ratio"] > 0
    assert row["node_mb_ratio"] > 0
    assert row["lists_audited"] == 12
