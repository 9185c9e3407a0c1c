from pathlib import Path

import pytest

from simulator.parameters import ParameterError, SimulationParameters
from simulator.parameters.presets import PRESETS


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
        ("stationary_share", 1.5, "0..1"),
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
        ({"load_slot_s": 10.0, "seconds": 200_000}, "must divide 200000 s into at most 10000 slots"),
        ({"load_slot_s": 1.0}, "load_slot_s is 1.0, must be 0 or at least 10.0"),
        ({"name": " "}, r"name is ' ', must not be empty"),
        ({"k_min": 11}, "k_min is 11, must be at most k_max, which is 10"),
        ({"either_share": 0.7, "excluding_share": 0.6}, r"either_share \+ excluding_share is"),
        ({"window_s": 60.0, "window_count": 5}, r"window_s is 60\.0, which excludes a window_count"),
        ({"object_source": "texts"}, "object_source is texts, which requires a texts_file"),
        ({"object_source": "tweets"}, "object_source is 'tweets': input should be 'places', 'texts' or"),
        ({"rhythm": "weekly"}, "rhythm is 'weekly': input should be 'flat' or 'daily'"),
        (
            {"preset": "lumps"},
            "preset is 'lumps', must be one of lamps, ap-tree, ap-plus, skype, rt-tree",
        ),
        ({"unit_m": 2.5}, r"unit_m is 2\.5, which requires a map_file"),
        ({"places_file": Path("a.csv")}, r"places_file is a\.csv, which requires a map_file"),
    ],
)
def test_values_that_contradict_each_other_are_refused(values, message):
    with pytest.raises(ParameterError, match=message):
        SimulationParameters(**values)


def test_ticks_include_both_ends():
    assert SimulationParameters(seconds=600).tick_count == 601
    assert SimulationParameters(seconds=10, period_ms=500).tick_count == 21


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sets_parameters_that_are_not_given(name):
    parameters = SimulationParameters(preset=name)
    for key, value in PRESETS[name].items():
        assert getattr(parameters, key) == value
    for key in ("boolean_share", "subscription_keywords_max"):
        assert getattr(SimulationParameters(preset=name, **{key: 1}), key) == 1
    usual = SimulationParameters()
    for key in SimulationParameters.model_fields.keys() - PRESETS[name].keys() - {"preset"}:
        assert getattr(parameters, key) == getattr(usual, key)
    assert parameters.as_dict()["preset"] == name


def test_a_given_value_moves_the_other_limit_of_a_preset():
    parameters = SimulationParameters(preset="skype", k_max=7, window_s=60.0, ttl_s_max=100.0)
    assert (parameters.k_min, parameters.k_max) == (7, 7)
    assert (parameters.window_s, parameters.window_count) == (60.0, None)
    assert (parameters.ttl_s_min, parameters.ttl_s_max) == (100.0, 100.0)
    assert SimulationParameters(preset="lamps", k_min=40).k_max == 40
    with pytest.raises(ParameterError, match="k_max is 101, must be within"):
        SimulationParameters(preset="skype", k_max=101)
