"""Figures of a simulation against plain Python over its rows, and the plots."""

import shutil
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from matplotlib.image import imread

from cli.app import app
from safe_region.earth.frame import Frame
from simulator.simulation import load
from simulator.summary.figures import MOVING_MPS_MIN, SPEED_BIN_MPS, figures, sample, trips


@pytest.fixture(scope="module")
def found(simulation, spark):
    return figures(simulation, spark)


def test_figures_of_classes_are_those_of_the_rows(simulation, found):
    class_of = dict(
        zip(*(simulation.devices[one].to_pylist() for one in ("device_id", "device_class")), strict=True)
    )
    rows = simulation.trajectories.to_pylist()
    assert set(found.classes) == set(class_of.values())
    for name, one in found.classes.items():
        speeds = [row["speed_mps"] for row in rows if class_of[row["device_id"]] == name]
        moving = [speed for speed in speeds if speed >= MOVING_MPS_MIN]
        assert one.device_count == list(class_of.values()).count(name)
        assert one.position_count == len(speeds)
        assert one.moving_share == pytest.approx(len(moving) / len(speeds))
        assert one.km == pytest.approx(sum(speeds) / 1000.0)
        assert one.speed_counts.sum() == len(moving)
        assert one.speed_kmh(0.5) == pytest.approx(
            3.6 * np.median(moving), abs=3.6 * SPEED_BIN_MPS + 1e-9
        )


def test_load_and_map_count_the_same_positions(simulation, found):
    speeds = simulation.trajectories["speed_mps"].to_numpy()
    assert found.present.tolist() == [simulation.devices.num_rows] * len(found.present)
    assert found.moving.sum() == (speeds >= MOVING_MPS_MIN).sum() == found.cells.sum()
    assert found.times_s.tolist() == [one + 0.5 for one in range(91)]


@pytest.mark.parametrize(("rows_max", "device_count"), [(1, 1), (200, 2), (10**6, 23)])
def test_the_sample_has_about_so_many_rows(simulation, spark, rows_max, device_count):
    moved, devices = (
        spark.read.parquet(str(simulation.path / name)) for name in ("trajectories", "devices")
    )
    rows = sample(moved, devices, simulation, rows_max)
    assert len(set(rows["device_id"].to_pylist())) == device_count
    assert rows.num_rows == device_count * simulation.world.tick_count


def walked(simulation, *ways):
    """Rows of devices that go east, one a second, so many metres each."""
    frame = Frame.of(simulation.world.area)
    rows = []
    for number, way in enumerate(ways):
        lon = simulation.world.area.lon_min
        for tick, step_m in way:
            lon += step_m / frame.x_m_per_deg
            lat = simulation.world.area.lat_min
            rows.append((f"device-{number}", tick, lon, lat, float(step_m)))
    names = ("device_id", "tick", "lon", "lat", "speed_mps")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def test_a_trip_ends_at_a_stop(simulation):
    start, stand = (0, 0), [(tick, 0) for tick in range(11, 80)]
    there = [(tick, 30) for tick in range(1, 11)]
    back = [(tick, 20) for tick in range(80, 90)]
    short = [(tick, 5) for tick in range(1, 11)]
    pause = [(tick, 0 if tick in range(20, 50) else 10) for tick in range(1, 90)]
    rows = walked(simulation, [start, *there, *stand, *back], [start, *short], [start, *pause])
    lengths_m, durations_s = trips(rows, simulation)
    # The first position of a trip is where it begins.
    assert sorted(lengths_m) == pytest.approx([180.0, 270.0, 580.0], rel=1e-6)
    assert sorted(durations_s) == [9.0, 9.0, 88.0]
    cut = walked(simulation, [(tick, 10) for tick in range(91)])
    assert trips(cut, simulation)[0] == pytest.approx([900.0], rel=1e-6), "there is no other"
    both = pa.concat_tables(
        [rows, walked(simulation, *[[start]] * 3, [(tick, 10) for tick in range(91)])]
    )
    assert len(trips(both, simulation)[0]) == 3


def test_the_command_describes_and_draws(simulation, spark, tmp_path, monkeypatch):
    monkeypatch.setattr("simulator.session.simulator_session", lambda *_: nullcontext(spark))
    copy = shutil.copytree(simulation.path, tmp_path / "traces")
    flags = ["--plots", str(tmp_path / "plots"), "--beside", str(copy)]
    result = CliRunner().invoke(app, ["simulate", "describe", str(simulation.path), *flags])
    assert result.exit_code == 0, result.output
    for name in ("map.png", "speeds.png", "load.png"):
        picture = imread(tmp_path / "plots" / name)
        assert picture.shape[0] > 500
        assert 0.02 < (picture[:, :, :3].min(axis=2) < 0.9).mean() < 0.9
    assert f"{load(copy).trajectories.num_rows:,}" in result.output
    assert "points per second" in result.output
