from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.image import imread

from safe_region.earth.frame import Frame
from simulator.pictures.map_furniture import emptiest_corner
from simulator.pictures.picture import (
    PLACES_MAX,
    RANGES_MAX,
    Highlight,
    _extent,
    draw_map,
    fixed_ranges,
    paths_of,
    stationary_places,
)
from tests.simulator.conftest import SMALL


@pytest.fixture
def highlight(simulation):
    rows = simulation.trajectories.to_pylist()
    path = [(row["lon"], row["lat"]) for row in rows if row["device_id"] == "device-000003"]
    turn = np.linspace(0.0, 2.0 * np.pi, 30)
    lon, lat = path[len(path) // 2]
    region = list(zip(lon + 2e-3 * np.cos(turn), lat + 2e-3 * np.sin(turn), strict=True))
    return Highlight("device-000003", path, [region])


def _close_to(image, color):
    return np.count_nonzero(np.abs(image[:, :, :3] - np.array(color)).max(axis=2) < 0.02)


def test_the_map_alone_is_one_panel(simulation, tmp_path):
    draw_map(simulation, [], tmp_path / "map.png")
    image = imread(tmp_path / "map.png")
    assert image.shape[:2] == (1590, 1500)
    water = np.array([0xD5, 0xE5, 0xEA]) / 255.0
    assert _close_to(image, water) > 0.02 * image.shape[0] * image.shape[1]


def test_a_highlight_adds_a_panel_with_its_path(simulation, highlight, tmp_path):
    draw_map(simulation, [highlight], tmp_path / "map.png")
    image = imread(tmp_path / "map.png")
    assert image.shape[:2] == (1590, 3000)
    path = np.array([0x3D, 0x2B, 0x8F]) / 255.0
    assert _close_to(image[:, 1500:], path) > 500
    draw_map(simulation, [], tmp_path / "without.png")
    assert _close_to(imread(tmp_path / "without.png"), path) == 0


def test_a_range_that_moves_has_a_panel_of_its_own(simulation, highlight, tmp_path):
    green = np.array([0x1B, 0x6B, 0x3A]) / 255.0
    draw_map(
        simulation, [highlight, replace(highlight, ranges=highlight.regions * 2)], tmp_path / "map.png"
    )
    image = imread(tmp_path / "map.png")
    assert image.shape[:2] == (1590, 4500)
    assert _close_to(image[:, 3000:], green) > 200
    assert _close_to(image[:, 1500:3000], green) == 0


@pytest.mark.parametrize("regions", [[], None])
def test_a_highlight_may_be_without_regions_or_path(simulation, highlight, tmp_path, regions):
    path = highlight.path if regions is not None else []
    draw_map(simulation, [Highlight("device-000003", path, [])], tmp_path / "map.png")
    width = imread(tmp_path / "map.png").shape[1]
    assert width == (3000 if path else 1500)


def test_an_impossible_file_is_an_os_error(simulation, tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        draw_map(simulation, [], tmp_path / "nowhere" / "map.png")


def test_paths_are_those_of_the_devices(simulation, highlight):
    paths = paths_of(simulation)
    assert [len(path) for path in paths] == [SMALL.tick_count] * SMALL.devices
    assert paths[3].tolist() == [list(position) for position in highlight.path]


def test_of_many_devices_some_are_drawn(simulation, highlight, monkeypatch):
    monkeypatch.setattr("simulator.pictures.picture.TRAJECTORIES_MAX", 10)
    paths = paths_of(simulation)
    assert len(paths) == 8
    assert paths[1].tolist() == [list(position) for position in highlight.path]


def test_ranges_that_stay_are_drawn(simulation, tmp_path):
    found = fixed_ranges(simulation.subscriptions, Frame.of(simulation.world.area))
    bounds = [one for one in simulation.subscriptions["bounds"].to_pylist() if one is not None]
    centers = [one for one in simulation.subscriptions["center"].to_pylist() if one is not None]
    assert len(found) == len(bounds) + len(centers) <= RANGES_MAX
    expected = [((west + east) / 2, (south + north) / 2) for west, south, east, north in bounds] + centers
    middles = sorted(ring.mean(axis=0).round(6).tolist() for ring in found)
    assert middles == sorted(np.round(one, 6).tolist() for one in expected)
    draw_map(simulation, [], tmp_path / "map.png")
    green = np.array([0x1B, 0x6B, 0x3A]) / 255.0
    assert (
        np.count_nonzero(np.abs(imread(tmp_path / "map.png")[:, :, :3] - green).max(axis=2) < 0.3) > 200
    )


def test_places_where_subscriptions_stand_are_marked(simulation, tmp_path):
    wanted = [place for place in simulation.subscriptions["place"].to_pylist() if place is not None]
    assert stationary_places(simulation.subscriptions).tolist() == wanted
    draw_map(simulation, [], tmp_path / "map.png")
    blue = np.array([0x1D, 0x4E, 0xD8]) / 255.0
    assert _close_to(imread(tmp_path / "map.png"), blue) > 3 * len(wanted)
    many = pa.table({"place": [[float(i), 0.0] for i in range(PLACES_MAX + 1)]})
    assert stationary_places(many)[:, 0].tolist() == list(range(0, PLACES_MAX + 1, 2))


def test_the_legend_goes_where_no_streets_are(simulation):
    shown = _extent(simulation)
    corner = emptiest_corner(simulation.roads, shown)
    assert corner in {"upper left", "lower left", "upper right"}
    lons = simulation.roads["source_lon"].to_numpy()
    lats = simulation.roads["source_lat"].to_numpy()
    assert shown.lon_min < lons.min() < lons.max() < shown.lon_max
    assert shown.lat_min < lats.min() < lats.max() < shown.lat_max
