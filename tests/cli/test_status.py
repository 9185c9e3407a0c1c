"""`nearcast status`: a table for people, JSON for programs, an exit status for scripts."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

import nearcast
from nearcast import GeoObject, TopK
from tests.cli.test_serve import AREA, COMMAND, ROOT, Process

pytestmark = pytest.mark.processes


def status(*arguments):
    return subprocess.run(
        [*COMMAND, "status", *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )


async def test_counters_of_a_server(tmp_path):
    process = Process(AREA, "--port=0", f"--store={tmp_path / 's.db'}")
    try:
        async with nearcast.connect(process.target) as client:
            await client.publisher().publish([GeoObject({"a"}, 14.5, 35.5, 60.0)])
            await (await client.attach("d", lon=14.5, lat=35.5)).subscribe(TopK({"a"}))
            done = status(f"--server={process.target}", "--json")
            table = status(f"--server={process.target}").stdout
            full = status(f"--server={process.target}", "--all").stdout
    finally:
        assert process.signal(signal.SIGTERM) == 0
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["state"] == "SERVING"
    assert found["gauges"]["devices.IN_SYNC"] == found["gauges"]["objects"] == 1
    assert found["counters"]["deltas_sent"] == 1
    assert found["limits"]["k_max"] == 100.0
    assert table.startswith("SERVING, server time ")
    shown = dict(line.split() for line in table.splitlines() if line.startswith("  "))
    assert shown["devices.IN_SYNC"] == shown["deltas_sent"] == "1"
    assert "deltas_dropped" not in shown
    assert "payload_bytes_max" not in shown
    assert "deltas_dropped" in full
    assert "payload_bytes_max" in full


def test_no_server():
    done = status("--server=localhost:1")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the server cannot be reached: UNAVAILABLE")
    assert done.stdout == ""
