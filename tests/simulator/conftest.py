"""One Spark session and one small simulation for all tests of the room."""

from __future__ import annotations

import pytest

from safe_region.earth.frame import Frame
from simulator.city import city_area, generate_city
from simulator.network.graph import Graph
from simulator.parameters import SimulationParameters
from simulator.simulation import simulate

SMALL = SimulationParameters(
    seed=11,
    city_width_m=4_000.0,
    places=300,
    devices=23,
    seconds=90,
    objects=400,
    arrivals_per_s=3.0,
    ttl_s_mean=120.0,
    retracted_share=0.2,
    replaced_share=0.2,
    subscriptions_per_device=2,
    boolean_share=0.5,
    window_share=0.5,
    stationary_share=0.4,
    tfidf_share=0.5,
    alpha_min=0.2,
    alpha_max=0.8,
)


@pytest.fixture(scope="session")
def simulation(spark, tmp_path_factory):
    return simulate(SMALL, tmp_path_factory.mktemp("small"), spark=spark, partitions=1)


@pytest.fixture(scope="session")
def city():
    return generate_city(SMALL)


@pytest.fixture(scope="session")
def graph(city):
    return Graph.of(city.roads, Frame.of(city_area(SMALL)))
