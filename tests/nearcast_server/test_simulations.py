"""Simulations as tables."""

from __future__ import annotations

import pytest

import nearcast_server
from simulator.errors import SimulationError
from simulator.parameters import ParameterError


@pytest.mark.slow
@pytest.mark.spark
def test_a_city_as_tables(tmp_path):
    stages = []
    made = nearcast_server.simulate(
        tmp_path / "city",
        devices=5,
        seconds=10,
        seed=7,
        progress=lambda stage, _done, _total: stages.append(stage),
    )
    assert made.trajectories.num_rows == made.row_count("trajectories") > 5
    assert made.devices.num_rows == 5
    assert {"city", "spark", "trajectories"} <= set(stages)
    opened = nearcast_server.open_simulation(tmp_path / "city")
    assert opened.trajectories.equals(made.trajectories)
    assert opened.world == made.world


def test_a_wrong_parameter_is_named(tmp_path):
    with pytest.raises(ParameterError, match="devicess is not a parameter"):
        nearcast_server.simulate(tmp_path, devicess=5)
    with pytest.raises(SimulationError, match="is missing"):
        nearcast_server.open_simulation(tmp_path)
