import json
import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from simulator import schemas
from simulator.simulation import VERSION, SimulationError, load, simulate
from simulator.stages import Stages
from tests.simulator.conftest import SMALL


@pytest.fixture
def folder(simulation, tmp_path):
    """A copy that a test may spoil."""
    return shutil.copytree(simulation.path, tmp_path / "copy")


def test_the_same_rows_whatever_the_partitioning(simulation, spark, tmp_path):
    stages = []
    other = simulate(SMALL, tmp_path, lambda *step: stages.append(step), spark=spark, partitions=7)
    for name in schemas.TABLES:
        assert getattr(other, name).equals(getattr(simulation, name)), name
    assert other.world == simulation.world
    rows = simulation.trajectories.num_rows
    assert ("trajectories", rows, rows) in stages
    assert all(0 <= done <= total for _, done, total in stages)


def test_tables_have_their_schemas_and_order(simulation):
    for name, schema in schemas.TABLES.items():
        table = getattr(simulation, name)
        assert table.schema.names == schema.names
        assert table.schema.types == schemas.arrow_schema(schema).types
        assert table.num_rows > 0 or name == "restrictions"
    trajectories = simulation.trajectories
    assert trajectories.equals(trajectories.sort_by([("tick", "ascending"), ("device_id", "ascending")]))
    objects = simulation.objects
    assert objects.equals(objects.sort_by([("publish_ms", "ascending"), ("object_key", "ascending")]))
    per_tick = pc.value_counts(trajectories["tick"])
    assert len(per_tick) == SMALL.tick_count
    assert set(per_tick.field("counts").to_pylist()) == {SMALL.devices}


def test_the_world_describes_the_simulation(simulation):
    found = json.loads((simulation.path / "world.json").read_text())
    assert found["version"] == VERSION
    assert found["seconds"] == SMALL.seconds
    assert found["parameters"]["k_max"] == SMALL.k_max
    area = simulation.world.area
    for table in (simulation.trajectories, simulation.objects, simulation.places):
        assert area.lon_min < pc.min(table["lon"]).as_py() <= pc.max(table["lon"]).as_py() < area.lon_max
        assert area.lat_min < pc.min(table["lat"]).as_py() <= pc.max(table["lat"]).as_py() < area.lat_max


def test_other_files_in_the_folder_are_left_alone(folder, spark):
    (folder / "notes.txt").write_text("mine")
    (folder / "roads" / "stale.parquet").write_text("old")
    Stages(folder).run("points", {}, lambda points: points.mkdir())  # of traces
    simulate(SMALL, folder, spark=spark, partitions=2)
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / "roads" / "stale.parquet").exists()
    assert not (folder / "points").exists()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(SimulationError, match="nowhere is not a folder"):
        load(tmp_path / "nowhere")


def test_an_incomplete_simulation_is_refused(folder):
    (folder / "world.json").unlink()
    with pytest.raises(SimulationError, match=r"world\.json is missing"):
        load(folder)


@pytest.mark.parametrize("text", ["{", "[]", "{}", json.dumps({"version": VERSION, "area": {}})])
def test_a_broken_world_is_refused(folder, text):
    (folder / "world.json").write_text(text)
    with pytest.raises(SimulationError, match=r"world\.json cannot be read"):
        load(folder)


def test_another_version_is_refused(folder):
    (folder / "world.json").write_text(json.dumps({"version": VERSION + 1}))
    with pytest.raises(SimulationError, match=f"has version {VERSION + 1}, this program reads {VERSION}"):
        load(folder)


@pytest.mark.parametrize("name", list(schemas.TABLES))
def test_a_missing_table_is_named(folder, name):
    shutil.rmtree(folder / name)
    with pytest.raises(SimulationError, match=f"the table {name} is missing"):
        load(folder)


def _rewrite(folder, name, table):
    shutil.rmtree(folder / name)
    (folder / name).mkdir()
    pq.write_table(table, folder / name / "part.parquet")


def test_a_wrong_schema_is_named(folder, simulation):
    roads = simulation.roads
    _rewrite(folder, "roads", roads.drop_columns("length_m"))
    with pytest.raises(SimulationError, match=r"roads .* has no column length_m"):
        load(folder)
    position = roads.schema.get_field_index("length_m")
    _rewrite(folder, "roads", roads.set_column(position, "length_m", roads["length_m"].cast("string")))
    with pytest.raises(SimulationError, match=r"roads.length_m .* is string, must be double"):
        load(folder)
    _rewrite(folder, "roads", roads.set_column(position, "length_m", pa.nulls(len(roads), "double")))
    with pytest.raises(SimulationError, match=r"roads.length_m .* has nulls"):
        load(folder)
    (folder / "roads" / "part.parquet").write_text("not Parquet")
    with pytest.raises(SimulationError, match=r"the table roads in .* cannot be read"):
        load(folder)
