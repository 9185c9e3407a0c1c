import pytest

from simulator.maps.roads import SPEED_MPS_MAX, SPEED_MPS_MIN, directions, lanes, maxspeed_mps
from simulator.network.traffic import SPEEDS_MPS, RoadClass

KMH = 1.0 / 3.6


def tagged(text):
    """Tags from "key=value key=value"; an underscore in a value stays."""
    return dict(pair.split("=", 1) for pair in text.split())


@pytest.mark.parametrize(
    ("tags", "forwards", "backwards"),
    [
        ("highway=residential", True, True),
        ("highway=residential oneway=yes", True, False),
        ("highway=residential oneway=1", True, False),
        ("highway=residential oneway=true", True, False),
        ("highway=residential oneway=-1", False, True),
        ("highway=residential oneway=reverse", False, True),
        ("highway=residential oneway=no", True, True),
        ("highway=residential oneway=alternating", True, True),
        ("highway=residential junction=roundabout", True, False),
        ("highway=residential junction=circular", True, False),
        ("highway=residential junction=roundabout oneway=no", True, True),
        ("highway=residential junction=roundabout oneway=-1", False, True),
        ("highway=residential junction=yes", True, True),
        ("highway=motorway", True, False),
        ("highway=motorway oneway=no", True, True),
        ("highway=motorway oneway=-1", False, True),
        ("highway=motorway_link", True, True),
        ("highway=trunk", True, True),
    ],
)
def test_directions_of_vehicles(tags, forwards, backwards):
    assert directions(tagged(tags)) == (forwards, backwards)


@pytest.mark.parametrize(
    ("tags", "forward", "backward"),
    [
        ("highway=residential", "residential", "residential"),
        ("highway=unclassified", "residential", "residential"),
        ("highway=trunk", "primary", "primary"),
        ("highway=trunk motorroad=yes oneway=yes", "motorway", None),
        ("highway=motorway", "motorway", None),
        ("highway=tertiary_link oneway=yes", "tertiary", "footway"),
        ("highway=track", "service", "service"),
        ("highway=footway", "footway", "footway"),
        ("highway=footway oneway=yes", "footway", "footway"),
        ("highway=footway bicycle=designated", "cycleway", "cycleway"),
        ("highway=path", "footway", "footway"),
        ("highway=path bicycle=yes", "cycleway", "cycleway"),
        ("highway=pedestrian motor_vehicle=destination", "footway", "footway"),
        ("highway=cycleway", "cycleway", "cycleway"),
        ("highway=cycleway oneway=yes", "cycleway", "footway"),
        ("highway=cycleway foot=no oneway=yes", "cycleway", None),
        ("highway=steps", "footway", "footway"),
        ("highway=residential oneway=yes", "residential", "footway"),
        ("highway=residential oneway=-1", "footway", "residential"),
        ("highway=residential oneway=yes foot=no", "residential", None),
        ("highway=residential oneway=yes oneway:foot=yes", "residential", None),
        ("highway=residential oneway=yes oneway:bicycle=no", "residential", "cycleway"),
        ("highway=residential oneway=yes cycleway=opposite_lane", "residential", "cycleway"),
        ("highway=residential access=private", None, None),
        ("highway=residential access=no", None, None),
        ("highway=residential access=destination", "residential", "residential"),
        ("highway=residential access=no motor_vehicle=yes", "residential", "residential"),
        ("highway=residential access=no foot=yes", "footway", "footway"),
        ("highway=residential vehicle=no", "footway", "footway"),
        ("highway=residential vehicle=no bicycle=yes", "cycleway", "cycleway"),
        ("highway=residential motor_vehicle=no", "cycleway", "cycleway"),
        ("highway=residential motor_vehicle=no motorcar=yes", "residential", "residential"),
        ("highway=residential motorcar=private bicycle=no", "footway", "footway"),
        ("highway=track motor_vehicle=agricultural", "cycleway", "cycleway"),
        ("highway=primary bicycle=no", "primary", "primary"),
        ("highway=motorway motor_vehicle=no", None, None),
        ("highway=construction", None, None),
        ("highway=proposed construction=primary", None, None),
        ("highway=raceway", None, None),
        ("railway=tram", None, None),
        ("", None, None),
    ],
)
def test_classes_to_which_a_way_is_open(tags, forward, backward):
    found = lanes(tagged(tags))
    assert (found.forward and found.forward.road_class) == forward
    assert (found.backward and found.backward.road_class) == backward


@pytest.mark.parametrize(
    ("value", "expected_mps"),
    [
        ("50", 50 * KMH),
        ("50 km/h", 50 * KMH),
        ("50kmh", 50 * KMH),
        (" 50 ", 50 * KMH),
        ("7.5", 7.5 * KMH),
        ("30 mph", 30 * 0.44704),
        ("30mph", 30 * 0.44704),
        ("20 MPH", 20 * 0.44704),
        ("1", SPEED_MPS_MIN),
        ("900", SPEED_MPS_MAX),
        ("0", None),
        ("-30", None),
        ("none", None),
        ("walk", None),
        ("signals", None),
        ("RU:urban", None),
        ("DE:zone:30", None),
        ("50;30", None),
        ("10 knots", None),
        ("", None),
        ("nan", None),
    ],
)
def test_signs(value, expected_mps):
    assert maxspeed_mps(value) == (None if expected_mps is None else pytest.approx(expected_mps))


@pytest.mark.parametrize(
    ("tags", "forward_kmh", "backward_kmh"),
    [
        ("highway=primary", 60, 60),
        ("highway=trunk", 80, 80),
        ("highway=living_street", 10, 10),
        ("highway=primary maxspeed=70", 70, 70),
        ("highway=primary maxspeed=RU:urban", 60, 60),
        ("highway=primary maxspeed=none", 60, 60),
        ("highway=primary maxspeed=70 maxspeed:backward=40", 70, 40),
        ("highway=primary maxspeed:forward=30", 30, 60),
        ("highway=trunk motorroad=yes oneway=no", 100, 100),
        ("highway=steps", 2, 2),
        ("highway=footway maxspeed=30", 5, 5),
        ("highway=living_street motor_vehicle=no", 30, 30),
        ("highway=residential oneway=yes maxspeed=40", 40, 5),
    ],
)
def test_speeds_are_those_of_signs_or_of_the_class(tags, forward_kmh, backward_kmh):
    found = lanes(tagged(tags))
    assert found.forward.speed_mps == pytest.approx(forward_kmh * KMH)
    assert found.backward.speed_mps == pytest.approx(backward_kmh * KMH)


def test_every_class_has_a_default_speed():
    assert set(SPEEDS_MPS) == set(RoadClass)
