"""What is wrong with road files, and how it is said: file, line, field, value, limit."""

import pytest

from simulator.maps import MapError, read_map
from simulator.parameters import SimulationParameters
from tests.simulator.maps.osm_xml import town
from tests.simulator.maps.road_lists import LAT, LON, STEP_DEG, RoadLists, degree_grid, grid, write

ID_RANGE = "-9223372036854775807..9223372036854775807"


def failure(path, **parameters):
    with pytest.raises(MapError) as raised:
        read_map(path, SimulationParameters(map_file=path, **parameters), lambda *_: None)
    return str(raised.value)


def changed(path, line, text):
    """Replace one line of a file; lines count from 1."""
    lines = path.read_text().split("\n")
    lines[line - 1] = text
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3 0.0", "2 fields, must be 3: id, x, y"),
        ("3 0.0 0.0 0.0", "4 fields, must be 3: id, x, y"),
        ("3,0.0,0.0", "1 fields, must be 3: id, x, y"),
        ("three 0.0 0.0", "id is 'three', must be a whole number"),
        ("3.0 0.0 0.0", "id is '3.0', must be a whole number"),
        ("3_0 0.0 0.0", "id is '3_0', must be a whole number"),
        ("9223372036854775808 0 0", f"id is '9223372036854775808', must be within {ID_RANGE}"),
        ("2 0.0 0.0", "id is '2', must differ from the ids of all lines before it"),
        ("3 east 0.0", "x is 'east', must be a number"),
        ("3 nan 0.0", "x is 'nan', must be within -1e+12..1e+12"),
        ("3 0.0 -inf", "y is '-inf', must be within -1e+12..1e+12"),
        ("3 0.0 1e13", "y is '1e13', must be within -1e+12..1e+12"),
        ("3 0.0 \u0663", "y is '\u0663', must be a number"),
        ("3 0.0 " + "9" * 5_000, f"y is '{'9' * 80}', must be within -1e+12..1e+12"),
    ],
)
def test_a_line_of_cnode(tmp_path, line, message):
    path = changed(grid().write_plain(tmp_path), 3, line)
    assert failure(path, unit_m=1.0) == f"{path}, line 3: {message}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2 1 2", "3 fields, must be 4: id, source, target, length"),
        ("x 1 2 100", "id is 'x', must be a whole number"),
        ("2 1 two 100", "target is 'two', must be a whole number"),
        ("2 26 2 100", "source is '26', must be the id of a node"),
        ("2 1 -2 100", "target is '-2', must be the id of a node"),
        ("2 1 2 far", "length is 'far', must be a number"),
        ("2 1 2 -1", "length is '-1', must be within 0..1e+09"),
        ("2 1 2 NaN", "length is 'NaN', must be within 0..1e+09"),
    ],
)
def test_a_line_of_cedge(tmp_path, line, message):
    path = grid().write_plain(tmp_path)
    other = changed(path.with_suffix(".cedge"), 4, line)
    assert failure(path, unit_m=1.0) == f"{other}, line 4: {message}"
    assert failure(other, unit_m=1.0) == f"{other}, line 4: {message}"


HINT = " degrees; coordinates other than degrees need --unit-m"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3,14.5", "2 fields, must be 3: osmid, x, y"),
        (",14.5,35.9", "osmid is '', must be a whole number"),
        ("3,,35.9", "x is '', must be a number"),
        ("3,180.1,35.9", f"x is '180.1', must be within -180..180{HINT}"),
        ("3,14.5,-89.5", f"y is '-89.5', must be within -89..89{HINT}"),
        ('3,"14.5,35.9', "not CSV: unexpected end of data"),
        ('3,"14"5,35.9', "not CSV: ',' expected after '\"'"),
    ],
)
def test_a_line_of_nodes_csv(tmp_path, line, message):
    path = changed(degree_grid().write_csv(tmp_path), 3, line)
    assert failure(path) == f"{path}, line 3: {message}"


