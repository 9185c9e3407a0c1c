import pytest
import shapely

from simulator.maps import read_map
from simulator.parameters import SimulationParameters
from tests.simulator.maps.osm_xml import LAT, LON, STEP_DEG, town

COAST = [(-1.0, -1.0), (6.0, -1.0), (6.0, 6.0), (-1.0, 6.0)]


def ring(file, corners, first, tags, *, is_closed=True):
    refs = [file.node(first + i, x, y) for i, (x, y) in enumerate(corners)]
    file.way([*refs, first] if is_closed else refs, tags)


def wet(file, tmp_path, x, y):
    """Whether a point of the grid lies in water."""
    path = file.write(tmp_path / "island.osm")
    water = read_map(path, SimulationParameters(), lambda *_: None).water
    assert all(one[0] == one[-1] for one in water)
    spot = shapely.Point(LON + x * STEP_DEG, LAT + y * STEP_DEG)
    return any(shapely.Polygon(one).contains(spot) for one in water)


@pytest.mark.parametrize(("x", "y", "is_wet"), [(-1.5, 2.5, True), (6.3, 1.5, True), (2.5, 2.5, False)])
def test_an_island_has_its_land_on_the_left_of_its_coast(tmp_path, x, y, is_wet):
    file = town()
    ring(file, COAST, 500, {"natural": "coastline"})
    assert wet(file, tmp_path, x, y) == is_wet


def test_a_coast_the_other_way_round_is_a_bay(tmp_path):
    file = town()
    ring(file, COAST[::-1], 500, {"natural": "coastline"})
    assert wet(file, tmp_path, 2.5, 2.5)
    assert not wet(file, tmp_path, -1.5, 2.5)


def test_a_coast_in_pieces_from_border_to_border(tmp_path):
    file = town()
    file.node(500, -90.0, -1.0)
    file.node(501, 2.0, -1.0)
    file.node(502, 90.0, -1.0)
    file.way([501, 502], {"natural": "coastline"})
    file.way([500, 501], {"natural": "coastline"})
    assert wet(file, tmp_path, 2.5, -1.5)
    assert not wet(file, tmp_path, 2.5, 2.5)


def test_a_coast_that_ends_on_land_is_left_dry(tmp_path):
    file = town()
    ring(file, COAST[:2], 500, {"natural": "coastline"}, is_closed=False)
    assert not wet(file, tmp_path, 2.5, -1.5)
    assert not wet(file, tmp_path, 2.5, 2.5)


def test_lakes(tmp_path):
    file = town()
    ring(file, [(2.1, 2.1), (2.9, 2.1), (2.9, 2.9), (2.1, 2.9)], 500, {"natural": "water"})
    assert wet(file, tmp_path, 2.5, 2.5)
    assert not wet(file, tmp_path, 1.5, 2.5)


def test_puddles_and_cut_lakes_are_left_out(tmp_path):
    file = town()
    ring(file, [(2.4, 2.4), (2.6, 2.4), (2.6, 2.6), (2.4, 2.6)], 500, {"natural": "water"})
    file.way([1, 2, 999, 1], {"natural": "water"})
    assert not wet(file, tmp_path, 2.5, 2.5)
