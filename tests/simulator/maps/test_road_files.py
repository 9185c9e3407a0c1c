"""Road networks as terrains: how they are placed, what becomes of their edges, where places are."""

import numpy as np
import pytest

from safe_region.earth.frame import EARTH_RADIUS_M, Frame
from simulator import schemas
from simulator.city.vocabulary import CATEGORIES
from simulator.maps import read_map
from simulator.maps.reading import map_name
from simulator.network.graph import Graph
from simulator.network.traffic import SPEEDS_MPS, RoadClass
from simulator.parameters import SimulationParameters
from tests.simulator.maps.road_lists import LAT, LON, STEP_DEG, degree_grid, grid, write
from tests.simulator.test_city import distance_to_roads_m

M_PER_DEG = EARTH_RADIUS_M * np.pi / 180.0
KMH = 1.0 / 3.6


def read(path, **parameters):
    parameters = {"places": 50} | parameters
    return read_map(path, SimulationParameters(map_file=path, **parameters), lambda *_: None)


def edges(terrain):
    return {(row["source"], row["target"]): row for row in terrain.roads.to_pylist()}


def test_coordinates_without_a_unit(tmp_path):
    terrain = read(grid(x0=5_000.0, y0=700.0).write_plain(tmp_path, "old_town"), unit_m=2.5)
    assert terrain.name == "Old Town"
    assert terrain.water == []
    assert terrain.roads.schema == schemas.arrow_schema(schemas.ROADS)
    assert terrain.places.schema == schemas.arrow_schema(schemas.PLACES)
    # 40 streets, each in both directions.
    assert terrain.roads["edge_id"].to_pylist() == list(range(80))
    assert list(edges(terrain)) == sorted(edges(terrain))
    assert set(terrain.roads["road_class"].to_pylist()) == {"residential"}
    assert set(terrain.roads["speed_mps"].to_pylist()) == {30.0 * KMH}
    for row in terrain.roads.to_pylist():
        assert row["length_m"] == pytest.approx(250.0, rel=1e-6)
    # About 0 degrees, x to the east and y to the north, with 200 m around.
    half_deg = (2.0 * 250.0 + 200.0) / M_PER_DEG
    expected = (-half_deg, -half_deg, half_deg, half_deg)
    assert terrain.area == pytest.approx(expected, rel=1e-3)
    first = edges(terrain)[1, 2]
    assert (first["source_lon"], first["source_lat"]) == pytest.approx((-500 / M_PER_DEG,) * 2)
    assert first["target_lon"] > first["source_lon"]
    assert edges(terrain)[1, 6]["target_lat"] > first["source_lat"]


def test_coordinates_that_are_degrees(tmp_path):
    lists = degree_grid(both=False)
    terrain = read(lists.write_plain(tmp_path))
    assert terrain.roads.num_rows == 80
    assert edges(terrain)[1, 2]["source_lon"] == LON
    assert edges(terrain)[1, 2]["source_lat"] == LAT
    assert edges(terrain)[1, 6]["target_lat"] == pytest.approx(LAT + STEP_DEG, abs=1e-9)
    # A degree is shorter to the east than to the north, in metres; its edges say 0.001 for both.
    assert edges(terrain)[1, 6]["length_m"] == pytest.approx(STEP_DEG * M_PER_DEG, rel=1e-4)
    eastwards = STEP_DEG * M_PER_DEG * np.cos(np.radians(LAT))
    assert edges(terrain)[1, 2]["length_m"] == pytest.approx(eastwards, rel=1e-3)


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("layout", ["write_plain", "write_csv"])
def test_either_file_stands_for_both(tmp_path, half, ending, layout):
    nodes = getattr(degree_grid(), layout)(tmp_path, ending=ending)
    other = next(one for one in tmp_path.iterdir() if one != nodes)
    assert read((nodes, other)[half]).roads.num_rows == 80


def test_the_case_of_an_ending_does_not_matter(tmp_path):
    nodes = grid().write_plain(tmp_path)
    nodes.with_suffix(".cedge").rename(tmp_path / "TOWN.CEDGE")
    assert read(nodes.rename(tmp_path / "TOWN.CNODE"), unit_m=1.0).roads.num_rows == 80


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("old_town.cnode", "Old Town"),
        ("old_town.cedge.gz", "Old Town"),
        ("bayarea_nodes.csv", "Bayarea"),
        ("bayarea-edges.csv.gz", "Bayarea"),
        ("nodes.csv", "nodes.csv"),
    ],
)
def test_a_network_is_called_as_its_files(tmp_path, file, name):
    assert map_name(tmp_path / file) == name


def test_edges_of_csv_files_lead_one_way(tmp_path):
    lists = degree_grid()
    lists.node(50, LON + 1.5 * STEP_DEG, LAT - STEP_DEG)
    lists.edge(1, 50)
    lists.edge(50, 2)
    found = edges(read(lists.write_csv(tmp_path)))
    assert {(1, 50), (50, 2)} <= set(found)
    assert not {(50, 1), (2, 50)} & set(found)


