import numpy as np
import pyarrow as pa
import pytest

from safe_region.earth.frame import Frame
from simulator.city import city_area
from simulator.movement.classes import classes_of
from simulator.movement.destinations import home_nodes, next_nodes
from simulator.movement.itineraries import plan
from simulator.movement.streets import Streets
from simulator.movement.trajectories import drive
from simulator.movement.trajectory_kernels import sample
from simulator.movement.trips import TripModel
from simulator.network.traffic import DEVICE_CLASSES
from tests.simulator.conftest import SMALL
from tests.simulator.test_city import distance_to_roads_m

NUMBERS = np.arange(SMALL.devices)


@pytest.fixture(scope="module")
def streets(city):
    return Streets.of(city, SMALL)


@pytest.fixture(scope="module")
def destinations(streets):
    return streets.destinations


@pytest.fixture(scope="module")
def driven(streets):
    return pa.Table.from_batches([drive(streets, NUMBERS, SMALL)])


def _plane(table):
    frame = Frame.of(city_area(SMALL))
    xs = (table["lon"].to_numpy() - frame.lon0_deg) * frame.x_m_per_deg
    ys = (table["lat"].to_numpy() - frame.lat0_deg) * frame.y_m_per_deg
    shape = (SMALL.devices, SMALL.tick_count)
    return xs.reshape(shape), ys.reshape(shape)


def test_every_device_has_a_position_at_every_tick(driven):
    assert driven.num_rows == SMALL.devices * SMALL.tick_count
    assert driven["tick"].to_pylist()[: SMALL.tick_count] == list(range(SMALL.tick_count))
    assert driven["device_id"][0].as_py() == "device-000000"
    assert len(set(driven["device_id"].to_pylist())) == SMALL.devices


def test_positions_lie_on_streets(driven, city):
    frame = Frame.of(city_area(SMALL))
    for row in driven.take(list(range(0, driven.num_rows, 37))).to_pylist():
        assert distance_to_roads_m(city.roads, frame, row["lon"], row["lat"]) < 1e-3


def test_no_device_is_faster_than_the_class_of_edge_and_device_allow(driven, graph):
    xs, ys = _plane(driven)
    moved_m = np.hypot(np.diff(xs, axis=1), np.diff(ys, axis=1))
    classes = classes_of(NUMBERS, SMALL, SMALL.seed)
    for one, device_class in enumerate(DEVICE_CLASSES):
        fastest_mps = graph.speeds_mps[one].max()
        assert fastest_mps <= device_class.cap_mps
        assert moved_m[classes == one].max(initial=0.0) <= fastest_mps * 1.0 + 1e-6
    speeds = driven["speed_mps"].to_numpy().reshape(xs.shape)
    # Within one edge the distance between two samples is the speed times the period.
    same = (speeds[:, 1:] == speeds[:, :-1]) & (speeds[:, 1:] > 0.0)
    headings = driven["heading_deg"].to_numpy().reshape(xs.shape)
    same &= headings[:, 1:] == headings[:, :-1]
    assert same.sum() > 100
    assert moved_m[same] == pytest.approx(speeds[:, 1:][same], abs=1e-6)
    stationary = (speeds[:, 1:] == 0.0) & (speeds[:, :-1] == 0.0)
    assert moved_m[stationary].max(initial=0.0) == 0.0


def test_each_leg_takes_as_long_as_its_edge_at_the_speed_of_the_device(graph, streets):
    parameters = SMALL.changed(seconds=900)
    itineraries = plan(streets, TripModel(streets, parameters), NUMBERS, parameters)
    begins_s = itineraries.begins_s
    for device, one in enumerate(classes_of(NUMBERS, SMALL, SMALL.seed)):
        legs = slice(itineraries.offsets[device], itineraries.offsets[device + 1])
        edges, is_moving = itineraries.edges[legs], itineraries.is_moving[legs]
        ends_s = itineraries.ends_s[legs]
        assert ends_s[-1] > 900.0
        # Nobody plans more than it needs.
        assert (begins_s[legs][is_moving] <= 900.0).all()
        speeds = graph.lengths_m[edges] / (ends_s - begins_s[legs])
        ratio = speeds[is_moving] / graph.speeds_mps[one, edges[is_moving]]
        assert (ratio > 0.85 - 1e-9).all()
        assert (ratio < 1.0 + 1e-9).all()
        assert np.ptp(ratio) < 1e-6
        # Where one leg ends the next begins.
        starts = np.where(is_moving, graph.sources[edges], graph.targets[edges])
        assert (starts[1:] == graph.targets[edges[:-1]]).all()


