"""Models of movement: what is the same for all, and what each promises."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from simulator.movement.brinkhoff import BrinkhoffModel
from simulator.movement.classes import CAR, classes_of, object_classes
from simulator.movement.conditions import LOADED_FACTOR_MIN, Conditions
from simulator.movement.itineraries import plan
from simulator.movement.streets import Streets
from simulator.movement.trajectories import counted, drive
from tests.simulator.conftest import SMALL

NUMBERS = np.arange(120)
BRINKHOFF = SMALL.changed(movement="brinkhoff", seconds=300, load_slot_s=60.0)
DAYS = SMALL.changed(movement="commuters", seconds=7 * 86_400, period_ms=600_000)


@pytest.fixture(scope="module")
def brinkhoff(city):
    return Streets.of(city, BRINKHOFF)


@pytest.fixture(scope="module")
def planned(brinkhoff):
    return plan(brinkhoff, BrinkhoffModel(brinkhoff, BRINKHOFF), NUMBERS, BRINKHOFF)


def busiest(streets, itineraries, parameters, times=1.0):
    """Loads as the first pass gives them, with so many vehicles for each."""
    found = pa.Table.from_batches([counted(streets, itineraries, parameters)])
    vehicles = pc.multiply(found["busy_ms"], times / (1000.0 * parameters.load_slot_s))
    return found.append_column("vehicles", vehicles)


@pytest.mark.parametrize("movement", ["trips", "brinkhoff", "commuters"])
@pytest.mark.parametrize("weather", [0, 5])
def test_a_device_does_not_depend_on_its_company(city, movement, weather):
    parameters = SMALL.changed(movement=movement, weather=weather, seconds=600, period_ms=5_000)
    streets = Streets.of(city, parameters)
    together = drive(streets, NUMBERS[:20], parameters)
    apart = [drive(streets, part, parameters) for part in np.split(NUMBERS[:20], [1, 2, 11])]
    assert pa.Table.from_batches(apart).combine_chunks().equals(pa.Table.from_batches([together]))


def test_classes_of_cars_have_their_speeds(brinkhoff, planned):
    classes = classes_of(NUMBERS, BRINKHOFF, BRINKHOFF.seed)
    found = object_classes(BRINKHOFF)
    assert [one.name for one in found[3:]] == [f"car-{i}" for i in range(1, 7)]
    assert set(np.unique(classes)) == {1, 2, 3, 4, 5, 6, 7, 8}
    speeds_mps = brinkhoff.graph.lengths_m[planned.edges] / (planned.ends_s - planned.begins_s)
    owners = np.repeat(np.arange(len(NUMBERS)), np.diff(planned.offsets))
    for number, one in enumerate(found):
        of_class = planned.is_moving & (classes[owners] == number)
        assert speeds_mps[of_class].max(initial=0.0) <= one.speed_mps_max * (1.0 + 1e-9)


def test_trips_take_about_as_long_as_expected(city):
    """Of Brinkhoff's objects: the median of one trip each, of cars, within a factor of the mean."""
    for trip_s in (60.0, 180.0):
        parameters = BRINKHOFF.changed(
            trip_s_mean=trip_s, vanish=True, seconds=1200, car_share=1.0, bicycle_share=0.0
        )
        streets = Streets.of(city, parameters)
        found = plan(streets, BrinkhoffModel(streets, parameters), NUMBERS, parameters)
        took_s = found.stops_s - found.starts_s
        assert 0.5 * trip_s < np.median(took_s) < 1.5 * trip_s


def test_objects_appear_and_vanish(city):
    parameters = BRINKHOFF.changed(appear_share=0.5, vanish=True, trip_s_mean=40.0)
    streets = Streets.of(city, parameters)
    rows = drive(streets, NUMBERS, parameters)
    table = pa.Table.from_batches([rows])
    spans = table.group_by("device_id").aggregate([("tick", "min"), ("tick", "max"), ("tick", "count")])
    assert len(spans) == len(NUMBERS)
    firsts, lasts = spans["tick_min"].to_numpy(), spans["tick_max"].to_numpy()
    assert (spans["tick_count"].to_numpy() == lasts - firsts + 1).all()
    assert 0.3 < (firsts > 0).mean() < 0.7
    assert (lasts < parameters.tick_count - 1).mean() > 0.5