@pytest.mark.parametrize(
    ("value", "ways"),
    [("no", 2), ("False", 2), ("0", 2), ("yes", 1), ("TRUE", 1), ("1", 1), ("", 1)],
)
def test_edges_with_directions(tmp_path, value, ways):
    lists = degree_grid()
    lists.node(50, LON + 1.5 * STEP_DEG, LAT - STEP_DEG)
    lists.edge(1, 50, oneway=value)
    lists.edge(50, 2)
    found = set(edges(read(lists.write_csv(tmp_path, columns=["oneway"]))))
    assert ((1, 50) in found) + ((50, 1) in found) == ways


def test_redundant_edges_are_omitted(tmp_path):
    lists = grid()
    lists.edge(1, 2)
    lists.edge(2, 1)
    lists.edge(7, 7)
    terrain = read(lists.write_plain(tmp_path), unit_m=1.0)
    assert terrain.roads.equals(read(grid().write_plain(tmp_path), unit_m=1.0).roads)


def test_of_edges_between_the_same_nodes_the_important_one_stays_then_the_fast_one(tmp_path):
    lists = degree_grid()
    lists.edge(1, 2, highway="secondary", speed_kmh=30, length=90)
    lists.edge(1, 2, highway="primary", speed_kmh=30, length=120)
    lists.edge(1, 2, highway="primary", speed_kmh=30, length=100)
    lists.edge(1, 2, highway="primary", speed_kmh=30, length=150)
    row = edges(read(lists.write_csv(tmp_path, columns=["highway", "speed_kmh", "length"])))[1, 2]
    assert row["road_class"] == "primary"
    assert row["length_m"] == pytest.approx(100.0, rel=1e-3)


def test_only_the_largest_connected_part_is_kept(tmp_path):
    lists = degree_grid()
    for number in range(8):
        lists.node(100 + number, LON + 0.5 + STEP_DEG * number, LAT)
        lists.edge(100 + number, max(100, 99 + number))
    lists.node(200, LON + STEP_DEG * 0.5, LAT - STEP_DEG)
    lists.edge(1, 200)
    lists.node(300, LON - 1.0, LAT)
    terrain = read(lists.write_csv(tmp_path))
    assert terrain.roads.num_rows == 80
    assert terrain.area.lon_max < LON + 0.1
    graph = Graph.of(terrain.roads, Frame.of(terrain.area))
    assert len(graph.targets) == 80


@pytest.mark.parametrize(
    ("values", "road_class", "speed_mps"),
    [
        ({}, "residential", 30.0 * KMH),
        ({"speed_kmh": 100}, "motorway", 100.0 * KMH),
        ({"speed_kph": 99}, "motorway", 99.0 * KMH),
        ({"speed_mph": 65}, "motorway", 65 * 0.44704),
        ({"speed_mph": 45}, "primary", 45 * 0.44704),
        ({"speed_kmh": 50}, "secondary", 50.0 * KMH),
        ({"speed_mps": 11.11}, "tertiary", 11.11),
        ({"speed_kmh": 39}, "residential", 39.0 * KMH),
        ({"speed_kmh": 1}, "residential", 5.0 * KMH),
        ({"speed_kmh": 900}, "motorway", 150.0 * KMH),
        ({"highway": "tertiary"}, "tertiary", 40.0 * KMH),
        ({"highway": "trunk_link"}, "primary", 50.0 * KMH),
        ({"highway": "tertiary", "speed_kmh": 100}, "tertiary", 100.0 * KMH),
        ({"highway": "cycleway", "speed_kmh": 100}, "cycleway", 30.0 * KMH),
        ({"highway": "", "speed_kmh": ""}, "residential", 30.0 * KMH),
    ],
)
def test_class_and_speed_of_an_edge(tmp_path, values, road_class, speed_mps):
    lists = degree_grid()
    lists.node(50, LON + 1.5 * STEP_DEG, LAT - STEP_DEG)
    lists.edge(1, 50, **values)
    lists.edge(50, 1, **values)
    row = edges(read(lists.write_csv(tmp_path, columns=list(values))))[1, 50]
    assert row["road_class"] == road_class
    assert row["speed_mps"] == pytest.approx(speed_mps)
    assert RoadClass(road_class) in SPEEDS_MPS


def test_an_edge_with_bends_has_the_length_of_the_file(tmp_path):
    lists = degree_grid()
    lists.edges = [(source, target, {"length": 200.0}) for source, target, _ in lists.edges]
    lists.edges[0] = (*lists.edges[0][:2], {"length": 350.5})
    lists.edges[1] = (*lists.edges[1][:2], {"length": ""})
    lists.edges[2] = (*lists.edges[2][:2], {"length": 10.0})
    found = edges(read(lists.write_csv(tmp_path, columns=["length"])))
    straight_m = STEP_DEG * M_PER_DEG * np.cos(np.radians(LAT))
    assert found[1, 2]["length_m"] == pytest.approx(350.5, rel=1e-4)
    assert found[2, 1]["length_m"] == pytest.approx(straight_m, rel=1e-4)
    # What would be shorter than the straight line is as long as that: nobody flies.
    assert found[1, 6]["length_m"] == pytest.approx(STEP_DEG * M_PER_DEG, rel=1e-4)


