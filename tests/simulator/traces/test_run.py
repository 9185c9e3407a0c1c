"""Traces to simulations, through Spark: what is dropped, who becomes a device, the same rows always."""

import json
import re
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cli.app import app
from safe_region.earth.frame import Area, Frame
from simulator import schemas
from simulator.checks.check import check
from simulator.errors import StageError
from simulator.maps import MapError
from simulator.parameters.traces import TraceOptions, TraceParameters
from simulator.simulation import load
from simulator.stages import Stages, row_count
from simulator.traces.cleaning import cleaned
from simulator.traces.errors import TraceError
from simulator.traces.pieces import pieces_of
from simulator.traces.points import Verdict
from simulator.traces.reading import read_points
from simulator.traces.run import simulate_traces
from simulator.traces.sampling import sampled
from tests.simulator.maps.osm_xml import OsmFile
from tests.simulator.traces.trace_files import (
    BEGIN_S,
    LAT,
    LON,
    STEP_DEG,
    walk,
    write,
    write_csv,
    write_gpx,
)

QUICK = {"objects": 20, "arrivals_per_s": 0.01, "places": 30}


def made(spark, folder, *paths, partitions=2, **parameters):
    given = TraceParameters(**(QUICK | parameters))
    return simulate_traces(paths, given, folder / "out", spark=spark, partitions=partitions)


def street_map(path):
    """A grid of streets with a restaurant."""
    file = OsmFile()
    file.grid(size=12)
    file.node(901, 1.2, 1.1, amenity="restaurant", name="Da Mario")
    return file.write(path / "town.osm")


def messy(folder):
    """One vehicle with every fault, and one without."""
    rows = [(1, *point) for point in walk(8)]
    rows[3] = (1, rows[3][1], LON + 5.0 * STEP_DEG, LAT + 9.0 * STEP_DEG)  # a jump
    rows.insert(5, rows[4])  # twice
    rows.insert(3, (1, BEGIN_S + 5, LON, LAT))  # back
    rows.insert(0, (1, "never", LON, LAT))
    rows.insert(0, (1, BEGIN_S, "", LAT))
    rows.append((1, BEGIN_S + 80, LON + 40.0, LAT))  # outside
    rows += [(1, *point) for point in walk(5, begin_s=2_000)]  # after a gap
    rows += [(1, *point) for point in walk(1, begin_s=9_000)]  # alone
    rows += [(2, *point) for point in walk(1_200, begin_s=300, dx=0.002)]
    return write_csv(folder / "messy.csv", rows)


@pytest.fixture(scope="module")
def run(spark, tmp_path_factory):
    """The folder of the messy file, and what became of it."""
    folder = tmp_path_factory.mktemp("messy")
    for name in ("feeds", "loads"):  # of a simulation before
        Stages(folder / "out").run(name, {}, lambda table: table.mkdir())
    return folder, made(spark, folder, messy(folder), period_ms=10_000)


VERDICTS = {
    "kept": 1_212,
    "no time": 1,
    "no position": 1,
    "outside": 1,
    "duplicate": 1,
    "back": 1,
    "jump": 1,
    "isolated": 1,
}


@pytest.mark.parametrize("table", ["points", "traces"])
def test_rows_that_are_not_there_for_the_driver_are_an_error(spark, tmp_path, monkeypatch, table):
    """As where each host has a folder of its own."""

    def found(folder):
        return row_count(folder) - (folder.name == table)

    monkeypatch.setattr("simulator.stages.row_count", found)
    with pytest.raises(StageError, match=rf"{table}: \d+ rows were written and \d+ are present"):
        made(spark, tmp_path, messy(tmp_path), period_ms=10_000)
    assert not (tmp_path / "out" / table).exists()


def test_verdicts_of_points(run):
    folder, found = run
    assert found.verdicts == VERDICTS
    assert found.points == sum(VERDICTS.values())
    assert (found.devices, found.short, found.on_roads) == (3, 0, 0)
    simulation = found.simulation
    assert simulation.roads.num_rows == 0
    assert simulation.places.num_rows == 30
    assert simulation.devices.to_pylist() == [
        {"device_id": f"device-00000{i}", "device_class": "trace", "speed_mps_max": 50.0}
        for i in range(3)
    ]
    rows = simulation.trajectories.to_pylist()
    first = [row for row in rows if row["device_id"] == "device-000000"]
    assert [row["tick"] for row in first] == list(range(8))
    assert [row["lon"] for row in first] == pytest.approx([LON + i * STEP_DEG for i in range(8)])
    traces = pq.read_table(folder / "out" / "traces").to_pylist()
    assert [(row["vehicle"], row["piece"], row["points"]) for row in traces] == [
        ("1", 0, 7),
        ("1", 1, 5),
        ("2", 0, 1_200),
    ]
    world = simulation.world
    assert (world.name, world.start_ms, world.period_ms) == ("messy", BEGIN_S * 1000, 10_000)
    assert world.seconds == 300 + 1_199 * 10
    assert world.parameters["traces"] == ["messy.csv"]
    assert set(simulation.subscriptions["device_id"].to_pylist()) <= {
        f"device-00000{i}" for i in range(3)
    }


