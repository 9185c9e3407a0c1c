"""Stages: what is complete is not repeated, and what is not complete is never taken for it."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from simulator import schemas
from simulator.city import generate_city
from simulator.errors import StageError
from simulator.files import OnDisk
from simulator.movement.streets import Streets
from simulator.movement.trajectories import loads, trajectories
from simulator.session import SparkStart
from simulator.simulation import SimulationError, load, simulate
from simulator.stages import Stages, read_mark
from simulator.tables import SORT_KEYS
from tests.simulator.conftest import SMALL

TABLE = pa.table({"x": [1, 2, 3]})
NO_SPARK = SparkStart("nowhere")
"""A session that cannot start."""


def write(folder):
    folder.mkdir()
    pq.write_table(TABLE, folder / "part-0.parquet")


def never(_folder):
    raise AssertionError("it is made again")


def test_a_stage_that_is_complete_is_not_repeated(tmp_path):
    mark = Stages(tmp_path).run("table", {"seed": 1}, write)
    assert (mark.rows, mark.files) == (3, 1)
    assert Stages(tmp_path).run("table", {"seed": 1}, never) == mark
    assert read_mark(tmp_path, "table") == mark


@pytest.mark.parametrize("damage", ["key", "file", "longer", "more", "torn mark", "folder"])
def test_whatever_is_not_the_very_same_is_made_again(tmp_path, damage):
    Stages(tmp_path).run("table", {"seed": 1}, write)
    key = {"seed": 2 if damage == "key" else 1}
    folder, mark = tmp_path / "table", tmp_path / "stages" / "table.json"
    if damage in {"file", "folder"}:
        (folder / "part-0.parquet").unlink()
    if damage == "folder":
        folder.rmdir()
    if damage == "longer":
        (folder / "part-0.parquet").write_bytes(b"x")
    if damage == "more":
        (folder / "stale.parquet").write_bytes(b"x")
    if damage == "torn mark":
        mark.write_text(mark.read_text()[:20])
    with pytest.raises(AssertionError, match="again"):
        Stages(tmp_path).run("table", key, never)
    assert not folder.exists()
    assert read_mark(tmp_path, "table") is None
    assert Stages(tmp_path).run("table", key, write).rows == 3
    assert [path.name for path in folder.iterdir()] == ["part-0.parquet"]


def test_a_table_whose_mark_cannot_be_read_is_not_made_again(tmp_path, monkeypatch):
    Stages(tmp_path).run("table", {"seed": 1}, write)

    def fail(file):
        raise OSError(5, "Input/output error", str(file))

    with monkeypatch.context() as patched:
        patched.setattr(OnDisk, "read", fail)
        with pytest.raises(OSError, match=r"Input/output error: .*table\.json"):
            Stages(tmp_path).run("table", {"seed": 1}, never)
    assert Stages(tmp_path).run("table", {"seed": 1}, never).rows == 3


def test_a_folder_that_no_stage_has_written_is_never_removed(tmp_path):
    Stages(tmp_path).run("table", {"seed": 1}, write)
    (tmp_path / "stages" / "table.json").unlink()
    for name in ("table", "notes"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "mine.gpx").write_text("x")
        message = rf"out is {tmp_path}, must be another folder: the table {name} would replace .*{name}, "
        with pytest.raises(StageError, match=message + "which no simulation has written"):
            Stages(tmp_path).run(name, {"seed": 1}, write)
        with pytest.raises(StageError, match=message):
            Stages(tmp_path).remove_others([name])
        assert (tmp_path / name / "mine.gpx").read_text() == "x"


def test_what_a_kill_has_left_of_a_stage_is_made_again(tmp_path):
    killed = tmp_path / "killed"

    def write_and_copy(folder):
        write(folder)
        shutil.copytree(tmp_path / "out", killed)

    Stages(tmp_path / "out").run("table", {"seed": 1}, write_and_copy)
    assert [path.name for path in (tmp_path / "out" / "stages").iterdir()] == ["table.json"]
    assert (killed / "table" / "part-0.parquet").exists()
    assert read_mark(killed, "table") is None
    assert Stages(killed).run("table", {"seed": 1}, write).rows == 3
    assert [path.name for path in (killed / "stages").iterdir()] == ["table.json"]


def test_a_simulation_replaces_no_folder_of_somebody_else(tmp_path):
    """Whether it would write the table or not; an error is raised before Spark starts."""
    for name in ("places", "loads", "points", "feeds"):
        mine = tmp_path / name / "mine.csv"
        mine.parent.mkdir()
        mine.write_text("lon,lat,text")
        with pytest.raises(StageError, match=rf"the table {name} would replace {tmp_path / name}, which"):
            simulate(SMALL, tmp_path, spark=NO_SPARK)
        Stages(tmp_path).run(f"{name}2", {}, write)
        (tmp_path / "stages" / f"{name}2.json").rename(tmp_path / "stages" / f"{name}.json")
        with pytest.raises(StageError, match=rf"the table {name} would replace {mine}$"):
            simulate(SMALL.changed(texts_file=mine), tmp_path, spark=NO_SPARK)
        assert mine.read_text() == "lon,lat,text"
        mine.unlink()
    world = tmp_path / "other" / "world.json"
    world.parent.mkdir()
    world.write_text("{}")
    with pytest.raises(StageError, match=r"must be another folder: no simulation .* its world\.json"):
        simulate(SMALL, world.parent, spark=NO_SPARK)
    assert world.read_text() == "{}"


def test_no_table_remains_of_a_stage_that_fails(tmp_path):
    def fail(folder):
        write(folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(StageError, match=r"table cannot be written: .*No space left"):
        Stages(tmp_path).run("table", {}, fail)
    assert not (tmp_path / "table").exists()
    assert read_mark(tmp_path, "table") is None


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_tasks_write_after_a_stage_has_failed_is_no_table_and_in_nobodys_way(tmp_path, error):
    def fail(folder):
        write(folder)
        raise error

    with pytest.raises((StageError, KeyboardInterrupt)):
        Stages(tmp_path).run("table", {}, fail)
    late = tmp_path / "table" / "_temporary" / "0"
    late.mkdir(parents=True)
    (late / "part-1.parquet").write_bytes(b"x")
    assert Stages(tmp_path).run("table", {}, write).rows == 3
    assert not late.exists()
    assert [path.name for path in (tmp_path / "stages").iterdir()] == ["table.json"]


def seconds_of_stages(folder):
    return {path.stem: path.stat().st_mtime_ns for path in (folder / "stages").glob("*.json")}


@pytest.mark.slow
def test_a_run_is_resumed_where_it_ended(simulation, spark, tmp_path):
    simulate(SMALL, tmp_path, spark=spark, partitions=3)
    before = seconds_of_stages(tmp_path)
    (tmp_path / "world.json").unlink()
    next((tmp_path / "objects").glob("*.parquet")).unlink()
    again = simulate(SMALL, tmp_path, spark=spark, partitions=5)
    after = seconds_of_stages(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"objects"}
    for name in schemas.TABLES:
        assert getattr(again, name).equals(getattr(simulation, name)), name
    # Other parameters of the workload leave the movement as it is.
    simulate(SMALL.changed(k_max=3), tmp_path, spark=spark)
    last = seconds_of_stages(tmp_path)
    assert {name for name in last if last[name] != after[name]} == {"objects", "subscriptions", "idf"}


@pytest.mark.slow
def test_partitions_change_nothing(spark):
    """1, 7 and 64 of them, two passes for load, with weather."""
    parameters = SMALL.changed(
        movement="brinkhoff", devices=70, load_slot_s=30.0, weather=2, vehicles_per_device=200.0
    )
    streets = Streets.of(generate_city(parameters), parameters)

    def rows(frame, name):
        return frame.toArrow().sort_by([(key, "ascending") for key in SORT_KEYS[name]])

    found = []
    for count in (1, 7, 64):
        numbers = spark.range(0, parameters.devices, 1, count)
        load = rows(loads(numbers, streets, parameters), "loads")
        loaded = streets.loaded(parameters, load)
        found.append((load, rows(trajectories(numbers, loaded, parameters), "trajectories")))
    assert found[0][1].num_rows == 70 * 91
    assert found[0][0].num_rows > 100
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.slow
def test_slices_change_nothing(simulation, spark, tmp_path):
    parameters = SMALL.changed(slice_ticks=7, load_slot_s=60.0, vehicles_per_device=0.0)
    other = simulate(parameters, tmp_path, spark=spark, partitions=2)
    assert len(list(other.path.glob("trajectories/slice=*"))) == 13
    slices = list(other.slices())
    assert [len(part) for part in slices] == [23 * 7] * 13
    assert pa.concat_tables(slices).equals(simulation.trajectories), "load that counts for nothing"
    assert all(pc.min(part["tick"]).as_py() == 7 * i for i, part in enumerate(slices))
    assert (tmp_path / "loads").is_dir()


SIMULATE = """
    import sys
    from pathlib import Path
    from simulator.parameters import SimulationParameters
    from simulator.simulation import simulate
    parameters = SimulationParameters(**{parameters!r})
    simulate(parameters, Path(sys.argv[1]), lambda *step: print(*step, flush=True))
