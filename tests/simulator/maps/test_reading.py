"""From files to terrains: what is kept, and what is wrong with files that give none."""

from collections import Counter

import numpy as np
import pytest

from safe_region.earth.frame import Frame
from simulator import schemas
from simulator.maps import MapError, read_map
from simulator.maps.reading import map_name
from simulator.network.graph import Graph
from simulator.network.traffic import DEVICE_CLASSES
from simulator.parameters import SimulationParameters
from tests.simulator.maps.osm_xml import LAT, LON, STEP_DEG, OsmFile, town

PARAMETERS = SimulationParameters()


def read(file, tmp_path, name="town.osm", parameters=PARAMETERS, **options):
    return read_map(file.write(tmp_path / name, **options), parameters, lambda *_: None)


def edges(terrain):
    roads = terrain.roads
    return Counter(zip(roads["source"].to_pylist(), roads["target"].to_pylist(), strict=True))


def failure(path, parameters=PARAMETERS):
    with pytest.raises(MapError) as raised:
        read_map(path, parameters, lambda *_: None)
    assert str(path) in str(raised.value)
    return str(raised.value)


def test_a_town(tmp_path):
    terrain = read(town(), tmp_path)
    assert terrain.name == "Town"
    assert terrain.water == []
    assert terrain.roads.schema == schemas.arrow_schema(schemas.ROADS)
    assert terrain.places.schema == schemas.arrow_schema(schemas.PLACES)
    # 5 by 5 nodes have 40 pieces of street between them, each in both directions.
    assert terrain.roads.num_rows == 80
    assert terrain.roads["edge_id"].to_pylist() == list(range(80))
    assert list(edges(terrain)) == sorted(edges(terrain))
    assert terrain.places["name"].to_pylist() == ["Da Mario", "Il Forno", ""]
    assert terrain.places["place_id"].to_pylist() == [0, 1, 2]
    assert terrain.places["keywords"].to_pylist()[0] == ["mario", "pasta", "pizza", "restaurant"]
    frame = Frame.of(terrain.area)
    for row in terrain.roads.to_pylist():
        x0, y0 = frame.project(row["source_lon"], row["source_lat"])
        x1, y1 = frame.project(row["target_lon"], row["target_lat"])
        assert row["length_m"] == pytest.approx(np.hypot(x1 - x0, y1 - y0), rel=1e-9)


def test_the_area_has_a_margin_about_roads_and_places(tmp_path):
    file = town()
    file.node(104, 7.0, 2.0, shop="kiosk", name="Far")
    area = read(file, tmp_path).area
    frame = Frame.of(area)
    assert (LON - area.lon_min) * frame.x_m_per_deg == pytest.approx(200.0, rel=0.01)
    assert (LAT - area.lat_min) * frame.y_m_per_deg == pytest.approx(200.0, rel=0.01)
    assert area.lat_max == pytest.approx(LAT + 4 * STEP_DEG + 200.0 / frame.y_m_per_deg, rel=1e-6)
    assert area.lon_max > LON + 7.0 * STEP_DEG


def test_places_far_from_roads_are_left_out(tmp_path):
    file = town()
    file.node(104, 400.0, 2.0, shop="kiosk", name="Far")
    file.node(105, 4.0 + 499.0 / 90.08, 2.0, shop="kiosk", name="Near")
    terrain = read(file, tmp_path)
    assert "Far" not in terrain.places["name"].to_pylist()
    assert "Near" in terrain.places["name"].to_pylist()
    assert terrain.area.lon_max < LON + 20 * STEP_DEG


def test_a_closed_way_is_a_place_at_the_mean_of_its_corners(tmp_path):
    file = town()
    for number, (x, y) in enumerate([(1.2, 1.2), (1.6, 1.2), (1.6, 1.8), (1.2, 1.8)]):
        file.node(200 + number, x, y)
    file.way([200, 201, 202, 203, 200], {"building": "yes", "shop": "mall", "name": "Arcade"})
    file.way([200, 201, 202], {"shop": "mall", "name": "Not closed"})
    file.way([200, 201, 999, 202, 200], {"shop": "mall", "name": "Cut"})
    file.way([997, 998, 999, 997], {"shop": "mall", "name": "Nowhere"})
    rows = {row["name"]: row for row in read(file, tmp_path).places.to_pylist()}
    assert set(rows) == {"Da Mario", "Il Forno", "", "Arcade", "Cut"}
    assert rows["Arcade"]["lon"] == pytest.approx(LON + 1.4 * STEP_DEG)
    assert rows["Arcade"]["lat"] == pytest.approx(LAT + 1.5 * STEP_DEG)
    assert rows["Cut"]["lon"] == pytest.approx(LON + (1.2 + 1.6 + 1.6) / 3.0 * STEP_DEG)