def test_starts_by_region_are_spread_over_the_area(brinkhoff):
    by_region = BrinkhoffModel(brinkhoff, BRINKHOFF.changed(start="region"))
    by_network = BrinkhoffModel(brinkhoff, BRINKHOFF)
    graph, numbers = brinkhoff.graph, np.arange(4_000)
    classes = np.full(4_000, 3, np.int32)
    middle = np.array([graph.xs_m.mean(), graph.ys_m.mean()])

    def spread_m(model):
        nodes, _ = model.starts(numbers, classes)
        return np.hypot(graph.xs_m[nodes] - middle[0], graph.ys_m[nodes] - middle[1]).mean()

    # Streets lie close together in the middle: by network more objects start there.
    assert spread_m(by_region) > 1.05 * spread_m(by_network)


def test_loads_are_the_cars_on_the_roads(brinkhoff, planned):
    """The sum of all loads is the time that cars drive within the run, from legs of plain Python."""
    found = counted(brinkhoff, planned, BRINKHOFF)
    expected_ms = {}
    begins_s = planned.begins_s
    for device in range(len(NUMBERS)):
        if brinkhoff.classes[planned.classes[device]].mode != CAR:
            continue
        for leg in range(planned.offsets[device], planned.offsets[device + 1]):
            if planned.is_moving[leg] and 0.0 <= begins_s[leg] <= BRINKHOFF.seconds:
                slot = min(int(begins_s[leg] // 60.0), 4)
                key = slot, int(brinkhoff.graph.edge_ids[planned.edges[leg]])
                took_ms = round((planned.ends_s[leg] - begins_s[leg]) * 1000.0)
                expected_ms[key] = expected_ms.get(key, 0) + took_ms
    rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
    assert {(slot, edge): busy_ms for slot, edge, busy_ms in rows} == expected_ms


def test_a_device_on_a_loaded_road_is_slower_and_looks_for_another_way(brinkhoff, planned):
    loads = busiest(brinkhoff, planned, BRINKHOFF, times=400.0)
    loaded = brinkhoff.loaded(BRINKHOFF, loads)
    again = plan(loaded, BrinkhoffModel(loaded, BRINKHOFF), NUMBERS, BRINKHOFF)

    def mean_mps(itineraries):
        is_car = np.repeat(itineraries.classes >= 3, np.diff(itineraries.offsets)) & itineraries.is_moving
        lengths_m = brinkhoff.graph.lengths_m[itineraries.edges[is_car]]
        return lengths_m.sum() / (itineraries.ends_s - itineraries.begins_s)[is_car].sum()

    assert mean_mps(again) < 0.9 * mean_mps(planned)
    for slot in range(5):
        best, now = loaded.speeds_mps(3), loaded.speeds_mps(3, slot)
        factors = now[best > 0.0] / best[best > 0.0]
        assert factors.min() >= LOADED_FACTOR_MIN - 1e-9
        assert factors.max() <= 1.0 + 1e-9
        assert (factors < 1.0).any()
        # Load is of cars, and slows down cars.
        assert (loaded.speeds_mps(2, slot) == loaded.speeds_mps(2)).all()
    slots = (again.begins_s // 60.0).clip(0, 4).astype(int)
    owners = np.repeat(np.arange(len(NUMBERS)), np.diff(again.offsets))
    for slot in range(5):
        for number in np.unique(again.classes):
            legs = again.is_moving & (slots == slot) & (again.classes[owners] == number)
            took_s = (again.ends_s - again.begins_s)[legs]
            expected_s = loaded.pace(number, slot).times_s[again.edges[legs]]
            assert took_s == pytest.approx(expected_s, rel=1e-9, abs=1e-9)


def test_load_below_the_capacity_of_roads_changes_nothing(brinkhoff, planned):
    loads = busiest(brinkhoff, planned, BRINKHOFF, times=0.0)
    loaded = brinkhoff.loaded(BRINKHOFF, loads)
    again = plan(loaded, BrinkhoffModel(loaded, BRINKHOFF), NUMBERS, BRINKHOFF)
    assert (again.edges == planned.edges).all()
    assert (again.ends_s == planned.ends_s).all()


def test_weather_moves_and_slows_all_devices(graph):
    parameters = SMALL.changed(weather=3, seconds=3_600)
    conditions = Conditions.of(graph, parameters)
    assert conditions.slot_count == 12
    weather = conditions.weather
    for slot in (0, 11):
        found = conditions.factors(graph, slot, is_car=False)
        assert (found == conditions.factors(graph, slot, is_car=True)).all()
        middle_s = (slot + 0.5) * conditions.slot_s
        for edge in range(0, len(graph.targets), 97):
            x_m = (graph.xs_m[graph.sources[edge]] + graph.xs_m[graph.targets[edge]]) / 2.0
            y_m = (graph.ys_m[graph.sources[edge]] + graph.ys_m[graph.targets[edge]]) / 2.0
            expected = 1.0
            for i in range(3):
                if (
                    abs(x_m - weather.xs_m[i] - weather.x_mps[i] * middle_s) <= weather.halves_x_m[i]
                    and abs(y_m - weather.ys_m[i] - weather.y_mps[i] * middle_s) <= weather.halves_y_m[i]
                ):
                    expected *= weather.factors[i]
            assert found[edge] == pytest.approx(expected)


def test_commuters_are_at_work_on_weekdays_and_at_home_at_night(city):
    streets = Streets.of(city, DAYS)
    table = pa.Table.from_batches([drive(streets, NUMBERS, DAYS)])
    shape = (len(NUMBERS), DAYS.tick_count)
    spots = np.stack([table["lon"].to_numpy(), table["lat"].to_numpy()], axis=1).reshape(*shape, 2)
    moves = table["speed_mps"].to_numpy().reshape(shape) > 0.0
    # The run begins on Thursday, 1 January 2026, at midnight.
    at = [day * 144 for day in range(7)]
    homes = spots[:, 0]
    for midnight in at:
        assert (spots[:, midnight] == homes).all(axis=1).mean() > 0.9
    noon = {day: (spots[:, at[day] + 72] != homes).any(axis=1).mean() for day in range(7)}
    assert all(0.6 < noon[day] < 0.97 for day in (0, 1, 4, 5, 6))
    # Who works is at the same place every weekday.
    away = (spots[:, at[0] + 72] == spots[:, at[1] + 72]).all(axis=1)
    assert away.mean() > 0.5
    # People drive in the morning and in the afternoon, and not at night.
    by_hour = moves[:, :144].reshape(len(NUMBERS), 24, 6).mean(axis=(0, 2))
    assert by_hour[7:10].sum() > 5 * by_hour[0:6].sum()
    assert by_hour[16:19].sum() > 5 * by_hour[0:6].sum()


def test_the_clock_of_commuters_is_that_of_the_start(city):
    """A run that begins at noon begins where people are at noon."""
    parameters = DAYS.changed(seconds=3_600, start_ms=DAYS.start_ms + 12 * 3_600_000)
    streets = Streets.of(city, parameters)
    later = pa.Table.from_batches([drive(streets, NUMBERS, parameters)])
    whole = pa.Table.from_batches([drive(Streets.of(city, DAYS), NUMBERS, DAYS)])
    noon = pc.and_(pc.greater_equal(whole["tick"], 72), pc.less_equal(whole["tick"], 78))
    for name in ("lon", "lat"):
        assert later[name].to_numpy() == pytest.approx(whole.filter(noon)[name].to_numpy(), abs=1e-9)