def test_the_rest_of_an_edge_is_carried_over():
    """Legs of 0.4 s looked at every second: after n seconds a device is 2.5 n legs on."""
    ends_s = np.cumsum(np.full(100, 0.4)) - 0.1
    offsets = np.array([0, 100], np.int64)
    starts_s, none = np.array([-0.1]), np.array([0])
    legs, shares, _ = sample(offsets, ends_s, starts_s, 1.0, none, np.array([0, 30]))
    assert legs + shares == pytest.approx((0.1 + np.arange(30)) / 0.4, abs=1e-9)
    # Past its end an itinerary stays where it is.
    legs, shares, _ = sample(offsets, ends_s, starts_s, 1.0, none + 39, np.array([0, 3]))
    assert legs.tolist() == [97, 99, 99]
    assert shares[2] == 1.0


def test_headings_point_where_the_device_goes(driven):
    xs, ys = _plane(driven)
    headings = np.radians(driven["heading_deg"].to_numpy().reshape(xs.shape))
    dx, dy = np.diff(xs, axis=1), np.diff(ys, axis=1)
    steady = (headings[:, 1:] == headings[:, :-1]) & (np.hypot(dx, dy) > 0.5)
    assert steady.sum() > 100
    along = dx * np.sin(headings[:, 1:]) + dy * np.cos(headings[:, 1:])
    assert along[steady] == pytest.approx(np.hypot(dx, dy)[steady], abs=1e-6)


def test_a_device_does_not_depend_on_its_company(streets, driven):
    alone = drive(streets, NUMBERS[5:6], SMALL)
    first = 5 * SMALL.tick_count
    assert pa.Table.from_batches([alone]).equals(driven.slice(first, SMALL.tick_count))


def test_most_devices_move_most_of_the_time(streets):
    parameters = SMALL.changed(seconds=600)
    speeds = drive(streets, NUMBERS, parameters).column("speed_mps").to_numpy()
    assert 0.5 < (speeds > 0.0).mean() < 0.99


def test_some_may_stay_and_the_others_be_faster(city, streets):
    """Of those that drive the first leg is the same, and takes half as long."""
    numbers = np.arange(200)
    parameters = SMALL.changed(mobility=0.3, velocity=2.0)
    plain = plan(streets, TripModel(streets, SMALL), numbers, SMALL)
    faster = Streets.of(city, parameters)
    some = plan(faster, TripModel(faster, parameters), numbers, parameters)
    first, few = plain.offsets[:-1], some.offsets[:-1]
    drives = some.is_moving[few]
    assert 0.2 < drives.mean() < 0.4
    assert (some.ends_s[few[~drives]] > 60.0).all()
    assert (some.edges[few[drives]] == plain.edges[first[drives]]).all()
    took_s = (plain.ends_s - plain.begins_s)[first[drives]]
    assert (some.ends_s - some.begins_s)[few[drives]] == pytest.approx(took_s / 2.0)


def test_trips_do_not_grow_with_the_map(graph, destinations, monkeypatch):
    def mean_m():
        numbers = np.arange(400)
        classes = np.zeros(400, np.int32)
        at = home_nodes(destinations, numbers, classes, 1)
        to = next_nodes(graph, destinations, numbers, classes, at, 0, 1)
        return np.hypot(graph.xs_m[to] - graph.xs_m[at], graph.ys_m[to] - graph.ys_m[at]).mean()

    usual_m = mean_m()
    monkeypatch.setattr("simulator.movement.destinations.NODES_PER_CANDIDATE", graph.node_count / 4)
    # Of four random points the nearest is about half as far as one of them.
    assert 0.3 * usual_m < mean_m() < 0.7 * usual_m
