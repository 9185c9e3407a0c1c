"""Real extracts and networks. Their folder is $NEARCAST_DATA or ../shared/data beside the repository."""

import os
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from safe_region.earth.frame import Frame
from simulator.maps import MapError, read_map
from simulator.movement.streets import Streets
from simulator.movement.trajectories import drive
from simulator.network.graph import Graph
from simulator.network.traffic import RoadClass
from simulator.parameters import SimulationParameters

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("NEARCAST_DATA", ROOT.parent / "shared" / "data"))
PARAMETERS = SimulationParameters(devices=60, seconds=120)


def extract(name, folder="osm"):
    path = DATA / folder / name
    if not path.exists():
        pytest.skip(f"{name} is not in NEARCAST_DATA/{folder}")
    return path


def read(path, parameters=PARAMETERS):
    return read_map(path, parameters, lambda *_: None)


@pytest.mark.parametrize(
    ("name", "roads_min", "places_min"),
    [
        ("monaco.osm.gz", 8_000, 100),
        ("malta.osm.pbf", 150_000, 2_000),
        ("porto_center.osm.pbf", 35_000, 2_500),
        ("helsinki_center.osm.pbf", 20_000, 2_000),
    ],
)
def test_an_extract_can_be_driven_in(name, roads_min, places_min):
    terrain = read(extract(name))
    assert terrain.roads.num_rows > roads_min
    assert terrain.places.num_rows > places_min
    classes = set(terrain.roads["road_class"].to_pylist())
    assert {"residential", "service", "footway"} <= classes <= {one.value for one in RoadClass}
    assert pc.min(terrain.roads["length_m"]).as_py() >= 0.1
    assert pc.min(terrain.roads["speed_mps"]).as_py() > 0.5
    assert pc.max(terrain.roads["speed_mps"]).as_py() < 42.0
    frame = Frame.of(terrain.area)
    streets = Streets.of(terrain, PARAMETERS)
    graph = streets.graph
    # What is read is what is driven in: nothing is left to drop, but for what turns do not lead to.
    assert len(Graph.of(terrain.roads, frame).targets) == terrain.roads.num_rows
    assert len(np.unique(graph.edge_ids)) > 0.98 * terrain.roads.num_rows
    assert max(graph.lengths_m) < 3_000.0
    batch = drive(streets, np.arange(PARAMETERS.devices), PARAMETERS)
    assert 0.5 < (batch.column("speed_mps").to_numpy() > 0.0).mean() < 0.99
    for lon, lat in zip(batch.column("lon").to_pylist(), batch.column("lat").to_pylist(), strict=True):
        assert frame.covers(lon, lat)


def test_malta_without_its_far_outliers_and_smaller_islands():
    terrain = read(extract("malta.osm.pbf"))
    area = terrain.area
    assert 14.30 < area.lon_min < area.lon_max < 14.60
    assert 35.79 < area.lat_min < area.lat_max < 36.02
    assert terrain.name == "Malta"
    assert terrain.water
    words = pc.value_counts(pc.list_flatten(terrain.places["keywords"])).to_pylist()
    counts = {row["values"]: row["counts"] for row in words}
    assert counts["restaurant"] > 200
    assert not {"the", "of", "triq", "yes", ""} & {word for word in counts if counts[word] > 500}


def test_the_same_file_gives_the_same_tables():
    path = extract("monaco.osm.gz")
    first, second = read(path), read(path)
    assert first.roads.equals(second.roads)
    assert first.places.equals(second.places)
    assert first.area == second.area


@pytest.mark.parametrize(
    ("name", "unit_m", "nodes", "edges", "km"),
    [
        # Both ways each; of 7,035 edges six are there twice.
        ("OL.cnode", 2.5, 6_105, 2 * 7_029, 2_591),
        ("cal.cedge", None, 21_048, 2 * 21_693, 68_938),
        # Less 117 from a node to itself and what is there more than once.
        ("bayarea_nodes.csv.gz", None, 30_826, 65_040, 31_152),
    ],
)
def test_a_road_network_can_be_driven_in(name, unit_m, nodes, edges, km):
    path = extract(name, "roads")
    parameters = PARAMETERS.changed(map_file=path, unit_m=unit_m)
    terrain = read(path, parameters)
    frame = Frame.of(terrain.area)
    streets = Streets.of(terrain, parameters)
    graph = streets.graph
    # All of it is connected.
    assert graph.node_count == nodes
    assert len(graph.targets) == terrain.roads.num_rows == edges
    assert pc.sum(terrain.roads["length_m"]).as_py() == pytest.approx(1_000 * km, rel=1e-3)
    dx_m = graph.xs_m[graph.targets] - graph.xs_m[graph.sources]
    dy_m = graph.ys_m[graph.targets] - graph.ys_m[graph.sources]
    assert (graph.lengths_m >= np.sqrt(dx_m * dx_m + dy_m * dy_m) * (1.0 - 1e-9)).all()
    assert terrain.places.num_rows == parameters.places
    batch = drive(streets, np.arange(parameters.devices), parameters)
    assert 0.5 < (batch.column("speed_mps").to_numpy() > 0.0).mean() <= 1.0
    for lon, lat in zip(batch.column("lon").to_pylist(), batch.column("lat").to_pylist(), strict=True):
        assert frame.covers(lon, lat)


def test_oldenburg_is_as_wide_as_its_unit_implies():
    path = extract("OL.cedge", "roads")
    terrain = read(path, PARAMETERS.changed(map_file=path, unit_m=2.5))
    frame = Frame.of(terrain.area)
    assert terrain.name == "OL"
    # 10,000 units, and 2 % on each side.
    assert (terrain.area.lon_max - terrain.area.lon_min) * frame.x_m_per_deg == pytest.approx(26_000.0)
    assert (terrain.area.lat_max - terrain.area.lat_min) * frame.y_m_per_deg == pytest.approx(26_000.0)


def test_california_with_real_places():
    path = extract("cal.cnode", "roads")
    places = extract("geonames_cities1000.csv.gz", "text")
    terrain = read(path, PARAMETERS.changed(map_file=path, places_file=places))
    assert 300 < terrain.places.num_rows < 1_000
    assert "Fresno" in terrain.places["name"].to_pylist()
    assert -125.0 < terrain.area.lon_min < terrain.area.lon_max < -114.0


def test_half_a_file_is_an_error(tmp_path):
    path = tmp_path / "half.osm.pbf"
    content = extract("malta.osm.pbf").read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(MapError, match=r"half\.osm\.pbf cannot be read: "):
        read(path)