COLUMNS = ["length", "speed_mph", "highway", "oneway"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2", "2 fields, must be 6: u, v, length, speed_mph, highway, oneway"),
        ("1,99,,,,", "v is '99', must be the id of a node"),
        ("a,2,,,,", "u is 'a', must be a whole number"),
        ("1,2,long,,,", "length is 'long', must be a number"),
        ("1,2,-3,,,", "length is '-3', must be within 0..1e+09"),
        ("1,2,,0,,", "speed_mph is '0', must be within 0.1..1000"),
        ("1,2,,fast,,", "speed_mph is 'fast', must be a number"),
        ("1,2,,,raceway,", "highway is 'raceway', must be empty or one of motorway, motorway_link,"),
        ("1,2,,,,-1", "oneway is '-1', must be yes, no, true, false, 1, 0 or empty"),
    ],
)
def test_a_line_of_edges_csv(tmp_path, line, message):
    path = degree_grid().write_csv(tmp_path, columns=COLUMNS)
    other = changed(path.with_name("town_edges.csv"), 5, line)
    assert failure(path).startswith(f"{other}, line 5: {message}")


def test_lines_count_as_an_editor_shows_them(tmp_path):
    lists = degree_grid()
    path = lists.write_csv(tmp_path)
    text = path.read_text().replace("osmid,x,y", "osmid,x,y,ref").replace("\n", ",\n")
    text = text.replace("ref,\n", "ref\n").replace(",\n", ',"two\nlines"\n', 1) + "\n\nfoo,0,0,\n"
    path.write_text(text)
    line = text.split("\n").index("foo,0,0,") + 1
    assert failure(path) == f"{path}, line {line}: osmid is 'foo', must be a whole number"
    write(tmp_path / "b.cnode", "\n\n0 0 0\n\nx 0 0\n")
    write(tmp_path / "b.cedge", "0 0 0 0\n")
    assert failure(tmp_path / "b.cnode").startswith(f"{tmp_path / 'b.cnode'}, line 5: id is 'x'")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "number,x,y",
            "no column for the id of a node: must be one of osmid, node_id, id; there are number, x, y",
        ),
        (
            "id,east,y",
            "no column for its position: must be one of lon, longitude, x; there are id, east, y",
        ),
        (
            "id,x,north",
            "no column for its position: must be one of lat, latitude, y; there are id, x, north",
        ),
        ("id,x,x", "the name 'x' of a column must be unique; there are 'id', 'x', 'x'"),
        ("id,x,", "the name '' of a column must be unique; there are 'id', 'x', ''"),
        ("", "the name '' of a column must be unique; there are ''"),
    ],
)
def test_a_header_of_nodes(tmp_path, header, message):
    path = degree_grid().write_csv(tmp_path, header=header)
    if not header:
        path.write_text("\n")
    assert failure(path) == f"{path}, line 1: {message}"


def test_a_header_of_edges(tmp_path):
    path = degree_grid().write_csv(tmp_path)
    other = changed(path.with_name("town_edges.csv"), 1, "begin,v")
    assert failure(path) == (
        f"{other}, line 1: no column for the first node of an edge: must be one of u, source, from; "
        "there are begin, v"
    )
    changed(other, 1, "u,end")
    assert "no column for the last node of an edge: must be one of v, target, to" in failure(path)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("a.cnode", "a.cedge"),
        ("a.cedge", "a.cnode"),
        ("a_nodes.csv.gz", "a_edges.csv.gz"),
        ("edges.csv", "nodes.csv"),
        ("A.CNODE", "A.CEDGE"),
    ],
)
def test_one_half_of_a_network(tmp_path, name, other):
    path = write(tmp_path / name, "0 0 0\n")
    expected = f"{path} is one half of a road network: file {tmp_path / other} does not exist"
    assert failure(path) == expected
    (tmp_path / other).write_bytes(b"")
    assert failure(path) == f"{tmp_path / other} is empty"


def test_a_missing_file(tmp_path):
    assert failure(tmp_path / "a.cnode") == f"file {tmp_path / 'a.cnode'} does not exist"
    (tmp_path / "a.cnode").mkdir()
    assert failure(tmp_path / "a.cnode") == f"{tmp_path / 'a.cnode'} is not a file"


