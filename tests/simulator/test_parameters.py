from pathlib import Path

import pytest

from simulator.parameters import ParameterError, SimulationParameters


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("devices", 0, "1..1000000"),
        ("seconds", -5, "1..2678400"),
        ("alpha_min", 0.0, "0.001..0.999"),
        ("k_max", 101, "1..100"),
        ("city_width_m", float("nan"), "3000..40000"),
        ("arrivals_per_s", -1.0, "0..100000"),
        ("subscription_keywords_max", 17, "1..16"),
        ("car_share", 1.5, "0..1"),
        ("standing_share", 1.5, "0..1"),
        ("unit_m", 0.0, "1e-06..1000000.0"),
        ("unit_m", float("inf"), "1e-06..1000000.0"),
    ],
)
def test_a_value_outside_its_limits_is_named(name, value, limit):
    with pytest.raises(ParameterError) as raised:
        SimulationParameters(**{name: value})
    assert str(raised.value) == f"{name} is {value}, must be within {limit}"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ttl_s_min": 100.0, "ttl_s_max": 50.0}, "ttl_s_min is 100.0, must be at most ttl_s_max"),
        ({"alpha_min": 0.8, "alpha_max": 0.2}, "alpha_min is 0.8, must be at most alpha_max"),
        ({"car_share": 0.7, "bicycle_share": 0.6}, r"car_share \+ bicycle_share is"),
        ({"retracted_share": 0.7, "replaced_share": 0.6}, r"retracted_share \+ replaced_share is"),
        ({"similarity": "levenshtein"}, "'levenshtein', must be one of jaccard, dice, cosine"),
        ({"period_ms": 7_000, "seconds": 10}, "period_ms is 7000, must divide the run of 10000 ms"),
        ({"movement": "teleport"}, "'teleport', must be one of trips, brinkhoff, commuters"),
        ({"start": "here"}, "'here', must be one of network, region"),
        ({"class_speeds_kmh": "50,fast"}, "'50,fast', must be 1 to 8 numbers within 1.0..300.0"),
        ({"class_speeds_kmh": ",".join(["50"] * 9)}, "must be 1 to 8 numbers"),
        ({"class_speeds_kmh": "50,nan"}, "must be 1 to 8 numbers"),
        ({"load_slot_s": 1.0}, "load_slot_s is 1.0, must be 0 or at least 10.0"),
        ({"name": " "}, r"name is ' ', must be some text"),
        ({"unit_m": 2.5}, r"unit_m is 2\.5, must go with a map_file"),
        ({"places_file": Path("a.csv")}, r"places_file is a\.csv, must go with a map_file"),
    ],
)
def test_values_that_contradict_each_other_are_refused(values, message):
    with pytest.raises(ParameterError, match=message):
        SimulationParameters(**values)


def test_ticks_include_both_ends():
    assert SimulationParameters(seconds=600).tick_count == 601
    assert SimulationParameters(seconds=10, period_ms=500).tick_count == 21
