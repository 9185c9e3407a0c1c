"""Exports of a small simulation, read by other programs."""

import json
from contextlib import nullcontext

import geoparquet_validator
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import shapely
from click.testing import CliRunner

from cli.app import app
from simulator.export.features import TABLES, features
from simulator.export.files import Format, geo_metadata, write_features
from simulator.export.wkb import geometry_of
from simulator.tables import SORT_KEYS

LINES = ("roads", "trajectories")
CASES = [
    (name, kind) for name in TABLES for kind in Format if name != "objects" or kind is Format.GEOJSON
]


def write(spark, simulation, name, kind, path):
    found = features(spark, simulation.path, simulation.world, name)
    return write_features(found, kind, path)


@pytest.fixture(scope="module")
def written(spark, simulation, tmp_path_factory):
    """Files, and how many features each has."""
    folder = tmp_path_factory.mktemp("export")
    return {
        (name, kind): (path, write(spark, simulation, name, kind, path))
        for name, kind in CASES
        for path in [folder / "new" / f"{name}{kind.ending}"]
    }


def expected_places(simulation, name):
    """The coordinates of features, from the tables alone."""
    if name == "trajectories":
        rows = simulation.trajectories.sort_by([("device_id", "ascending"), ("tick", "ascending")])
        lines = {}
        for row in rows.select(["device_id", "lon", "lat"]).to_pylist():
            lines.setdefault(row["device_id"], []).append((row["lon"], row["lat"]))
        return list(lines.values())
    table = getattr(simulation, name).sort_by([(key, "ascending") for key in SORT_KEYS[name]])
    if name == "roads":
        ends = [
            table[f"{end}_{axis}"].to_pylist() for end in ("source", "target") for axis in ("lon", "lat")
        ]
        return [[(a, b), (c, d)] for a, b, c, d in zip(*ends, strict=True)]
    return [[place] for place in zip(table["lon"].to_pylist(), table["lat"].to_pylist(), strict=True)]


@pytest.mark.parametrize("name", TABLES)
def test_geojson(written, simulation, name):
    path, count = written[name, Format.GEOJSON]
    found = json.loads(path.read_text())
    assert found["type"] == "FeatureCollection"
    assert len(found["features"]) == count
    shapes = [shapely.geometry.shape(one["geometry"]) for one in found["features"]]
    assert {one.geom_type for one in shapes} == {"LineString" if name in LINES else "Point"}
    expected = expected_places(simulation, name)
    assert len(expected) == count
    for shape, places in zip(shapes, expected, strict=True):
        assert np.abs(np.array(shape.coords) - np.array(places)).max() <= 6e-8
    properties = found["features"][0]["properties"]
    assert not {"coordinates", "lon", "lat", "source_lon"} & set(properties)
    assert set(properties) > {SORT_KEYS[name][-1] if name != "trajectories" else "device_class"}


@pytest.mark.parametrize("name", [name for name, kind in CASES if kind is Format.GEOPARQUET])
def test_geoparquet(written, simulation, name):
    path, count = written[name, Format.GEOPARQUET]
    report = geoparquet_validator.check(str(path))
    assert geoparquet_validator.failed(report) == []
    assert {one["status"] for one in report["outcomes"]} <= {"pass", "skip"}
    table = pq.read_table(path)
    assert table.num_rows == count
    shapes = shapely.from_wkb(table["geometry"].to_numpy())
    expected = expected_places(simulation, name)
    for shape, places in zip(shapes, expected, strict=True):
        assert list(shape.coords) == [tuple(place) for place in places]
    boxes = np.array([list(box.values()) for box in table["bbox"].to_pylist()])
    assert (boxes == shapely.bounds(shapes)).all()
    geo = json.loads(pq.read_metadata(path).metadata[b"geo"])
    assert geo["version"] == "1.1.0"
    assert geo["columns"]["geometry"]["bbox"] == shapely.total_bounds(shapes).tolist()