def test_compressed_files_that_are_none_or_were_cut_off(tmp_path):
    path = degree_grid().write_csv(tmp_path, ending=".gz")
    content = path.read_bytes()
    for bad in (b"osmid,x,y\n", content[: len(content) // 2], content[:-4], content[:40] + b"xxxx"):
        path.write_bytes(bad)
        assert failure(path).startswith(f"{path} cannot be read: ")


def test_text_that_is_none(tmp_path):
    path = grid().write_plain(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[6] = b"8 \xff 0"
    path.write_bytes(b"\n".join(lines))
    assert failure(path, unit_m=1.0) == f"{path}, line 7: not UTF-8 text (invalid start byte)"


def test_coordinates_that_are_no_degrees_need_a_unit(tmp_path):
    path = grid().write_plain(tmp_path)
    assert failure(path) == f"{path}, line 3: x is '200.000000', must be within -180..180{HINT}"


def test_a_unit_that_makes_the_network_too_large_or_too_small(tmp_path):
    path = grid().write_plain(tmp_path)
    assert (
        failure(path, unit_m=1e5) == f"{path} spans 40,000 km at 100000 metres per unit, more than 10,008"
    )
    street = RoadLists()
    street.node(1, 0.0, 0.0)
    street.node(2, 100.0, 0.0)
    street.edge(1, 2)
    found = failure(street.write_plain(tmp_path, "street"), unit_m=4.0)
    assert "too few connected roads: in the largest part the roads for a car have 0.8 km" in found
    assert failure(path, unit_m=0.01) == (
        f"{path} spans 4 m at 0.01 metres per unit, less than 200; "
        "if its coordinates are degrees, leave out --unit-m"
    )
    assert "degrees of longitude, more than 90" in failure(path, unit_m=25_000.0)


def test_an_openstreetmap_file_needs_no_unit(tmp_path):
    path = town().write(tmp_path / "town.osm")
    expected = f"{path} is an OpenStreetMap file: its coordinates are degrees, not --unit-m"
    assert failure(path, unit_m=1.0) == expected


def test_lengths_in_another_unit(tmp_path):
    lists = degree_grid()
    lists.edges = [(source, target, {"length": 0.1}) for source, target, _ in lists.edges]
    path = lists.write_csv(tmp_path, columns=["length"])
    found = failure(path)
    assert found.startswith(f"{path.with_name('town_edges.csv')}: its lengths are 0.00")
    assert found.endswith("must be within 0.5..2: lengths and coordinates have different units")
    path = grid().write_plain(tmp_path, lengths=dict.fromkeys(range(40), 250.0))
    assert "its lengths are 2.5 times the distance of the nodes" in failure(path, unit_m=1.0)


def test_nothing_in_it(tmp_path):
    path = write(tmp_path / "a.cnode", "\n")
    write(tmp_path / "a.cedge", "\n")
    assert failure(path) == f"{path} has no nodes"
    lists = RoadLists()
    lists.node(1, LON, LAT)
    lists.edge(1, 1)
    path = lists.write_plain(tmp_path)
    expected = f"{path.with_suffix('.cedge')} has no roads: no edge between two nodes"
    assert failure(path) == expected
    lists.edges = []
    path = lists.write_csv(tmp_path)
    assert failure(path).endswith("town_edges.csv has no roads: no edge between two nodes")


def test_edges_that_lead_one_way_only(tmp_path):
    path = degree_grid(both=False).write_csv(tmp_path)
    assert failure(path) == f"{path} is not connected: its roads connect no two nodes in both directions"


def test_pieces(tmp_path):
    lists = RoadLists()
    for number in range(20):
        lists.node(2 * number, LON + 10 * number * STEP_DEG, LAT)
        lists.node(2 * number + 1, LON + (10 * number + 1) * STEP_DEG, LAT)
        lists.edge(2 * number, 2 * number + 1)
    found = failure(lists.write_plain(tmp_path))
    assert (
        "too few connected roads: in the largest part the roads for a car have 0.18 km, at least 1 km"
        in found
    )
    assert "(2 of 40 nodes of roads are in that part)" in found


def test_roads_with_restricted_access(tmp_path):
    lists = degree_grid()
    lists.edges = [(source, target, {"speed_kmh": 110}) for source, target, _ in lists.edges]
    assert "roads for a bicycle have 0 km" in failure(lists.write_csv(tmp_path, columns=["speed_kmh"]))