"""


def process(folder, parameters, **more):
    code = textwrap.dedent(SIMULATE).replace("{parameters!r}", repr(parameters))
    root = str(Path(__file__).resolve().parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": root},
        start_new_session=True,
        **more,
    )


SMALL_VALUES = {"seed": 11, "city_width_m": 4_000.0, "places": 300, "objects": 400}


def test_a_killed_run_is_not_complete_and_can_resume(spark, tmp_path):
    values = SMALL_VALUES | {"devices": 200, "seconds": 60}
    with process(tmp_path, values) as running:
        for line in running.stdout:
            if line.startswith("trajectories"):
                break
        os.killpg(running.pid, signal.SIGKILL)
    assert not (tmp_path / "world.json").exists()
    assert read_mark(tmp_path, "roads") is not None
    assert read_mark(tmp_path, "devices") is not None
    assert read_mark(tmp_path, "trajectories") is None
    with pytest.raises(SimulationError, match=r"world\.json is missing"):
        load(tmp_path)
    before = seconds_of_stages(tmp_path)
    values |= {"seconds": 10}
    again = simulate(SMALL.__class__(**values), tmp_path, spark=spark)
    assert again.row_count("trajectories") == 200 * 11
    assert seconds_of_stages(tmp_path)["roads"] == before["roads"]


@pytest.mark.processes
def test_a_full_disk_is_a_clear_error_and_leaves_nothing_that_looks_complete(tmp_path):
    """Files of more than 256 kB fail, as on a disk without room."""

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, 256 * 1024))

    values = SMALL_VALUES | {"devices": 3_000, "seconds": 60}
    code = "import simulator.simulation"
    subprocess.run([sys.executable, "-c", code], check=True)
    with process(tmp_path, values, preexec_fn=limited) as running:
        _, errors = running.communicate()
    assert running.returncode != 0
    assert "StageError" in errors
    assert "cannot be written" in errors
    assert not (tmp_path / "world.json").exists()
    stages = {path.stem for path in (tmp_path / "stages").glob("*.json")}
    assert "trajectories" not in stages
    assert not (tmp_path / "trajectories").exists()
    for name in stages:
        json.loads((tmp_path / "stages" / f"{name}.json").read_text())


def test_rows_written_where_no_other_host_sees_them_are_no_table(tmp_path):
    """As on a cluster whose hosts have folders of one name and not the same."""
    stages = Stages(tmp_path)

    def write(folder):
        folder.mkdir()
        pq.write_table(pa.table({"x": [1, 2]}), folder / "part-00000.parquet")
        return 3

    with pytest.raises(
        StageError, match="3 rows were written and 2 are present: all hosts must have access to"
    ):
        stages.run("things", {}, write)
    assert read_mark(tmp_path, "things") is None
    assert not (tmp_path / "things").exists()