def test_trajectories_have_times(written, simulation):
    table = pq.read_table(written["trajectories", Format.GEOPARQUET][0])
    world = simulation.world
    assert set(table["first_tick"].to_pylist()) == {0}
    assert set(table["end_ms"].to_pylist()) == {world.start_ms + world.seconds * 1000}
    assert set(table["device_class"].to_pylist()) <= {"car", "bicycle", "pedestrian"}


def test_nothing_but_the_file_is_left(written):
    folder = written["roads", Format.GEOJSON][0].parent
    assert {path.name for path in folder.iterdir()} == {f"{name}{kind.ending}" for name, kind in CASES}


@pytest.mark.parametrize("kind", Format)
def test_a_file_that_cannot_be_written_keeps_the_old_one(spark, simulation, tmp_path, kind, monkeypatch):
    path = tmp_path / f"roads{kind.ending}"
    path.write_text("before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("simulator.export.files._parts", full)
    with pytest.raises(OSError, match="No space left"):
        write(spark, simulation, "roads", kind, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", Format)
def test_a_table_without_rows(spark, simulation, tmp_path, kind):
    found = features(spark, simulation.path, simulation.world, "roads")
    path = tmp_path / f"roads{kind.ending}"
    assert write_features(found._replace(frame=found.frame.where("false")), kind, path) == 0
    if kind is Format.GEOJSON:
        assert json.loads(path.read_text())["features"] == []
    else:
        assert geoparquet_validator.failed(geoparquet_validator.check(str(path))) == []


def test_a_device_with_one_position_is_a_line(spark, simulation, tmp_path):
    """GeoJSON knows no line of one place."""
    folder = tmp_path / "once"
    for name in ("trajectories", "devices"):
        (folder / name).mkdir(parents=True)
        table = getattr(simulation, name)
        first = pc.field("device_id") == table["device_id"][0].as_py()
        table = table.filter(first & (pc.field("tick") == 3)) if name == "trajectories" else table
        pq.write_table(table, folder / name / "part.parquet")
    found = features(spark, folder, simulation.world, "trajectories").frame.collect()
    assert len(found) == 1
    assert found[0]["coordinates"][0] == found[0]["coordinates"][1]
    assert (found[0]["first_tick"], found[0]["last_tick"]) == (3, 3)


def test_geometry_of_sliced_batches():
    lines = pa.array(
        [[[0.0, 0.0], [1.0, 1.0]], [[2.0, 0.0], [3.0, 0.0], [3.0, 4.0]], [[5.0, 5.0], [6.0, 6.0]]]
    )
    wkb, boxes = geometry_of(lines.slice(1, 1), "LineString")
    assert shapely.from_wkb(wkb[0].as_py()).wkt == "LINESTRING (2 0, 3 0, 3 4)"
    assert boxes[0].as_py() == {"xmin": 2.0, "ymin": 0.0, "xmax": 3.0, "ymax": 4.0}


def test_an_empty_table_has_no_box():
    assert (
        "bbox" not in geo_metadata("Point", (float("inf"), float("inf"), 0.0, 0.0))["columns"]["geometry"]
    )


def test_the_command(spark, simulation, tmp_path, monkeypatch):
    monkeypatch.setattr("simulator.session.simulator_session", lambda *_: nullcontext(spark))
    arguments = ["simulate", "export", str(simulation.path), "--table", "places", "--out", str(tmp_path)]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    assert f"{tmp_path / 'places.geojson'}: {simulation.places.num_rows} features" in found.output
    found = CliRunner().invoke(app, ["simulate", "export", str(tmp_path)])
    assert found.exit_code == 1
    assert "world.json is missing" in found.output


@pytest.mark.parametrize("kind", Format)
def test_features_that_other_hosts_have_written_elsewhere_are_missed(
    spark, simulation, tmp_path, monkeypatch, kind
):
    monkeypatch.setattr("simulator.export.files._parts", lambda *_: [])
    path = tmp_path / f"places{kind.ending}"
    path.write_text("the earlier file")
    with pytest.raises(OSError, match=r"has 0 of .* features: other hosts wrote the rest"):
        write(spark, simulation, "places", kind, path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "the earlier file"
