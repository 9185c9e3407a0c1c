"""Networks of Brinkhoff's generator and of the DIMACS challenge: what they become, what is wrong."""

import pytest

from simulator.maps import MapError, brinkhoff, read_map
from simulator.network.traffic import SPEEDS_MPS, RoadClass
from simulator.parameters import SimulationParameters
from tests.simulator.maps.road_lists import LAT, LON, STEP_DEG, degree_grid, grid, write
from tests.simulator.maps.test_extracts import extract

M_PER_DEG = 111_195.08


def read(path, **parameters):
    parameters = {"places": 20} | parameters
    return read_map(path, SimulationParameters(map_file=path, **parameters), lambda *_: None)


def failure(path, **parameters):
    with pytest.raises(MapError) as raised:
        read(path, **parameters)
    return str(raised.value)


WRITERS = {
    "text": lambda lists, folder, ending: lists.write_brinkhoff(folder, ending=ending),
    "text with lengths": lambda lists, folder, ending: lists.write_brinkhoff(
        folder, lengths=True, ending=ending
    ),
    "binary": lambda lists, folder, ending: lists.write_brinkhoff_binary(folder, ending=ending),
}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_every_form_of_a_brinkhoff_network_gives_the_same_roads(tmp_path, form, ending):
    path = WRITERS[form](grid(step=100.0), tmp_path, ending)
    terrain = read(path, unit_m=3.0)
    expected = read(grid(step=100.0).write_plain(tmp_path), unit_m=3.0)
    same = [name for name in terrain.roads.column_names if name not in {"road_class", "speed_mps"}]
    assert terrain.roads.select(same).equals(expected.roads.select(same))
    assert set(terrain.roads["road_class"].to_pylist()) == {"tertiary"}
    assert set(terrain.roads["speed_mps"].to_pylist()) == {SPEEDS_MPS[RoadClass.TERTIARY]}
    assert read(path.with_name("town.edge" + ending), unit_m=3.0).roads.equals(terrain.roads)


def test_classes_of_edges(tmp_path):
    lists = grid(size=4)
    for number, (_, _, values) in enumerate(lists.edges):
        values["class"] = number % 7
    rows = read(lists.write_brinkhoff_binary(tmp_path), unit_m=2.0).roads.to_pylist()
    speeds = {(row["road_class"], round(row["speed_mps"] * 3.6)) for row in rows}
    assert speeds == {
        ("motorway", 100),
        ("primary", 60),
        ("secondary", 50),
        ("tertiary", 40),
        ("residential", 30),
        ("service", 20),
        ("service", 5),
    }


def test_an_edge_may_be_longer_than_its_line(tmp_path):
    path = grid(step=100.0).write_brinkhoff(tmp_path, lengths=True)
    edges = path.with_suffix(".edge")
    edges.write_text(edges.read_text().replace("0 1 2 100.000", "0 1 2 250.000", 1))
    roads = {
        (row["source"], row["target"]): row["length_m"]
        for row in read(path, unit_m=2.0).roads.to_pylist()
    }
    assert roads[1, 2] == roads[2, 1] == pytest.approx(500.0)
    assert roads[2, 3] == pytest.approx(200.0)


@pytest.mark.parametrize(
    ("name", "line", "text", "message"),
    [
        ("town.node", 2, "2 100", "2 fields, must be 3 or more: id, x, y"),
        ("town.node", 2, "1 100 0", "id is '1', must differ from the ids of all lines before it"),
        ("town.node", 2, "2 east 0", "x is 'east', must be a number"),
        ("town.edge", 3, "2 1 7", "3 fields, must be 4 or more: id, source, target, class"),
        ("town.edge", 3, "2 1 99 3", "target is '99', must be the id of a node"),
        ("town.edge", 3, "2 1 6 7", "class is '7', must be within 0..6"),
        ("town.edge", 3, "2 1 6 x", "class is 'x', must be a whole number"),
    ],
)
def test_a_line_of_a_brinkhoff_network(tmp_path, name, line, text, message):
    path = grid().write_brinkhoff(tmp_path)
    changed = tmp_path / name
    lines = changed.read_text().split("\n")
    lines[line - 1] = text
    changed.write_text("\n".join(lines))
    assert failure(path, unit_m=3.0) == f"{changed}, line {line}: {message}"


@pytest.mark.parametrize("name", ["town.node", "town.edge"])
@pytest.mark.parametrize("cut", [1, 5, 9])
def test_a_binary_network_that_is_cut_off(tmp_path, name, cut):
    path = grid().write_brinkhoff_binary(tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:-cut])
    records = {"town.node": 25, "town.edge": 40}[name]
    assert failure(path, unit_m=3.0) == (
        f"{tmp_path / name}, record {records}: ends after {len(content) - cut} bytes: the file is "
        "truncated"
    )


