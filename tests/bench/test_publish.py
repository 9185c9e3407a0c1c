"""The benchmark of publishing: what it counts is on disk and with the devices."""

from __future__ import annotations

import numpy as np
import pytest

from bench.publish import run as publish
from bench.publish.experiments import PublishParameters
from bench.publish.run import PublishBenchmark

SMALL = PublishParameters(objects=3_000, subscriptions=60, publishers=3, batch=50)
VARIANTS = PublishBenchmark.VARIANTS


def quiet(_stage, _done, _total):
    """Nobody is told."""


def test_the_experiment(run_experiments):
    settings = ["objects=2000", "subscriptions=40", "batch=10,300"]
    rows = run_experiments("publish", settings=settings)["publish/batches"]
    assert [(row["variant"], row["batch"]) for row in rows] == [
        (name, batch) for batch in (10, 300) for name in VARIANTS
    ]
    assert all(row["objects_per_s"] > 0 for row in rows)
    assert [row["lists_audited"] for row in rows] == [0, 40, 0, 40]


@pytest.mark.parametrize("name", VARIANTS)
def test_a_missing_commit_is_noticed(monkeypatch, tmp_path, name):
    monkeypatch.setattr(publish, "_ids_on_disk", lambda _store: np.arange(1, 2_001))
    parameters = SMALL.changed(folder=tmp_path)
    (row,) = PublishBenchmark([parameters], quiet).measure(name, parameters)
    assert row["mismatches"] >= 1_000
