"""`nearcast status`: a table for people, JSON for programs, an exit status for scripts."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import threading

import pytest

import nearcast
import server.main
from cli.status import _table
from nearcast import CallerUsage, GeoObject, ServerState, ServerStatus, TopK
from server.settings import ServerSettings
from tests.cli.test_serve import AREA, COMMAND, ROOT, Process
from tests.sdk.conftest import until

pytestmark = pytest.mark.processes


def status(*arguments):
    return run("status", *arguments)


def cluster_status(*arguments):
    return run("cluster", "status", *arguments)


def run(*arguments):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)


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
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert found["distributions"]["commit_us"]["bounds"][-1] == "Infinity"
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


def test_callers_are_shown_by_their_use():
    callers = [
        CallerUsage("", name, share, time_us=1, stream_count=1, call_count=0, unread_bytes=0)
        for name, share in (("busy", 0.25), ("bus", 0.0000287))
    ]
    found = ServerStatus(ServerState.SERVING, 0, {"objects": 1}, {}, {}, callers=tuple(callers))
    lines = _table(found, everything=False).splitlines()
    assert [line.split() for line in lines[-2:]] == [["busy", "25"], ["bus", "0"]]


async def test_virtual_time_that_exceeds_all_dates():
    process = Process(AREA, "--port=0", "--store=:memory:", "--virtual-time")
    commands = (("status",), ("top", "--once", "--interval-s=0.1"))
    shown = []
    try:
        async with nearcast.connect(process.target) as client:
            for time_ms in (0, 10**15):
                await client.advance_clock(time_ms)
                shown += [run(*command, f"--server={process.target}").stdout for command in commands]
    finally:
        assert process.signal(signal.SIGTERM) == 0
    assert ["server time 1970-01-01 00:00:00 UTC" in text for text in shown] == [True, True, False, False]
    assert all("server time 1,000,000,000,000,000 ms" in text for text in shown[2:])


def test_no_server():
    done = status("--server=localhost:1")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the server cannot be reached: UNAVAILABLE")
    assert done.stdout == ""


def test_the_next_server_of_a_cluster_is_requested_if_one_does_not_respond():
    process = Process(AREA, "--port=0", "--store=:memory:")
    try:
        with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts connections only
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            done = cluster_status(f"--server=localhost:1,{address},{process.target}")
    finally:
        assert process.signal(signal.SIGTERM) == 0
    assert done.returncode == 0
    assert done.stdout == f"{process.target} is a server by itself, not the node of a cluster\n"
    first, second = done.stderr.splitlines()
    assert first.startswith("localhost:1 does not respond: the server cannot be reached")
    assert second.startswith(f"{address} does not respond: ")


def test_no_server_of_a_cluster():
    done = cluster_status("--server=localhost:1,localhost:2")
    assert (done.returncode, done.stdout) == (1, "")
    first, second = done.stderr.splitlines()
    assert first.startswith("localhost:1 does not respond: the server cannot be reached")
    assert second.startswith("Error: the server cannot be reached: UNAVAILABLE")


async def test_kernels_that_are_still_to_be_compiled_are_shown(tmp_path, monkeypatch):
    go_on = threading.Event()

    def compiling(_frame, _options, report, _run):
        for done in (0, 3):
            report(done, 10)
        go_on.wait(60)
        report(10, 10)
        return 10

    monkeypatch.setattr(server.main, "ready_kernels", compiling)
    reported = []
    settings = ServerSettings(area=(14.0, 35.0, 15.0, 36.0), store=str(tmp_path / "s.db"), port=0)
    one = server.main.Server(settings, on_compiling=lambda *numbers: reported.append(numbers))
    starting = asyncio.create_task(one.start())
    try:
        await until(lambda: reported == [(0, 10), (3, 10)])
        target = f"--server=127.0.0.1:{one.port}"
        shown = await asyncio.to_thread(status, target)
    finally:
        go_on.set()
        await starting
    try:
        after = await asyncio.to_thread(status, target)
    finally:
        await one.stop()
    assert shown.returncode == 1
    assert shown.stdout.startswith("RECOVERING, 7 kernels to compile, server time not known yet")
    assert after.stdout.startswith("SERVING, server time ")