def stages_of(spark, folder, partitions, **parameters):
    """Points and trajectories, sorted, without the workload."""
    options = TraceOptions(**parameters)
    area = Area(LON - 0.1, LAT - 0.1, LON + 0.1, LAT + 0.1)
    raw = read_points(spark, [folder / "messy.csv"], options)
    points = cleaned(raw, area, options, partitions).cache()
    pieces = pieces_of(points, 10_000, None if options.align == "start" else BEGIN_S * 1000)
    moved = sampled(points, pieces, Frame.of(area), 10_000, None, partitions)
    tables = points.drop("block").toArrow(), moved.toArrow()
    points.unpersist()
    keys = (["vehicle", "row", "t_ms"], ["device_id", "tick"])
    return [
        table.sort_by([(key, "ascending") for key in names])
        for table, names in zip(tables, keys, strict=True)
    ]


@pytest.mark.slow
def test_the_same_rows_whatever_the_tasks(spark, run):
    folder, found = run
    first, *others = (stages_of(spark, folder, partitions) for partitions in (1, 7, 64))
    assert all(other == first for other in others)
    assert first[1].num_rows == found.positions


def test_devices_have_no_gaps(spark, run):
    _, moved = stages_of(spark, run[0], 2, align="start")
    for device in set(moved["device_id"].to_pylist()):
        ticks = moved.filter(pc.field("device_id") == device)["tick"].to_pylist()
        assert ticks == list(range(len(ticks)))


def test_requested_times(spark, run):
    period = {"begin": "2023-11-14T22:40:00Z", "end": "2023-11-14T22:50:00"}
    points, _ = stages_of(spark, run[0], 2, **period)
    counts = {row["values"]: row["counts"] for row in pc.value_counts(points["verdict"]).to_pylist()}
    # Sixty of the one that drives all the time, and five after the gap.
    assert counts[Verdict.KEPT.value] == 65
    assert counts[Verdict.OTHER_TIME.value] == sum(VERDICTS.values()) - 1 - 1 - 65


def test_complete_stages_are_not_repeated(spark, run):
    folder, _ = run
    out = folder / "out"
    marks = {path: path.read_text() for path in (out / "stages").iterdir()}
    (out / "world.json").unlink()
    again = made(spark, folder, folder / "messy.csv", period_ms=10_000)
    assert {path: path.read_text() for path in (out / "stages").iterdir()} == marks
    assert again.verdicts == VERDICTS


