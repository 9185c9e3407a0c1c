"""Turns that are not allowed, and places that are areas: from relations to tables."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_region.earth.frame import Frame
from simulator import schemas
from simulator.maps import read_map
from simulator.maps.areas import point_inside
from simulator.maps.relations import Member, outline_of, restriction_of
from simulator.network.graph import Graph
from simulator.parameters import SimulationParameters
from tests.simulator.maps.osm_xml import LAT, LON, STEP_DEG, OsmFile
from tests.simulator.maps.test_extracts import extract

ROAD = {"highway": "residential"}


def read(file, path, **options):
    target = file.write(path / "town.osm", **options)
    return read_map(target, SimulationParameters(map_file=target), lambda *_: None)


def crossing():
    """A grid, and a crossing of four arms beside it, node 50; arm n ends at node 50 + n, on a ring."""
    file = OsmFile()
    file.grid()
    file.node(101, 1.2, 1.1, amenity="restaurant", name="Da Mario")
    for number, (x, y) in enumerate([(6, 2), (7, 2), (6, 3), (5, 2), (6, 1)]):
        file.node(50 + number, x, y)
    for number in range(1, 5):
        file.way([50, 50 + number], ROAD, number=500 + number)
    file.way([51, 52, 53, 54, 51], ROAD, number=510)
    file.way([15, 53], ROAD)
    return file


def pairs(terrain):
    """Turns as (from node, node, to node)."""
    assert terrain.restrictions.schema == schemas.arrow_schema(schemas.RESTRICTIONS)
    ends = {row["edge_id"]: (row["source"], row["target"]) for row in terrain.roads.to_pylist()}
    found = set()
    for row in terrain.restrictions.to_pylist():
        (before, node), (same, after) = ends[row["edge_id_from"]], ends[row["edge_id_to"]]
        assert node == same
        found.add((before, node, after))
    return found


def turn(file, value, *, start=501, via=("node", 50), end=502, **tags):
    members = [("way", start, "from"), (*via, "via"), ("way", end, "to")]
    file.relation(members, {"type": "restriction", "restriction": value} | tags)


@pytest.mark.parametrize("ways_first", [False, True])
def test_no_turn(tmp_path, ways_first):
    file = crossing()
    turn(file, "no_right_turn")
    terrain = read(file, tmp_path, ways_first=ways_first)
    assert pairs(terrain) == {(51, 50, 52)}
    assert terrain.restrictions_left_out == 0


def test_only_turn(tmp_path):
    file = crossing()
    turn(file, "only_straight_on", end=503)
    assert pairs(read(file, tmp_path)) == {(51, 50, 51), (51, 50, 52), (51, 50, 54)}


def test_no_u_turn(tmp_path):
    file = crossing()
    turn(file, "no_u_turn", end=501)
    assert pairs(read(file, tmp_path)) == {(51, 50, 51)}


def test_no_entry_from_several_ways(tmp_path):
    file = crossing()
    members = [("way", 501, "from"), ("way", 503, "from"), ("node", 50, "via"), ("way", 502, "to")]
    file.relation(members, {"type": "restriction", "restriction": "no_entry"})
    assert pairs(read(file, tmp_path)) == {(51, 50, 52), (53, 50, 52)}


@pytest.mark.parametrize(
    "tags",
    [
        {"except": "motorcar"},
        {"except": "psv;motor_vehicle"},
        {"restriction": "give_way"},
        {"restriction:motorcar": "none"},
    ],
)
def test_restrictions_that_do_not_apply_to_cars(tmp_path, tags):
    file = crossing()
    members = [("way", 501, "from"), ("node", 50, "via"), ("way", 502, "to")]
    file.relation(members, {"type": "restriction", "restriction": "no_right_turn"} | tags)
    terrain = read(file, tmp_path)
    assert pairs(terrain) == set()
    assert terrain.restrictions_left_out == 0


def test_except_for_others_and_by_vehicle(tmp_path):
    file = crossing()
    turn(file, "no_right_turn", **{"except": "psv;bicycle"})
    members = [("way", 503, "from"), ("node", 50, "via"), ("way", 504, "to")]
    file.relation(members, {"type": "restriction", "restriction:motorcar": "no_right_turn"})
    file.relation(members, {"type": "restriction", "restriction:hgv": "no_left_turn"})
    assert pairs(read(file, tmp_path)) == {(51, 50, 52), (53, 50, 54)}


@pytest.mark.parametrize(
    ("start", "via", "end"),
    [
        (510, ("node", 50), 502),  # the ring does not end there
        (501, ("node", 51), 502),  # 502 does not begin there
        (501, ("node", 999), 502),
        (999, ("node", 50), 502),
        (501, ("way", 999), 502),
    ],
)
def test_unsupported_restrictions_are_counted(tmp_path, start, via, end):
    file = crossing()
    turn(file, "no_right_turn", start=start, via=via, end=end)
    terrain = read(file, tmp_path)
    assert pairs(terrain) == set()
    assert terrain.restrictions_left_out == 1


def dual(*, joins):
    """Two one-way streets side by side, joined by a way of three nodes; `joins` lets others onto it."""
    file = OsmFile()
    file.grid()
    file.node(101, 1.2, 1.1, amenity="restaurant", name="Da Mario")
    for number, (x, y) in enumerate([(6, 0), (7, 0), (8, 0), (8, 1), (7, 1), (6, 1), (7, 0.5)]):
        file.node(60 + number, x, y)
    oneway = ROAD | {"oneway": "yes", "foot": "no", "bicycle": "no"}
    for number, (begin, end) in enumerate([(60, 61), (61, 62), (62, 63), (63, 64), (64, 65), (65, 60)]):
        file.way([begin, end], oneway, number=600 + number)
    file.way([61, 66, 64], oneway, number=620)
    file.way([5, 60], ROAD)
    if joins:
        file.node(70, 7.5, 0.5)
        file.way([66, 70, 62], ROAD)
    turn(file, "no_u_turn", start=600, via=("way", 620), end=604)
    return file


def test_over_a_way_without_another_entrance(tmp_path):
    terrain = read(dual(joins=False), tmp_path)
    assert pairs(terrain) == {(66, 64, 65)}
    assert terrain.restrictions_left_out == 0


def test_over_a_way_onto_which_others_come(tmp_path):
    terrain = read(dual(joins=True), tmp_path)
    assert pairs(terrain) == set()
    assert terrain.restrictions_left_out == 1


def test_only_over_a_way_is_left_out(tmp_path):
    file = dual(joins=False)
    turn(file, "only_u_turn", start=600, via=("way", 620), end=604)
    terrain = read(file, tmp_path)
    assert terrain.restrictions_left_out == 1


def test_the_graph_keeps_them(tmp_path):
    file = crossing()
    turn(file, "no_right_turn")
    terrain = read(file, tmp_path)
    graph = Graph.of(terrain.roads, Frame.of(terrain.area), terrain.restrictions)
    assert graph.is_restricted.any()


@pytest.mark.parametrize(("name", "least"), [("helsinki_center.osm.pbf", 50), ("malta.osm.pbf", 100)])
def test_restrictions_of_an_extract(name, least):
    path = extract(name)
    terrain = read_map(path, SimulationParameters(map_file=path), lambda *_: None)
    assert terrain.restrictions.num_rows > least
    assert terrain.restrictions_left_out < terrain.restrictions.num_rows
    assert len(pairs(terrain)) == terrain.restrictions.num_rows


def square(file, first, x, y, size):
    """Four nodes from `first`; return the way around them."""
    for number, (dx, dy) in enumerate([(0, 0), (size, 0), (size, size), (0, size)]):
        file.node(first + number, x + dx, y + dy)
    return [first, first + 1, first + 2, first + 3, first]


def areas():
    file = OsmFile()
    file.grid()
    return file


MUSEUM = {"type": "multipolygon", "tourism": "museum", "name": "Ring"}


def places(terrain):
    return {row["name"]: row for row in terrain.places.to_pylist()}


def test_a_place_with_a_hole_lies_in_the_rest(tmp_path):
    file = areas()
    refs = square(file, 200, 0.5, 0.5, 3.0)
    # The outline in two pieces, one backwards.
    outer = [file.way(refs[:3], {}), file.way(refs[4:1:-1], {})]
    inner = file.way(square(file, 210, 1.0, 1.0, 2.0), {})
    file.relation([*(("way", one, "outer") for one in outer), ("way", inner, "inner")], MUSEUM)
    place = places(read(file, tmp_path))["Ring"]
    assert place["category"] == "museum"
    assert place["keywords"] == ["museum", "ring"]
    x, y = (place["lon"] - LON) / STEP_DEG, (place["lat"] - LAT) / STEP_DEG
    assert 0.5 < x < 3.5
    assert 0.5 < y < 3.5
    assert not (1.0 < x < 3.0 and 1.0 < y < 3.0)


def test_a_place_in_parts_lies_in_the_largest(tmp_path):
    file = areas()
    small = file.way(square(file, 200, 0.2, 0.2, 0.5), {})
    large = file.way(square(file, 210, 2.0, 2.0, 1.0), {})
    file.relation([("way", small, "outer"), ("way", large, "")], MUSEUM)
    place = places(read(file, tmp_path))["Ring"]
    assert LON + 2.0 * STEP_DEG < place["lon"] < LON + 3.0 * STEP_DEG


@pytest.mark.parametrize("refs", [[200, 201, 202], [200, 201, 202, 999, 200]])
def test_outlines_that_do_not_close_are_no_places(tmp_path, refs):
    file = areas()
    file.node(101, 1.2, 1.1, amenity="restaurant", name="Da Mario")
    square(file, 200, 1.0, 1.0, 1.0)
    file.relation([("way", file.way(refs, {}), "outer")], MUSEUM)
    assert set(places(read(file, tmp_path))) == {"Da Mario"}


def test_relations_without_tags_of_places_are_none():
    members = [Member("w", 1, "outer"), Member("n", 2, "label")]
    assert outline_of(1, {"type": "multipolygon", "landuse": "forest"}, members) is None
    assert outline_of(1, MUSEUM, [Member("w", 1, "inner")]) is None
    assert outline_of(1, MUSEUM, members).outer_ways == (1,)


def test_restrictions_need_all_their_members():
    members = [Member("w", 1, "from"), Member("n", 2, "via"), Member("w", 3, "to")]
    tags = {"type": "restriction", "restriction": "no_left_turn"}
    assert restriction_of(tags, members).via_node == 2
    for missing in range(3):
        assert restriction_of(tags, members[:missing] + members[missing + 1 :]) is None
    assert restriction_of(tags, [*members, Member("w", 4, "via")]) is None
    assert restriction_of(tags, [*members, Member("n", 4, "via")]) is None


@settings(max_examples=50, deadline=None)
@given(st.integers(3, 12), st.floats(0.1, 0.9), st.randoms(use_true_random=False))
def test_the_point_lies_inside_whatever_the_pieces(corners, hole, random):
    angles = np.linspace(0.0, 2.0 * np.pi, corners, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    closed = np.vstack([ring, ring[:1]])
    cuts = sorted(random.sample(range(1, corners), random.randint(0, corners - 1)))
    pieces = [closed[a : b + 1] for a, b in zip([0, *cuts], [*cuts, corners], strict=True)]
    pieces = [piece[::-1] if random.random() < 0.5 else piece for piece in pieces]
    random.shuffle(pieces)
    found = point_inside(pieces, [hole * closed])
    whole = shapely.Polygon(ring, [hole * ring])
    assert shapely.contains(whole, shapely.Point(*found))
