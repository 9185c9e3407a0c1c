"""The benchmark of tokens: both servers are measured, and one intruder is beside honest devices."""

from __future__ import annotations

import pytest

SMALL = ["devices=8", "objects=500", "seconds=0.3", "rounds=1"]


@pytest.mark.slow
def test_the_experiments(run_experiments):
    found = run_experiments("authentication", settings=SMALL)
    reports, single, batch = found["authentication/cost"]
    assert "report" in reports["what"]
    for row in (reports, single, batch):
        assert row["open_per_s"] > 0
        assert row["guarded_per_s"] > 0
        assert row["cpu_ratio"] > 0
    (intruder,) = found["authentication/intruder"]
    assert 0 < intruder["p99_ms_without_min"] <= intruder["p99_ms_without"]
    assert intruder["p99_ms_beside"] <= intruder["p99_ms_beside_max"]
    assert intruder["is_kept"] is (intruder["p99_ms_beside"] <= intruder["p99_ms_without_max"])