@pytest.fixture(scope="module")
def drives(spark, tmp_path_factory):
    """Two drives along streets, with some noise, made by the command; the second leaves the streets."""
    folder = tmp_path_factory.mktemp("drives")
    noise = np.random.default_rng(4).normal(0.0, 4e-5, (2, 10, 2))
    rows = []
    for vehicle, (dx, dy) in enumerate([(1.0, 0.0), (0.0, 1.0)]):
        for i, (time, lon, lat) in enumerate(walk(10, x=1.0, y=1.0, dx=dx, dy=dy)):
            more = 0.01 if vehicle and i == 9 else 0.0
            rows.append((vehicle, time, lon + noise[vehicle, i, 0] + more, lat + noise[vehicle, i, 1]))
    path = write_csv(folder / "drives.csv", rows)
    options = {"map": street_map(folder), "period-ms": 1_000, "speed-mps-max": 200, "out": folder / "out"}
    options |= {"objects": 20, "arrivals-per-s": 0}
    given = [f"--{name}={value}" for name, value in options.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simulator.session.simulator_session", lambda *_: nullcontext(spark))
        found = CliRunner().invoke(app, ["simulate", "traces", str(path), *given])
    assert found.exit_code == 0, found.output
    return load(folder / "out"), found.output


def test_the_command_prints_verdicts_of_points(drives):
    simulation, output = drives
    positions = simulation.row_count("trajectories")
    on_roads = positions - simulation.trajectories["edge_id"].null_count
    assert "20 points read\n  20 kept\n" in output
    assert f"{on_roads} positions on roads ({on_roads / positions:.1%})\n" in output
    assert "points a second\n" in output
    assert f"{simulation.path}: 2 devices, {positions} positions\n" in output
    assert on_roads > 0.8 * positions


def test_matched_positions_lie_on_their_roads(drives):
    simulation, _ = drives
    roads = {row["edge_id"]: row for row in simulation.roads.to_pylist()}
    frame = Frame.of(simulation.world.area)
    on_roads = [row for row in simulation.trajectories.to_pylist() if row["edge_id"] is not None]
    for row in on_roads:
        road = roads[row["edge_id"]]
        ends = [frame.project(road[f"{end}_lon"], road[f"{end}_lat"]) for end in ("source", "target")]
        (ax, ay), (bx, by), (x, y) = *ends, frame.project(row["lon"], row["lat"])
        away = abs((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / np.hypot(bx - ax, by - ay)
        assert away < 1e-3
    first = [row for row in on_roads if row["device_id"] == "device-000000"]
    assert {roads[row["edge_id"]]["source_lat"] for row in first} == {round(LAT + STEP_DEG, 7)}
    assert simulation.devices["speed_mps_max"].to_pylist() == [None, None]


def test_the_check_finds_nothing(spark, drives):
    found = check(drives[0], spark)
    assert [one.rule for one in found if one.violations] == []
    of_traces = {f"{name}: as many rows as its stage wrote" for name in schemas.TRACE_TABLES}
    assert of_traces <= {one.rule for one in found}


def test_texts_that_are_missing_are_missed_before_anything_is_replaced(spark, run):
    folder, _ = run
    before = {path: path.stat().st_mtime_ns for path in (folder / "out").rglob("*")}
    with pytest.raises(MapError, match=r"none\.csv does not exist"):
        made(spark, folder, folder / "messy.csv", period_ms=5_000, texts_file=folder / "none.csv")
    assert {path: path.stat().st_mtime_ns for path in (folder / "out").rglob("*")} == before


def test_files_of_traces_are_not_replaced_by_the_table_traces(spark, tmp_path):
    """Neither in a folder of the user, nor in one that a simulation has written."""
    (tmp_path / "out" / "traces").mkdir(parents=True)
    path = write_csv(tmp_path / "out" / "traces" / "a.csv", [(1, *point) for point in walk(5)])
    with pytest.raises(StageError, match=r"the table traces would replace .*/out/traces, which no simul"):
        made(spark, tmp_path, path)
    moved = path.rename(tmp_path / "a.csv")
    path.parent.rmdir()
    made(spark, tmp_path, moved)
    moved.rename(path)
    with pytest.raises(StageError, match=rf"the table traces would replace {path}$"):
        made(spark, tmp_path, path)
    assert path.exists()
    assert (tmp_path / "out" / "world.json").exists()


def failure(spark, tmp_path, path, **parameters):
    with pytest.raises(TraceError) as raised:
        made(spark, tmp_path, path, **parameters)
    assert not (tmp_path / "out" / "world.json").exists()
    return str(raised.value)


def test_projected_coordinates_are_named(spark, tmp_path):
    rows = [(1, BEGIN_S + i, 458_000.5 + i, 3_973_000 + i) for i in range(5)]
    path = write_csv(tmp_path / "a.csv", rows)
    assert failure(spark, tmp_path, path) == (
        f"{path}: of 5 points none has a valid position: longitudes are 458000 to 458004, must be "
        "within -180..180, latitudes 3.973e+06 to 3.973e+06, must be within -89..89 degrees; the "
        "only other unit is millionths of degrees, in columns with names that end in _e6"
    )
    assert not (tmp_path / "out").exists()


def test_files_with_nothing_to_keep(spark, tmp_path):
    path = write_csv(tmp_path / "a.csv", [])
    assert failure(spark, tmp_path, path) == f"{path}: no points"
    path = write_csv(tmp_path / "b.csv", [(1, "x", LON, LAT)] * 3)
    assert failure(spark, tmp_path, path) == f"{path}: of 3 points none has a time"
    path = write_csv(tmp_path / "c.csv", [(1, *point) for point in walk(5)])
    message = failure(spark, tmp_path, path, begin="2024-01-01")
    assert message == f"{path}: of 5 points none is in the requested time"
    path = write_csv(tmp_path / "d.csv", [(i, *point) for i, point in enumerate(walk(5))])
    assert failure(spark, tmp_path, path) == f"{path}: no points are left: 5 isolated"


@pytest.mark.parametrize("name", ["a.gpx", "a.gpx.gz", "a.csv.gz"])
def test_files_that_are_cut_off(spark, tmp_path, name):
    path = tmp_path / name
    if ".gpx" in name:
        write_gpx(path, [[walk(300)]])
    else:
        rng = np.random.default_rng(1)
        write_csv(path, [(1, t, lon + rng.normal() / 1e6, lat) for t, lon, lat in walk(9_000, dx=0.0)])
    content = path.read_bytes()
    write(tmp_path / "cut", content[: len(content) * 2 // 3]).rename(path)
    message = failure(spark, tmp_path, path)
    assert name in message
    assert "cannot be read" in message or "end-of-stream" in message


def test_damaged_data_is_an_error_that_names_the_file(spark, tmp_path):
    times, lons, lats = zip(*walk(300), strict=True)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"time": times, "lon": lons, "lat": lats}), path)
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(200) + content[204:])
    assert re.search(rf"{path} cannot be read: .", failure(spark, tmp_path, path))


def test_a_folder_for_the_replay(run):
    """The folder has all that a simulation has, and what traces have besides."""
    folder = run[0] / "out"
    assert load(folder).row_count("trajectories") > 0
    expected = {*schemas.TABLES, *schemas.TRACE_TABLES, "stages", "world.json"}
    assert {path.name for path in folder.iterdir()} == expected
    assert json.loads((folder / "world.json").read_text())["slice_ticks"] >= 1