def test_popular_places_come_first_and_the_seed_decides_between_equals(tmp_path):
    file = OsmFile()
    file.grid()
    for number in range(20):
        file.node(200 + number, 1.0 + 0.1 * number, 1.5, amenity="cafe", name=f"Cafe {number}")
    file.node(300, 1.0, 1.0, amenity="cafe", cuisine="cake", wifi="yes")
    file.node(301, 1.0, 1.0, amenity="cafe", name="Known", cuisine="cake")
    names = [
        read(file, tmp_path, parameters=PARAMETERS.changed(seed=seed)).places["name"].to_pylist()
        for seed in (1, 1, 2)
    ]
    assert names[0] == names[1] != names[2]
    assert set(names[0]) == set(names[2])
    for one in names:
        assert one[0] == "Known"
        assert not one[-1]


def test_one_way_streets_lead_one_way_for_vehicles(tmp_path):
    file = town()
    file.node(50, 2.5, 5.0)
    file.way([22, 50], {"highway": "tertiary", "oneway": "yes"})
    file.way([24, 50], {"highway": "tertiary", "oneway": "-1"})
    rows = read(file, tmp_path).roads.to_pylist()
    classes = {(row["source"], row["target"]): row["road_class"] for row in rows}
    assert classes[22, 50] == classes[50, 24] == "tertiary"
    # On foot one may go back.
    assert classes[50, 22] == classes[24, 50] == "footway"


def test_nodes_that_cannot_be_left_or_reached_are_omitted(tmp_path):
    file = town()
    file.node(50, 2.0, 6.0)
    file.node(51, 3.0, 6.0)
    file.way([22, 50], {"highway": "residential", "oneway": "yes", "foot": "no"})
    file.way([51, 22], {"highway": "residential", "oneway": "yes", "foot": "no"})
    file.grid(size=3, first=600, x0=50.0)
    nodes = set(read(file, tmp_path).roads["source"].to_pylist())
    assert nodes == set(range(1, 26))


def test_a_private_street_is_no_street(tmp_path):
    file = town()
    file.node(50, 2.0, 6.0)
    file.way([22, 50], {"highway": "residential", "access": "private"})
    assert 50 not in read(file, tmp_path).roads["source"].to_pylist()


def test_roads_with_gaps_and_repetitions(tmp_path):
    file = town()
    file.node(50, 0.0, 5.0)
    file.node(51, 1.0, 5.0)
    file.node(52, 1.0, 5.0)
    # An unknown node, a node twice, a street on a street, two nodes at one position.
    file.way([21, 50, 999, 51, 22], {"highway": "residential"})
    file.way([21, 21, 22], {"highway": "primary"})
    file.way([51, 52, 50], {"highway": "residential"})
    terrain = read(file, tmp_path)
    found = edges(terrain)
    assert max(found.values()) == 1
    assert all(source != target for source, target in found)
    assert {(21, 50), (51, 22), (51, 52), (52, 50)} <= set(found)
    assert not {(50, 51), (50, 999), (999, 51)} & set(found)
    rows = {(row["source"], row["target"]): row for row in terrain.roads.to_pylist()}
    assert rows[21, 22]["road_class"] == "primary"
    assert rows[51, 52]["length_m"] == 0.1


def test_signs_are_obeyed(tmp_path):
    file = town()
    file.node(50, 0.0, 5.0)
    file.way([21, 50], {"highway": "secondary", "maxspeed": "30 mph"})
    rows = {(row["source"], row["target"]): row for row in read(file, tmp_path).roads.to_pylist()}
    assert rows[50, 21]["speed_mps"] == pytest.approx(13.4112)
    assert rows[1, 2]["speed_mps"] == pytest.approx(30.0 / 3.6)


def test_every_device_class_has_its_streets(tmp_path):
    file = town()
    file.node(50, 2.0, 6.0)
    file.way([22, 50], {"highway": "steps"})
    file.node(51, 3.0, 6.0)
    file.way([23, 51], {"highway": "cycleway"})
    terrain = read(file, tmp_path)
    graph = Graph.of(terrain.roads, Frame.of(terrain.area))
    assert [len(graph.open_nodes(one)) for one in range(len(DEVICE_CLASSES))] == [25, 26, 27]


@pytest.mark.parametrize("name", ["town.osm", "town.osm.gz", "town.osm.bz2", "TOWN.OSM"])
def test_compression_and_order_do_not_matter(tmp_path, name):
    expected = read(town(), tmp_path)
    found = read(town(), tmp_path, name, ways_first=True)
    assert found.roads.equals(expected.roads)
    assert found.places.equals(expected.places)
    assert found.area == expected.area


def test_progress_is_reported(tmp_path):
    steps = []
    read_map(town().write(tmp_path / "town.osm"), PARAMETERS, lambda *step: steps.append(step))
    stages = [stage for stage, _, _ in steps]
    expected = ["map: relations", "map: ways", "map: nodes", "map: network"]
    assert list(dict.fromkeys(stages)) == expected
    assert all(0 <= done <= total or total == 0 for _, done, total in steps)
    for stage in set(stages):
        _, done, total = [step for step in steps if step[0] == stage][-1]
        assert done == total > 0


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("malta.osm.pbf", "Malta"),
        ("new_york-latest.osm", "New York Latest"),
        ("a b.OSM.GZ", "A B"),
        (".osm", ".osm"),
    ],
)
def test_a_map_is_called_as_its_file(tmp_path, file, name):
    assert map_name(tmp_path / file) == name


