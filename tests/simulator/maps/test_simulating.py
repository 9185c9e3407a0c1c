"""A simulation on a map, and the command line that asks for one."""

import json

import pytest
from click.testing import CliRunner

from cli.app import app
from safe_region.earth.frame import Frame
from simulator import schemas
from simulator.maps import MapError
from simulator.parameters import SimulationParameters
from simulator.simulation import simulate
from tests.simulator.maps.osm_xml import OsmFile, town
from tests.simulator.maps.road_lists import grid, write
from tests.simulator.test_city import distance_to_roads_m


@pytest.fixture(scope="module")
def parameters(tmp_path_factory):
    path = town().write(tmp_path_factory.mktemp("maps") / "small_town.osm.gz")
    return SimulationParameters(
        map_file=path, devices=20, seconds=60, objects=100, replaced_share=0.4, seed=5
    )


@pytest.fixture(scope="module")
def simulation(parameters, spark, tmp_path_factory):
    return simulate(parameters, tmp_path_factory.mktemp("on_map"), spark=spark, partitions=1)


def test_the_world_names_the_map_and_not_where_it_was(simulation, parameters):
    text = (simulation.path / "world.json").read_text()
    assert json.loads(text)["parameters"]["map_file"] == "small_town.osm.gz"
    assert str(parameters.map_file.parent) not in text
    assert simulation.world.name == "Small Town"


def test_everything_is_on_the_map(simulation):
    frame = Frame.of(simulation.world.area)
    for row in simulation.trajectories.to_pylist()[::53]:
        assert distance_to_roads_m(simulation.roads, frame, row["lon"], row["lat"]) < 1e-3
    spots = {(row["lon"], row["lat"]) for row in simulation.places.to_pylist()}
    assert {(row["lon"], row["lat"]) for row in simulation.objects.to_pylist()} == spots
    assert len(simulation.objects) >= 100
    assert len(set(simulation.subscriptions["device_id"].to_pylist())) == 20


def test_a_replacement_has_other_keywords(simulation):
    versions = {}
    for row in simulation.objects.to_pylist():
        versions.setdefault(row["object_key"], []).append(row["keywords"])
    replaced = [words for words in versions.values() if len(words) > 1]
    assert replaced
    assert all(first != second for first, second in replaced)


@pytest.mark.slow
def test_the_same_map_and_seed_give_the_same_rows(simulation, parameters, spark, tmp_path):
    again = simulate(parameters, tmp_path, spark=spark, partitions=5)
    for name in schemas.TABLES:
        assert getattr(again, name).equals(getattr(simulation, name)), name
    assert again.world == simulation.world


def test_a_bad_map_changes_nothing(spark, tmp_path):
    out = tmp_path / "out"
    bad = SimulationParameters(map_file=OsmFile().write(tmp_path / "bad.osm"))
    with pytest.raises(MapError, match="has no roads"):
        simulate(bad, out, spark=spark)
    assert not out.exists()
    good = SimulationParameters(
        map_file=town().write(tmp_path / "good.osm"), devices=2, seconds=5, objects=10
    )
    simulate(good, out, spark=spark)
    before = sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*"))
    with pytest.raises(MapError, match="has no roads"):
        simulate(bad, out, spark=spark)
    assert sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*")) == before


def test_a_road_network_is_simulated_as_any_map(spark, tmp_path):
    """Here with texts of a file as what is published: they stay where they are, on or off the roads."""
    path = grid(size=8, step=70.0).write_plain(tmp_path, "old_town")
    rows = [f"{i},{90 * (i % 5)},{110 * (i // 5)},word{i} shop" for i in range(20)] + ["20,9e3,0,away"]
    texts = write(tmp_path / "texts.csv.gz", "\n".join(["id,x,y,text", *rows]))
    parameters = SimulationParameters(
        map_file=path, unit_m=2.0, texts_file=texts, devices=20, seconds=60, objects=100
    )
    one = simulate(parameters, tmp_path / "one", spark=spark, partitions=1)
    again = simulate(parameters, tmp_path / "again", spark=spark, partitions=5)
    for name in schemas.TABLES:
        assert getattr(again, name).equals(getattr(one, name)), name
    assert json.loads((tmp_path / "one/world.json").read_text())["parameters"]["unit_m"] == 2.0
    assert one.world.name == "Old Town"
    frame = Frame.of(one.world.area)
    for row in one.trajectories.to_pylist()[::53]:
        assert distance_to_roads_m(one.roads, frame, row["lon"], row["lat"]) < 1e-3
    assert one.world.texts == {"taken": 20, "outside": 1, "wordless": 0}
    published = {(row["lon"], row["lat"]) for row in one.objects.to_pylist()}
    # The middle of the network, at 245, 245, lies at 0 degrees.
    assert {
        (round(lon * frame.y_m_per_deg), round(lat * frame.y_m_per_deg)) for lon, lat in published
    } == {(2 * (90 * (i % 5) - 245), 2 * (110 * (i // 5) - 245)) for i in range(20)}
    assert (tmp_path / "one/texts").is_dir()
    with pytest.raises(MapError, match="does not exist"):
        simulate(parameters.changed(texts_file=tmp_path / "none.csv"), tmp_path / "one", spark=spark)
    assert (tmp_path / "one/texts").is_dir(), "nothing has been removed"


@pytest.mark.parametrize("command", ["simulate", "demo"])
@pytest.mark.parametrize(
    ("flags", "message", "status"),
    [
        ([], "old_town.cnode, line 3: x is '200.000000', must be within -180..180 degrees", 1),
        (["--unit-m", "-1"], "unit_m is -1.0, must be within", 2),
        (["--unit-m", "1", "--places", "{folder}/none.csv"], "does not exist", 1),
        (
            ["--unit-m", "1", "--places", "{folder}/bad.csv"],
            "bad.csv, line 2: x is 'a', must be a number",
            1,
        ),
    ],
)
def test_the_command_line_reports_a_wrong_road_network(tmp_path, command, flags, message, status):
    path = grid().write_plain(tmp_path, "old_town")
    (tmp_path / "bad.csv").write_text("x,y,name\na,1,Cafe\n")
    flags = [flag.format(folder=tmp_path) for flag in flags]
    out = tmp_path / "out"
    result = CliRunner().invoke(app, [command, "--map", str(path), "--out", str(out), *flags])
    assert result.exit_code == status
    (line,) = [one for one in result.output.splitlines() if one.startswith("Error: ")]
    assert message in line
    assert not out.exists()


@pytest.mark.parametrize("flag", ["--unit-m=2", "--places=a.csv"])
def test_a_generated_city_refuses_options_of_maps(tmp_path, flag):
    result = CliRunner().invoke(app, ["simulate", "--out", str(tmp_path / "out"), flag])
    assert result.exit_code == 2
    assert "which requires a map_file" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["simulate", "demo"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.osm", None, "does not exist"),
        ("town.txt", b"", "must end in one of"),
        ("town.osm.pbf", b"not a map", "cannot be read"),
        ("town.osm", OsmFile().text().encode(), "has no roads"),
    ],
)
def test_the_command_line_reports_errors(tmp_path, command, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    out = tmp_path / "out"
    result = CliRunner().invoke(app, [command, "--map", str(path), "--out", str(out)])
    assert result.exit_code == 1
    (line,) = [one for one in result.output.splitlines() if one.startswith("Error: ")]
    assert message in line
    assert name in line
    assert not out.exists()