def test_a_record_of_a_binary_network(tmp_path):
    lists = grid()
    lists.edge(1, 99)
    path = lists.write_brinkhoff_binary(tmp_path)
    expected = f"{tmp_path / 'town.edge'}, record 41: target is '99', must be the id of a node"
    assert failure(path, unit_m=3.0) == expected


def test_plane_coordinates_without_a_unit_are_named(tmp_path):
    path = grid(x0=10_000.0).write_brinkhoff_binary(tmp_path)
    assert failure(path) == (
        f"{path}, record 1: x is '10000', must be within -180..180 degrees; "
        "coordinates other than degrees need --unit-m"
    )


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("weights_per_m", [1.0, 10.0])
def test_a_dimacs_network_in_degrees(tmp_path, ending, weights_per_m):
    lists = degree_grid(both=True)
    for source, target, values in lists.edges:
        step_m = STEP_DEG * M_PER_DEG * (0.8101 if abs(source - target) == 1 else 1.0)
        values["length"] = 1.5 * step_m
    path = lists.write_dimacs(tmp_path, per_unit=1e6, weights_per_unit=weights_per_m, ending=ending)
    terrain = read(path)
    assert terrain.roads.num_rows == 80
    first = terrain.roads.to_pylist()[0]
    assert (first["source_lon"], first["source_lat"]) == pytest.approx((LON, LAT), abs=1e-9)
    straight_m = (first["target_lon"] - first["source_lon"]) * M_PER_DEG * 0.8101
    assert first["length_m"] == pytest.approx(1.5 * straight_m, rel=0.01)
    assert read(tmp_path / f"town.co{ending}").roads.equals(terrain.roads)


def test_a_dimacs_network_on_a_plane_leads_one_way(tmp_path):
    lists = grid(step=50.0, both=True)
    lists.edges.remove((1, 2, {}))
    terrain = read(lists.write_dimacs(tmp_path), unit_m=4.0)
    assert terrain.roads.num_rows == 79
    assert terrain.roads["length_m"].to_pylist() == pytest.approx([200.0] * 79)


def test_arcs_without_coordinates(tmp_path):
    path = grid().write_dimacs(tmp_path)
    other = tmp_path / "town.co"
    other.unlink()
    assert failure(path) == (
        f"{path} has arcs but no coordinates: they are in town.co, and file {other} does not exist"
    )


def test_rome_has_no_coordinates():
    path = extract("rome99.gr", "roads")
    assert "has arcs but no coordinates: they are in rome99.co" in failure(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda text: text.rsplit("a ", 1)[0],
            " has 39 lines a, must have 40 according to its line p: is the file truncated?",
        ),
        (
            lambda text: text.replace("p sp 25 40\n", ""),
            ", line 3: comes before the line p, which must be the first",
        ),
        (
            lambda text: text.replace("p sp 25 40", "p max 25 40"),
            ", line 3: is 'p max 25 40', must be 'p sp nodes arcs'",
        ),
        (
            lambda text: text.replace("a 1 2 100", "a 1 2"),
            ", line 4: 2 fields, must be 3: source, target, weight",
        ),
        (
            lambda text: text.replace("a 1 2 100", "e 1 2 100"),
            ", line 4: begins with 'e', must begin with one of c, p, a",
        ),
        (
            lambda text: text.replace("a 1 2 100", "a 1 26 100"),
            ", line 4: target is '26', must be the id of a node",
        ),
        (lambda _: "c nothing\n", " has no line p: it is not a file of the DIMACS challenge"),
    ],
)
def test_invalid_arcs(tmp_path, change, message):
    path = grid().write_dimacs(tmp_path)
    path.write_text(change(path.read_text()))
    assert failure(path, unit_m=3.0) == f"{path}{message}"


def test_invalid_vertices(tmp_path):
    path = degree_grid().write_dimacs(tmp_path, per_unit=1e7)
    other = tmp_path / "town.co"
    assert failure(path) == (
        f"{other}, line 2: y is '359000000', must be within -8.9e+07..8.9e+07 millionths of degrees; "
        "coordinates other than degrees need --unit-m"
    )


def test_weights_that_are_no_lengths(tmp_path):
    path = degree_grid().write_dimacs(tmp_path, per_unit=1e6, weights_per_unit=1e9)
    assert "lengths and coordinates have different units" in failure(path)


def test_every_class_of_the_generator_is_open_to_cars():
    assert {one.road_class for one in brinkhoff.LANES} <= set(RoadClass) - {
        RoadClass.CYCLEWAY,
        RoadClass.FOOTWAY,
    }


def test_text_is_distinguished_from_the_binary_form(tmp_path):
    path = write(tmp_path / "x.edge", "0 1 2 3 Name\n")
    assert next(brinkhoff.edge_rows(path)).fields == {
        "id": "0",
        "source": "1",
        "target": "2",
        "class": "3",
    }
    path = write(tmp_path / "y.edge", "0 1 2 12.5 3 Name\n")
    assert next(brinkhoff.edge_rows(path)).fields["length"] == "12.5"
