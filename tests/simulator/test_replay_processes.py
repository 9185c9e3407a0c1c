"""A replay in several processes against a real server, and one in real time."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.serve import READY
from server.settings import load_settings
from simulator.replay.options import ReplayClock, ReplayError, ReplayOptions
from simulator.replay.processes import run
from simulator.replay.recording import Recording, Share
from simulator.replay.replay import Replay
from simulator.simulation import simulate
from tests.simulator.conftest import SMALL
from tests.support.servers import serving


@contextmanager
def served(area):
    """A server in a process of its own, as the replay's own processes block this one."""
    bounds = ",".join(map(str, area))
    command = [sys.executable, "-m", "cli", "serve", f"--area={bounds}", "--port=0", "--virtual-time"]
    command += ["--store=:memory:", "--log-level=WARNING"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith(READY)
            yield line.removeprefix(READY).strip()
        finally:
            process.terminate()


def test_shares_are_disjoint_and_complete(simulation):
    whole = Recording(simulation.path)
    parts = [Recording(simulation.path, Share(part, 3)) for part in range(3)]
    for tick, *shares in zip(whole.ticks(), *(one.ticks() for one in parts), strict=True):
        assert {one.number for one in shares} == {tick.number}
        assert sorted(fix for one in shares for fix in one.fixes) == tick.fixes
        assert all(one.fixes for one in shares)
    rows = [row for one in parts for row in one.subscriptions()]
    assert sorted(rows, key=str) == sorted(whole.subscriptions(), key=str)
    assert all(one.is_weighed() for one in parts)


@pytest.mark.processes
def test_two_processes_have_the_results_of_one(simulation):
    """Devices are divided, every list is exact, and the sums are those of the tables."""
    with served(simulation.world.area) as target:
        options = ReplayOptions(target, fleet_count=2, audit_every=10)
        report = run(simulation.path, options, 2).report
    ticks, lists = simulation.world.tick_count, simulation.subscriptions.num_rows
    assert report.processes == 2
    assert report.mismatches == []
    assert report.audited == lists * len({*range(0, ticks, 10), ticks - 1})
    assert report.devices == SMALL.devices
    assert report.subscriptions == lists
    assert report.counters.moves == SMALL.devices * (ticks - 1)
    assert report.objects_published == simulation.objects.num_rows
    assert report.reports_of_fixed == 0
    assert report.latencies.total > 0
    assert report.timeline.moments[-1].moves == report.counters.moves


@pytest.mark.processes
def test_a_failing_process_is_an_error_with_its_number(simulation, tmp_path):
    """A subscription that the server refuses, of a device of the other process: nobody is left behind."""
    folder = broken_for_followers(simulation, tmp_path)
    with served(simulation.world.area) as target:
        options = ReplayOptions(target, audit_every=10)
        with pytest.raises(ReplayError, match=r"process 2 of 2: .*alpha"):
            run(folder, options, 2)


def broken_for_followers(simulation, tmp_path):
    """A copy in which one device of the second share subscribes to something that no server takes."""
    folder = tmp_path / "broken"
    shutil.copytree(simulation.path, folder)
    (path,) = (folder / "subscriptions").glob("*.parquet")
    table = pq.read_table(path)
    is_other = [Share(1, 2).has(one) for one in table["device_id"].to_pylist()]
    alphas = [
        7.0 if other and alpha is not None else alpha
        for other, alpha in zip(is_other, table["alpha"].to_pylist(), strict=True)
    ]
    table = table.set_column(table.column_names.index("alpha"), "alpha", pa.array(alphas, pa.float64()))
    pq.write_table(table, path)
    return folder


@pytest.mark.parametrize("processes", [0, 65])
def test_a_number_of_processes_out_of_its_limits(simulation, processes):
    with pytest.raises(ReplayError, match=f"processes is {processes}, must be within 1..64"):
        run(simulation.path, ReplayOptions("127.0.0.1:1"), processes)


async def test_real_time(spark, tmp_path):
    """A server on the clock of the wall: lists are exact, but for those that turn on a moment."""
    parameters = SMALL.changed(
        devices=12, seconds=3, period_ms=250, arrivals_per_s=20.0, ttl_s_min=1.0, ttl_s_mean=3.0
    )
    folder = tmp_path / "real"
    await asyncio.to_thread(simulate, parameters, folder, spark=spark, partitions=1)
    world = Recording(folder).world
    settings = load_settings({"area": list(world.area), "store": ":memory:", "port": 0})
    async with serving(settings) as server:
        target = f"127.0.0.1:{server.port}"
        options = ReplayOptions(target, audit_every=2, clock=ReplayClock.parse("real"))
        report = await Replay(Recording(folder), options).run()
    assert report.mismatches == []
    assert report.audited > 4 * report.undecided
    assert report.elapsed_s >= 3.0
    assert report.latencies.total > 0
    assert report.devices == 12
