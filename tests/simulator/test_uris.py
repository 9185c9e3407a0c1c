"""Simulations on a file system that only Spark can open; paths that must lie on this machine's disk."""

import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from cli.app import app
from feeds.storage import StorageError
from simulator import schemas
from simulator.checks.check import check
from simulator.errors import StageError
from simulator.parameters.traces import TraceParameters
from simulator.simulation import SimulationError, load, root_of, simulate
from simulator.stages import Stages
from simulator.traces.run import simulate_traces
from simulator.workload.feeds import FEEDS_FOLDER
from tests.simulator.conftest import SMALL
from tests.simulator.traces.trace_files import walk, write_csv
from tests.support.spark_home import spark_home

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = "hdfs://host/there"


def marks(folder):
    return {path.stem: path.stat().st_mtime_ns for path in (folder / "stages").glob("*.json")}


def test_a_simulation_may_lie_on_another_file_system(simulation, view, tmp_path, spark):
    where = f"{view}/city"
    found = simulate(SMALL, where, spark=spark, partitions=3, feed_slice_s=30)
    assert not Path(where).exists()
    for name in schemas.TABLES:
        assert getattr(found, name).equals(getattr(simulation, name)), name
        assert found.row_count(name) == simulation.row_count(name)
    assert found.world == simulation.world
    assert pa.concat_tables(found.slices()).equals(simulation.trajectories)
    assert [one for one in check(found, spark) if one.violations] == []
    # The same files, seen from this machine.
    assert load(tmp_path / "city").objects.equals(simulation.objects)
    feeds = tmp_path / "city" / FEEDS_FOLDER
    assert {path.name for path in feeds.rglob("*") if path.name[0] != "."} == {
        *("messages", "subscriptions"),
        *(f"{number:06d}.parquet" for number in range(SMALL.seconds // 30 + 1)),
    }


@pytest.mark.slow
def test_a_run_is_resumed_where_it_ended(view, tmp_path, spark):
    where, folder = f"{view}/city", tmp_path / "city"
    simulate(SMALL, where, spark=spark)
    before = marks(folder)
    (folder / "world.json").unlink()
    for name in ("objects", "idf"):
        next((folder / name).glob("*.parquet")).unlink()
    (folder / "notes.txt").write_text("mine")
    Stages(folder).run("points", {}, lambda points: points.mkdir())  # of traces
    with pytest.raises(SimulationError, match=rf"{where}/world\.json is missing"):
        load(root_of(where, spark))
    simulate(SMALL, where, spark=spark)
    after = marks(folder)
    assert {name for name in after if after[name] != before[name]} == {"objects", "idf"}
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / "points").exists()
    (folder / "texts").mkdir()
    with pytest.raises(
        StageError, match=rf"out is {where}, must .* the table texts would replace {where}"
    ):
        simulate(SMALL, where, spark=spark)
    with pytest.raises(SimulationError, match=f"{where}/nowhere is not a folder"):
        load(root_of(f"{where}/nowhere", spark))
    (folder / "roads" / "part-00000.parquet").write_bytes(b"not Parquet")
    (folder / "roads" / ".part-00000.parquet.crc").unlink()
    with pytest.raises(SimulationError, match=f"the table roads in {where} cannot be read"):
        load(root_of(where, spark))


@pytest.mark.slow
def test_traces_may_become_one_there(view, tmp_path, spark):
    path = write_csv(tmp_path / "taxis.csv", [("a", *point) for point in walk(60)])
    found = simulate_traces([path], TraceParameters(), f"{view}/taxis", spark=spark, partitions=2)
    assert found.positions == load(tmp_path / "taxis").row_count("trajectories") > 0
    assert (tmp_path / "taxis" / "points").is_dir()


@pytest.mark.slow
def test_commands_that_read_one(simulation, view, tmp_path, spark, monkeypatch):
    monkeypatch.setattr("simulator.session.simulator_session", lambda *_: nullcontext(spark))
    (tmp_path / "city").symlink_to(simulation.path)
    where = f"{view}/city"

    def run(*arguments):
        result = CliRunner().invoke(app, ["simulate", *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    assert f"{where}: " in run("check", where)
    plots, out = tmp_path / "plots", tmp_path / "out"
    described = run("describe", where, "--plots", str(plots), "--beside", str(simulation.path))
    assert f"{where}: {simulation.world.name}" in described
    assert (plots / "map.png").is_file()
    run("export", where, "--table", "places", "--out", str(out))
    assert len(json.loads((out / "places.geojson").read_text())["features"]) == simulation.places.num_rows
    missing = CliRunner().invoke(app, ["simulate", "check", f"{view}/nowhere"])
    assert missing.exit_code == 1
    assert f"Error: {view}/nowhere is not a folder" in missing.output


def test_a_file_system_that_is_not_there_is_named(spark):
    with pytest.raises(StorageError, match=r"nofs://there/x: .*UnsupportedFileSystem"):
        simulate(SMALL, "nofs://there/x", spark=spark)


@pytest.mark.slow
@pytest.mark.processes
def test_from_a_simulation_to_results_without_a_path(tmp_path):
    """Commands and executors are processes of their own, whose Spark knows the view by a setting."""
    (tmp_path / "data").mkdir()
    (tmp_path / "memory").mkdir()
    view = "viewfs://own/data"
    mount = f"spark.hadoop.fs.viewfs.mounttable.own.link./data={(tmp_path / 'data').as_uri()}"
    # Workers of a local cluster write below SPARK_HOME.
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SPARK_HOME": str(spark_home(tmp_path))}

    def run(*arguments):
        command = [sys.executable, "-m", "cli", *arguments, "--conf", mount, "--driver-memory=512m"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    message = run(
        *("simulate", "--master=local-cluster[2,1,1024]", "--out", f"{view}/city", "--stream"),
        *("--devices=40", "--seconds=20", "--stationary-share=1"),
        *("--city-width-m=4000", "--place-count=300", "--objects=400"),
    )
    found = load(tmp_path / "data" / "city")
    assert f"{view}/city: {found.row_count('roads')} roads, {40 * 21} positions" in message
    run(
        *("stream", "run", "--master=local[2]", "--once", "--window=10m", "--partitions=2"),
        *("--area", f"{view}/city", "--messages", f"{view}/city/feeds/messages"),
        *("--subscriptions", f"{view}/city/feeds/subscriptions"),
        *("--out", f"{view}/result", "--checkpoint", f"{view}/state"),
        *("--memory", str(tmp_path / "memory")),
    )
    plan = json.loads((tmp_path / "data" / "state" / "plan.json").read_text())
    assert plan["area"] == pytest.approx(list(found.world.area))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("viewfs")] == []


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["replay", ELSEWHERE], "SIMULATION"),
        (["replay", ".", "--report", ELSEWHERE], "--report"),
        (["simulate", "--out", ELSEWHERE, "--map", ELSEWHERE], "--map"),
        (["simulate", "--out", ELSEWHERE, "--texts", ELSEWHERE], "--texts"),
        (["simulate", "traces", ELSEWHERE], "FILES..."),
        (["simulate", "describe", ".", "--plots", ELSEWHERE], "--plots"),
        (["simulate", "export", ".", "--out", ELSEWHERE], "--out"),
        (["demo", "--out", ELSEWHERE], "--out"),
        (["stream", "demo", "--out", ELSEWHERE], "--out"),
        (["serve", "--area", ELSEWHERE], "--area"),
    ],
)
def test_paths_that_must_be_on_this_machine(arguments, option):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    (line,) = [one for one in result.output.splitlines() if one.startswith("Error: ")]
    assert option in line
    assert f"'{ELSEWHERE}'" in line
    assert re.search("must be .* on this machine's disk, not a URI", line)


@pytest.mark.parametrize(("command", "flag"), [("describe", "--plots"), ("export", "--out")])
def test_folders_for_files_of_this_machine_must_be_given(command, flag):
    result = CliRunner().invoke(app, ["simulate", command, ELSEWHERE])
    assert result.exit_code == 2
    assert f"{flag}: must be a folder on this machine's disk" in result.output
    assert ELSEWHERE in result.output
