import numpy as np
import shapely

from safe_region.earth.frame import Area, Frame
from simulator.city.network import roads_table
from simulator.city.street import Street
from simulator.network.traffic import RoadClass

FRAME = Frame.of(Area(14.0, 35.0, 14.2, 35.2))


def street(*points, road_class=RoadClass.SECONDARY, **rest):
    return Street(shapely.LineString(points), road_class, **rest)


def table(*streets):
    """Edges as ((x, y), (x, y), class), in whole metres."""
    roads = roads_table(streets, 1, FRAME)
    found = set()
    for row in roads.to_pylist():
        source = FRAME.project(row["source_lon"], row["source_lat"])
        target = FRAME.project(row["target_lon"], row["target_lat"])
        ends = [tuple(int(v) for v in np.round(end)) for end in (source, target)]
        found.add((*ends, row["road_class"]))
    return found


def test_streets_are_joined_where_they_cross():
    found = table(street((-500, 0), (500, 0)), street((0, -500), (0, 500)))
    ends = [(-500, 0), (500, 0), (0, -500), (0, 500)]
    expected = {(end, (0, 0), "secondary") for end in ends}
    expected |= {((0, 0), end, "secondary") for end in ends}
    assert found == expected


def test_ends_that_almost_touch_meet():
    found = table(street((-500, 0), (500, 0)), street((0.3, 0.2), (0, 400)))
    assert ((0, 0), (0, 400), "secondary") in found
    assert ((-500, 0), (0, 0), "secondary") in found


def test_motorways_pass_over_minor_streets_but_meet_arterials():
    over = street((-500, 0), (500, 0), road_class=RoadClass.MOTORWAY)
    minor = street((100, -300), (100, 300), road_class=RoadClass.RESIDENTIAL)
    major = street((-100, -300), (-100, 300), road_class=RoadClass.PRIMARY)
    link = street((-100, 300), (100, 300), road_class=RoadClass.TERTIARY)
    found = table(over, minor, major, link)
    assert ((-100, 0), (500, 0), "motorway") in found
    assert ((-100, -300), (-100, 0), "primary") in found
    assert ((100, -300), (100, 300), "residential") in found
    assert (100, 0) not in {end for source, target, _ in found for end in (source, target)}


def test_nodes_that_cannot_be_reached_and_left_are_dropped():
    trap = street((500, 0), (900, 0), is_one_way=True)
    island = street((0, 5000), (500, 5000))
    found = table(street((-500, 0), (500, 0)), trap, island)
    assert found == {
        ((-500, 0), (500, 0), "secondary"),
        ((500, 0), (-500, 0), "secondary"),
    }


def test_one_way_streets_lead_the_way_they_were_drawn():
    there = street((0, 0), (400, 0), is_one_way=True)
    back = street((400, 0), (400, 300), (0, 300), (0, 0), is_one_way=True)
    found = table(there, back)
    assert found == {
        ((0, 0), (400, 0), "secondary"),
        ((400, 0), (400, 300), "secondary"),
        ((400, 300), (0, 300), "secondary"),
        ((0, 300), (0, 0), "secondary"),
    }


def test_thinning_keeps_the_network_connected():
    rows = [
        street((0, y), (1000, y), road_class=RoadClass.TERTIARY, kept_share=0.0)
        for y in range(0, 1001, 100)
    ]
    columns = [
        street((x, 0), (x, 1000), road_class=RoadClass.TERTIARY, kept_share=0.0)
        for x in range(0, 1001, 100)
    ]
    found = table(*rows, *columns)
    nodes = {end for source, target, _ in found for end in (source, target)}
    # A spanning tree: one street fewer than crossings, in both directions.
    assert len(nodes) == 121
    assert len(found) == 2 * 120


def test_short_dead_ends_are_left_out():
    stub = street((0, 0), (0, 40), road_class=RoadClass.RESIDENTIAL)
    longer = street((100, 0), (100, 140), road_class=RoadClass.RESIDENTIAL)
    found = table(street((-500, 0), (500, 0)), stub, longer)
    ends = {end for source, target, _ in found for end in (source, target)}
    assert (0, 40) not in ends
    assert (100, 140) in ends


def test_the_more_important_of_two_streets_has_a_shared_edge():
    found = table(
        street((0, 0), (300, 0), road_class=RoadClass.RESIDENTIAL),
        street((0, 0), (300, 0), road_class=RoadClass.PRIMARY),
    )
    assert {one for _, _, one in found} == {"primary"}
