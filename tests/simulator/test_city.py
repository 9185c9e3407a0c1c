from collections import Counter

import numpy as np
import pytest
import shapely

from safe_region.earth.frame import Frame
from simulator import schemas
from simulator.city import city_area, generate_city
from simulator.city.places import KEYWORDS_MAX, KEYWORDS_MIN
from simulator.city.vocabulary import CATEGORIES
from simulator.network.traffic import SPEEDS_MPS, RoadClass
from simulator.parameters import SimulationParameters
from tests.simulator.conftest import SMALL


def _reached(starts, ends, first):
    """Nodes that can be reached from one, by the definition."""
    following = {}
    for start, end in zip(starts, ends, strict=True):
        following.setdefault(start, []).append(end)
    seen, stack = {first}, [first]
    while stack:
        for node in following.get(stack.pop(), []):
            if node not in seen:
                seen.add(node)
                stack.append(node)
    return seen


@pytest.mark.parametrize(
    "parameters", [SMALL, SMALL.changed(seed=3, city_width_m=9_000.0), SimulationParameters()]
)
def test_every_node_reaches_every_node_even_without_motorways(parameters):
    roads = generate_city(parameters).roads
    sources, targets = roads["source"].to_pylist(), roads["target"].to_pylist()
    nodes = set(sources) | set(targets)
    assert nodes == set(range(len(nodes)))
    assert _reached(sources, targets, 0) == nodes
    assert _reached(targets, sources, 0) == nodes
    classes = roads["road_class"].to_pylist()
    ground = [i for i, one in enumerate(classes) if one != RoadClass.MOTORWAY.value]
    sources, targets = [sources[i] for i in ground], [targets[i] for i in ground]
    first = sources[0]
    both_ways = _reached(sources, targets, first) & _reached(targets, sources, first)
    assert len(both_ways) > 0.95 * len(set(sources) | set(targets))


def test_a_city_of_the_default_size_looks_like_one():
    city = generate_city(SimulationParameters())
    roads, places = city.roads, city.places
    classes = Counter(roads["road_class"].to_pylist())
    assert set(classes) == {"motorway", "primary", "secondary", "tertiary", "residential"}
    assert classes["residential"] > classes["primary"] > classes["motorway"] > 50
    assert 4_000 < len(set(roads["source"].to_pylist())) < 20_000
    pairs = Counter(zip(roads["source"].to_pylist(), roads["target"].to_pylist(), strict=True))
    assert max(pairs.values()) == 1
    one_way = sum((target, source) not in pairs for source, target in pairs)
    assert 0 < one_way < 0.2 * len(pairs)
    assert places.num_rows == 2_500


def test_roads_have_their_length_and_speed(city):
    roads = city.roads
    assert roads.schema == schemas.arrow_schema(schemas.ROADS)
    frame = Frame.of(city_area(SMALL))
    for row in roads.to_pylist():
        x0, y0 = frame.project(row["source_lon"], row["source_lat"])
        x1, y1 = frame.project(row["target_lon"], row["target_lat"])
        assert row["length_m"] == pytest.approx(np.hypot(x1 - x0, y1 - y0), abs=1e-6)
        assert row["length_m"] >= 1.0
        assert row["speed_mps"] == SPEEDS_MPS[RoadClass(row["road_class"])]


def test_places_have_words_of_their_category_and_lie_beside_streets(city):
    roads, places = city.roads, city.places
    assert places.schema == schemas.arrow_schema(schemas.PLACES)
    assert places["place_id"].to_pylist() == list(range(SMALL.places))
    words = {category.name: set(category.words) for category in CATEGORIES}
    for row in places.to_pylist():
        assert KEYWORDS_MIN <= len(row["keywords"]) <= KEYWORDS_MAX
        assert len(set(row["keywords"])) == len(row["keywords"])
        assert set(row["keywords"]) <= words[row["category"]]
    frame = Frame.of(city_area(SMALL))
    for row in places.slice(0, 50).to_pylist():
        assert distance_to_roads_m(roads, frame, row["lon"], row["lat"]) <= 16.001


def distance_to_roads_m(roads, frame, lon, lat):
    """Distance of a position to the nearest edge, over all of them."""
    x, y = frame.project(lon, lat)
    x0 = (roads["source_lon"].to_numpy() - frame.lon0_deg) * frame.x_m_per_deg - x
    y0 = (roads["source_lat"].to_numpy() - frame.lat0_deg) * frame.y_m_per_deg - y
    x1 = (roads["target_lon"].to_numpy() - frame.lon0_deg) * frame.x_m_per_deg - x
    y1 = (roads["target_lat"].to_numpy() - frame.lat0_deg) * frame.y_m_per_deg - y
    dx, dy = x1 - x0, y1 - y0
    along = np.clip(-(x0 * dx + y0 * dy) / (dx * dx + dy * dy), 0.0, 1.0)
    return np.hypot(x0 + along * dx, y0 + along * dy).min()


def test_popular_words_are_shared_by_many_places():
    places = generate_city(SimulationParameters()).places
    counts = Counter(word for words in places["keywords"].to_pylist() for word in words)
    ranked = [count for _, count in counts.most_common()]
    assert ranked[0] > 0.1 * places.num_rows
    assert ranked[len(ranked) // 2] < 0.25 * ranked[0]
    assert counts["coffee"] > counts["barbecue"]


def test_everything_lies_in_the_area_with_a_margin(city):
    area = city_area(SMALL)
    roads, places = city.roads, city.places
    lons = np.concatenate([roads["source_lon"], roads["target_lon"], places["lon"]])
    lats = np.concatenate([roads["source_lat"], roads["target_lat"], places["lat"]])
    margin = 0.02 * (area.lon_max - area.lon_min)
    assert area.lon_min + margin < lons.min() < lons.max() < area.lon_max - margin
    assert area.lat_min + margin < lats.min() < lats.max() < area.lat_max - margin


def test_no_device_drives_on_water(city):
    roads, water = city.roads, city.water
    sea = shapely.union_all([shapely.Polygon(ring).buffer(-2e-5) for ring in water])
    assert sea.area > 0.0
    shapely.prepare(sea)
    ends = shapely.points(roads["source_lon"].to_numpy(), roads["source_lat"].to_numpy())
    assert not shapely.contains(sea, ends).any()


def test_the_seed_decides(city):
    again = generate_city(SMALL)
    assert again.roads.equals(city.roads)
    assert again.places.equals(city.places)
    other = generate_city(SMALL.changed(seed=SMALL.seed + 1))
    assert not other.roads.equals(city.roads)
    assert not other.places.equals(city.places)