def test_lengths_of_cedge_files_are_in_the_unit_of_the_coordinates(tmp_path):
    in_units = read(grid().write_plain(tmp_path, lengths={0: 160.0}), unit_m=2.5)
    assert edges(in_units)[1, 2]["length_m"] == pytest.approx(400.0, rel=1e-6)
    assert edges(in_units)[2, 1]["length_m"] == pytest.approx(400.0, rel=1e-6)
    lists = degree_grid(both=False)
    in_degrees = read(lists.write_plain(tmp_path, "degrees", lengths={0: 1.6 * STEP_DEG}))
    eastwards_m = STEP_DEG * M_PER_DEG * np.cos(np.radians(LAT))
    assert edges(in_degrees)[1, 2]["length_m"] == pytest.approx(1.6 * eastwards_m, rel=1e-3)


def test_nodes_at_the_same_position(tmp_path):
    lists = grid()
    lists.node(50, 0.0, 0.0)
    lists.edge(1, 50)
    assert edges(read(lists.write_plain(tmp_path), unit_m=1.0))[1, 50]["length_m"] == pytest.approx(0.1)


def test_nodes_that_are_almost_at_the_same_position(tmp_path):
    lists = grid()
    lists.node(50, 0.0, 0.0)
    lists.edge(1, 50)
    path = lists.write_plain(tmp_path, lengths={40: 70.0})
    path.write_text(path.read_text().replace("50 0.000000", "50 1e-307"))
    row = edges(read(path, unit_m=1.0))[1, 50]
    assert row["length_m"] == pytest.approx(0.1)


def test_columns_by_any_of_their_names(tmp_path):
    lists = degree_grid()
    path = lists.write_csv(tmp_path, header="Node_ID, Longitude ,LATITUDE")
    other = path.with_name("town_edges.csv")
    other.write_text("\ufeff" + other.read_text().replace("u,v", '"from","to"').replace("\n", "\r\n"))
    assert read(path).roads.num_rows == 80


def test_of_two_pairs_of_coordinates_the_unit_chooses(tmp_path):
    lists = degree_grid()
    path = lists.write_csv(tmp_path)
    rows = [
        f"{number},{(lon - LON) * 100_000},{(lat - LAT) * 100_000},{lon},{lat}"
        for number, (lon, lat) in lists.nodes.items()
    ]
    write(path, "\n".join(["id,x,y,lon,lat", *rows]))
    assert read(path).area.lon_min > 14.0
    assert read(path, unit_m=1.0).area.lon_min < 0.0
    assert edges(read(path, unit_m=1.0))[1, 2]["length_m"] == pytest.approx(100.0)


def test_places_are_drawn_beside_edges(tmp_path):
    path = degree_grid().write_csv(tmp_path)
    terrain = read(path, places=200)
    frame = Frame.of(terrain.area)
    rows = terrain.places.to_pylist()
    assert [row["place_id"] for row in rows] == list(range(200))
    for row in rows:
        assert frame.covers(row["lon"], row["lat"])
        assert distance_to_roads_m(terrain.roads, frame, row["lon"], row["lat"]) < 16.01
    words = {word for category in CATEGORIES for word in category.words}
    assert {word for row in rows for word in row["keywords"]} <= words
    assert {row["category"] for row in rows} == {category.name for category in CATEGORIES}
    assert terrain.places.equals(read(path, places=200).places)
    other = read(path, places=200, seed=2)
    assert not terrain.places.equals(other.places)
    assert terrain.roads.equals(other.roads)


def test_motorways_have_no_places_unless_there_is_nothing_else(tmp_path):
    lists = degree_grid()
    classes = {1: "motorway", 2: "motorway"}
    lists.edges = [
        (source, target, {"highway": classes.get(abs(source - target), "residential")})
        if min(source, target) < 21
        else (source, target, {"highway": "tertiary"})
        for source, target, _ in lists.edges
    ]
    terrain = read(lists.write_csv(tmp_path, columns=["highway"]), places=300)
    is_motorway = np.array(terrain.roads["road_class"].to_pylist()) == "motorway"
    assert 0 < is_motorway.sum() < len(is_motorway)
    streets = terrain.roads.filter(~is_motorway)
    frame = Frame.of(terrain.area)
    for row in terrain.places.to_pylist():
        assert distance_to_roads_m(streets, frame, row["lon"], row["lat"]) < 16.01
    lists.edges = [(source, target, {"highway": "motorway"}) for source, target, _ in lists.edges]
    path = lists.write_csv(tmp_path, columns=["highway"])
    assert read(path, car_share=1.0, bicycle_share=0.0).places.num_rows == 50


def test_a_simulation_records_its_source(tmp_path):
    parameters = SimulationParameters(map_file=tmp_path / "a.cnode", unit_m=2.5)
    with_places = parameters.changed(places_file=tmp_path / "pois.csv.gz")
    assert parameters.as_dict()["unit_m"] == 2.5
    assert parameters.as_dict()["places_file"] is None
    assert with_places.as_dict()["places_file"] == "pois.csv.gz"
    assert with_places.as_dict()["map_file"] == "a.cnode"
