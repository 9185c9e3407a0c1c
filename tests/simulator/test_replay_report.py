"""The figures of a replay: rates, and JSON."""

from __future__ import annotations

import json

import pytest

from nearcast import Counters
from simulator.replay.report import ReplayReport
from simulator.replay.timeline import Timeline


def test_rates_are_per_hour_in_which_devices_had_positions():
    """Of a run of ten hours, two devices are there for half an hour each, with a position every 2 s."""
    report = ReplayReport(devices=2, simulated_s=36_000.0, timeline=Timeline(18_001, 2.0))
    report.counters = Counters(moves=1_800, reports=12, bytes_sent=300, bytes_received=500)
    report.fixes = 90
    figures = report.figures()
    assert figures["reports_per_device_hour"] == report.reports_per_device_hour == 12.0
    assert figures["fixes_per_device_hour"] == 90.0
    assert figures["radio_bytes_per_device_hour"] == 800
    assert ReplayReport(devices=2, simulated_s=10.0).reports_per_device_hour == 0.0


def test_a_figure_without_a_value_is_null_in_json():
    def refuse(name):
        pytest.fail(f"{name} is no JSON")

    report = ReplayReport()
    found = json.loads(report.json(), parse_constant=refuse)
    assert found.keys() == report.figures().keys()
    assert found["publish_to_device_p50_ms"] is found["publish_to_device_p99_ms"] is None
    report.latencies.add(5.0)
    assert json.loads(report.json())["publish_to_device_p50_ms"] == pytest.approx(5.0, rel=0.02)
