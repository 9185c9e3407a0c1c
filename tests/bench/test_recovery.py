"""The benchmark of recovery: all comes back, and it would be noticed if it did not."""

from __future__ import annotations

import sqlite3

import pytest

from bench.recovery import run as recovery
from bench.recovery.experiments import RecoveryParameters
from bench.recovery.run import measure

SMALL = RecoveryParameters(objects=700, subscriptions=500, attached=500, audited=40)


def quiet(_stage, _done, _total):
    """Nobody is told."""


@pytest.mark.slow
def test_the_experiment(run_experiments):
    found = run_experiments("recovery/sizes", settings=["objects=400,900", "payload_bytes=10"])
    (small, large) = found["recovery/sizes"]
    assert (small["objects"], large["objects"]) == (400, 900)
    for row in (small, large):
        assert (row["lists_audited"], row["mismatches"], row["missing"]) == (100, 0, 0)
        assert row["seconds"] > 0.0
        assert row["bytes_per_subscription"] < 100_000
        assert row["attached"] == row["subscriptions"]


@pytest.mark.slow
def test_the_audit_notices_missing_objects(monkeypatch, tmp_path):
    """Between the two processes some rows are taken away."""
    in_process = recovery.in_process

    def robbed(work, arguments, progress):
        row = in_process(work, arguments, progress)
        if work is recovery.fill:
            database = sqlite3.connect(arguments[1])
            database.execute("DELETE FROM objects WHERE object_id <= 300")
            database.execute("DELETE FROM subscriptions WHERE device_id = 'device-00000499'")
            database.commit()
            database.close()
        return row

    monkeypatch.setattr(recovery, "in_process", robbed)
    row = measure(SMALL.changed(folder=tmp_path), quiet)
    assert row["missing"] == 301
    assert row["mismatches"] > 301
    assert list(tmp_path.iterdir()) == []
