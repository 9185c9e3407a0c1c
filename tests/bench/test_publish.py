"""The benchmark of publishing: what it counts is on disk and with the devices."""

from __future__ import annotations

import numpy as np
import pytest

from bench.publish import run as publish
from bench.publish.run import VARIANTS, PublishParameters, measure

SMALL = PublishParameters(objects=3_000, subscriptions=60, publishers=3)


def quiet(_stage, _done, _total):
    """Nobody is told."""


def test_the_command_writes_rows_and_a_picture(run_bench):
    rows = run_bench("publish", "--objects=2000", "--subscriptions=40", "--batch=10", "--batch=300")
    assert [(row["variant"], row["objects_per_request"]) for row in rows] == [
        (name, batch) for name in VARIANTS for batch in (10, 300)
    ]
    assert all(row["objects_per_s"] > 0 and row["mismatches"] == 0 for row in rows)
    assert [row["lists_audited"] for row in rows] == [0, 0, 40, 40]


@pytest.mark.parametrize("name", VARIANTS)
def test_what_is_not_on_disk_is_noticed(monkeypatch, tmp_path, name):
    monkeypatch.setattr(publish, "_ids_on_disk", lambda _store: np.arange(1, 2_001))
    row = measure(name, 50, SMALL.workload(), SMALL, tmp_path, quiet)
    assert row["mismatches"] >= 1_000


def test_what_is_wrong_is_said_in_a_line(refused):
    assert "variant is 'fast', must be one of store, server" in refused("publish", "--variant=fast")
