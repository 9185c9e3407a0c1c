"""The benchmark of gateways: real ones, in front of a real server."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.processes


@pytest.mark.slow
def test_the_load(run_experiments):
    settings = ["devices=20,40", "objects=2000", "seconds=0.3", "rounds=1"]
    rows = run_experiments("gateway/load", settings=settings)["gateway/load"]
    assert [row["devices"] for row in rows] == [20, 40]
    for row in rows:
        assert row["reports_per_s"] > 0
        assert row["reports_cpu_us"] > 0
        assert row["pushed_cpu_us"] > 0
        assert row["lists_audited"] == 20


@pytest.mark.slow
def test_a_crowd_is_spread_over_gateways(run_experiments):
    settings = ["devices=50", "objects=2000", "gateways=2"]
    (row,) = run_experiments("gateway/crowd", settings=settings, picture_bytes_min=0)["gateway/crowd"]
    assert (row["gateways"], row["devices"]) == (2, 50)
    assert row["kb_per_socket"] > 0
    assert row["lists_audited"] == 40, "a sample of each gateway's devices"
