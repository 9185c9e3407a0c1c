"""The benchmark of a server process: it runs, is audited, and would notice what it looks for."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

from bench.server.lines import entry_count
from bench.server.measures import _PONG, PONG_NUMBER
from bench.server.processes import running
from bench.server.soak import is_flat, rise
from bench.server.workload import Workload, sent_ns
from nearcast.v1 import device_service_pb2, subscriptions_pb2

SMALL = ["objects=500", "seconds=0.2", "rounds=1"]


def check_single(row, devices):
    """A row of devices with a stream each."""
    for kind in ("pings", "reports"):
        ratio = row[f"{kind}_per_s"] / row[f"echo_{kind}_per_s"]
        assert row[f"{kind}_ratio"] == pytest.approx(ratio, abs=0.002)
    assert row["lists_audited"] == devices
    assert row["report_count"] > 0
    assert row["publish_count"] > 0
    assert row["kb_per_device"] > 0
    assert len(row["stalled_runs_ms_p99"]) == len(row["reading_runs_ms_p99"]) == 1


@pytest.mark.slow
def test_the_experiments(run_experiments):
    names = ["server/load", "server/storm", "server/metrics"]
    variants = ["shared", "fleet", "storm-fleet", "metrics"]
    found = run_experiments(*names, settings=["devices=12", *SMALL], variants=variants)
    (shared, fleet), (storm,), (metrics,) = (found[name] for name in names)
    assert metrics["scrapes"] >= 1
    assert metrics["metrics_cpu_ratio"] > 0
    assert storm["hellos"] == storm["snapshots_sent"] == storm["lists_audited"] == 12
    assert 0 <= storm["storm_s"] <= storm["exact_s_max"]
    assert 0 < storm["restart_s"] <= storm["exact_s_p50"] <= storm["exact_s_p99"] <= storm["exact_s_max"]
    assert storm["k"] == 10
    check_single(shared, 12)
    assert fleet["accepted_per_s"] > 0
    assert fleet["reanchors_ratio"] > 0
    assert 0 < fleet["answered_share"] <= 1
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


PATH_OF_IMPORTS = """
import os, sys
print("imports from", os.environ.get("PYTHONPATH"), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("is_other", [False, True])
def test_the_server_of_another_installation_imports_its_own_packages(monkeypatch, tmp_path, is_other):
    program = tmp_path / "program.py"
    program.write_text(PATH_OF_IMPORTS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    command = [sys.executable, str(program)] if is_other else []
    arguments = [] if is_other else ["program"]
    with running(arguments, "imports from ", tmp_path / "log", command=command) as process:
        assert process.address == str(None if is_other else tmp_path)


@pytest.mark.slow
def test_a_soak_reports_whether_memory_is_flat(run_experiments):
    settings = ["devices=12", "soak_s=3", *SMALL]
    (row,) = run_experiments("server/soak", settings=settings)["server/soak"]
    assert row["reconnects"] > 0
    assert len(row["samples"]) >= 10
    assert row["is_flat"] is is_flat(*rise(row["samples"]))
    assert row["lists_audited"] == 6


@pytest.mark.parametrize(("leak_mb_per_s", "flat"), [(0.0, True), (0.002, True), (0.05, False)])
def test_memory_that_grows_is_noticed(leak_mb_per_s, flat):
    chance = np.random.default_rng(3)
    times = np.arange(0.0, 1800.0, 6.0)
    warming = 40.0 * (1.0 - np.exp(-times / 60.0))
    samples = 200.0 + warming + leak_mb_per_s * times + chance.normal(0.0, 0.5, len(times))
    assert is_flat(*rise(list(zip(times.tolist(), samples.tolist(), strict=True)))) is flat


@pytest.mark.slow
def test_half_of_the_devices_may_have_boolean_subscriptions(run_experiments):
    settings = ["devices=8", *SMALL]
    found = run_experiments("server/half-boolean", settings=settings, variants=["connections"])
    (row,) = found["server/half-boolean"]
    assert row["boolean_share"] == 0.5
    assert row["mismatches"] == 0
    check_single(row, 8)


def test_messages_are_looked_into_without_decoding_them():
    response = device_service_pb2.AttachResponse(pong={"number": PONG_NUMBER})
    entry = device_service_pb2.AttachFleetResponse.Entry
    for names in ([], ["a"], ["a" * 300, "b", "c" * 20_000]):
        entries = [entry(device_id=name, response=response) for name in names]
        message = device_service_pb2.AttachFleetResponse(entries=entries).SerializeToString()
        assert entry_count(message) == len(names)
        assert message.endswith(_PONG) is bool(names)


def test_only_published_objects_are_timed(city):
    workload = Workload(city, 10, 5, 10, 1)
    (pushed,) = workload.pushed(1).objects
    entry = {"object": {"id": 1, "payload": pushed.payload}}
    for cause, is_timed in (
        (subscriptions_pb2.CAUSE_PUBLISHED, True),
        (subscriptions_pb2.CAUSE_REPORTED, False),
    ):
        delta = subscriptions_pb2.Delta(cause=cause, add=[entry])
        message = device_service_pb2.AttachResponse(delta=delta).SerializeToString()
        assert (sent_ns(message) > 0) is is_timed