def test_a_missing_file(tmp_path):
    assert failure(tmp_path / "none.osm.pbf").endswith("does not exist")
    (tmp_path / "folder.osm").mkdir()
    assert failure(tmp_path / "folder.osm").endswith("is not a file")


@pytest.mark.parametrize(
    "name", ["town.txt", "town.pbf", "town", "town.osm.zip", "town.osh.pbf", "a.csv", "a.graph"]
)
def test_an_unknown_suffix(tmp_path, name):
    (tmp_path / name).write_text(town().text())
    assert failure(tmp_path / name).endswith(
        "must end in one of .osm.pbf, .osm, .osm.gz, .osm.bz2, .cnode, .cnode.gz, nodes.csv, "
        "nodes.csv.gz, .node, .node.gz, .co, .co.gz, .cedge, .cedge.gz, edges.csv, edges.csv.gz, "
        ".edge, .edge.gz, .gr, .gr.gz"
    )


@pytest.mark.parametrize("name", ["a.osm", "a.osm.pbf", "a.osm.gz", "a.osm.bz2"])
def test_a_file_without_content(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    assert failure(tmp_path / name).endswith("is empty")


@pytest.mark.parametrize("name", ["a.osm", "a.osm.pbf", "a.osm.gz", "a.osm.bz2"])
def test_a_file_with_something_else(tmp_path, name):
    (tmp_path / name).write_text("<html><body>404, but politely: this is no map</body></html>")
    assert "cannot be read: " in failure(tmp_path / name)


@pytest.mark.parametrize("name", ["a.osm", "a.osm.gz", "a.osm.bz2"])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_file_that_was_cut_off(tmp_path, name, share):
    path = town().write(tmp_path / name)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert "cannot be read: " in failure(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f'lon="{LON:.7f}"', 'lon="west"'),
        (f'lon="{LON:.7f}"', 'lon="500"'),
        ('node id="3"', 'node id="three"'),
        ('node id="3"', 'node id="99999999999999999999"'),
        ('nd ref="3"', 'nd ref="three"'),
        ('version="0.6"', 'version="0.5"'),
    ],
)
def test_numbers_that_are_none(tmp_path, old, new):
    path = tmp_path / "a.osm"
    text = town().text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert "cannot be read: " in failure(path)


def test_nothing_in_it(tmp_path):
    assert "has no roads" in failure(OsmFile().write(tmp_path / "a.osm"))


def test_roads_without_positions(tmp_path):
    file = town()
    file.nodes = {number: node for number, node in file.nodes.items() if number > 100}
    assert "has no roads" in failure(file.write(tmp_path / "a.osm"))


def test_no_roads(tmp_path):
    file = town()
    file.ways = []
    file.way([1, 2, 3], {"highway": "construction"})
    file.way([1, 2, 3], {"railway": "rail"})
    assert "has no roads" in failure(file.write(tmp_path / "a.osm"))


def test_no_places(tmp_path):
    file = OsmFile()
    file.grid()
    assert "has no places: " in failure(file.write(tmp_path / "a.osm"))
    file.node(104, 400.0, 2.0, shop="kiosk", name="Far")
    found = failure(file.write(tmp_path / "a.osm"))
    assert "has no places near its roads: all 1 are more than 500 m" in found


def test_pieces(tmp_path):
    file = OsmFile()
    for number in range(40):
        file.node(2 * number + 1, 10.0 * number, 0.0, shop="kiosk", name=f"Kiosk {number}")
        file.node(2 * number + 2, 10.0 * number + 1.0, 0.0)
        file.way([2 * number + 1, 2 * number + 2], {"highway": "residential"})
    found = failure(file.write(tmp_path / "a.osm"))
    assert (
        "too few connected roads: in the largest part the roads for a car have 0.18 km, at least 1 km"
        in found
    )
    assert "(2 of 80 nodes of roads are in that part)" in found


def test_one_way_streets_only(tmp_path):
    file = OsmFile()
    for number in range(9):
        file.node(number + 1, 10.0 * number, 0.0, shop="kiosk", name="Kiosk")
    file.way(list(range(1, 10)), {"highway": "motorway"})
    assert "is not connected" in failure(file.write(tmp_path / "a.osm"))


def test_roads_with_restricted_access(tmp_path):
    file = OsmFile()
    file.grid(highway="footway")
    file.node(101, 1.2, 1.1, amenity="restaurant", name="Da Mario")
    path = file.write(tmp_path / "a.osm")
    assert "roads for a car have 0 km" in failure(path)
    assert "roads for a bicycle have 0 km" in failure(path, PARAMETERS.changed(car_share=0.0))
    walkers = PARAMETERS.changed(car_share=0.0, bicycle_share=0.0)
    assert read_map(path, walkers, lambda *_: None).roads.num_rows == 80


def test_a_map_around_the_globe(tmp_path):
    file = town()
    file.node(50, -150_000.0, 0.0)
    file.way([1, 50], {"highway": "primary"})
    assert "degrees of longitude, more than 90" in failure(file.write(tmp_path / "a.osm"))
