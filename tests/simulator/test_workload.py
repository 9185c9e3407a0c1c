from collections import Counter, defaultdict

import pytest

from simulator.simulation import load
from simulator.workload.arrivals import arrival_count
from simulator.workload.objects import OFFER_WORDS, object_count
from tests.simulator.conftest import SMALL


@pytest.fixture(scope="module")
def published(simulation):
    return simulation.objects.to_pylist()


def test_initial_objects_and_a_poisson_number_of_arrivals(published):
    mean = SMALL.arrivals_per_s * SMALL.seconds
    assert abs(arrival_count(SMALL) - mean) < 4.0 * mean**0.5
    firsts = {}
    for row in published:
        firsts.setdefault(row["object_key"], row)
    assert len(firsts) == object_count(SMALL) == SMALL.objects + arrival_count(SMALL)
    assert sum(row["publish_ms"] == 0 for row in published) == SMALL.objects
    assert all(0 <= row["publish_ms"] < SMALL.run_ms for row in published)
    late = [row["publish_ms"] for row in firsts.values() if row["publish_ms"] > 0]
    halves = Counter(publish_ms * 2 // SMALL.run_ms for publish_ms in late)
    assert abs(halves[0] - halves[1]) < 4.0 * mean**0.5


def test_lifetimes_are_bounded_and_some_end_within_the_run(published):
    assert min(row["ttl_ms"] for row in published) >= SMALL.ttl_s_min * 1000
    assert max(row["ttl_ms"] for row in published) <= SMALL.ttl_s_max * 1000
    expired = sum(row["publish_ms"] + row["ttl_ms"] < SMALL.run_ms for row in published)
    assert 0.1 < expired / len(published) < 0.9
    mean_ms = sum(row["ttl_ms"] for row in published) / len(published)
    # An exponential of mean 120 s, clamped below at 30 s: 30 + 120 exp(-30 / 120) = 123.5.
    assert mean_ms == pytest.approx(123_500, rel=0.15)


def test_objects_are_retracted_while_they_live_and_the_run_lasts(published):
    retracted = [row for row in published if row["retract_ms"] is not None]
    assert 0.5 * SMALL.retracted_share < len(retracted) / len(published) <= SMALL.retracted_share * 1.3
    for row in retracted:
        assert row["publish_ms"] < row["retract_ms"] < row["publish_ms"] + row["ttl_ms"]
        assert row["retract_ms"] <= SMALL.run_ms


def test_a_replacement_changes_an_object_that_lives(published):
    versions = defaultdict(list)
    for row in published:
        versions[row["object_key"]].append(row)
    replaced = [rows for rows in versions.values() if len(rows) > 1]
    assert 0.5 * SMALL.replaced_share < len(replaced) / len(versions) < 1.3 * SMALL.replaced_share
    for rows in replaced:
        first, second = rows
        assert first["retract_ms"] is None
        assert first["publish_ms"] < second["publish_ms"] < first["publish_ms"] + first["ttl_ms"]
        assert first["keywords"] != second["keywords"]
        assert (first["lon"], first["lat"]) == (second["lon"], second["lat"])


def test_objects_are_at_places_and_speak_of_them(simulation, published):
    places = {(row["lon"], row["lat"]): set(row["keywords"]) for row in simulation.places.to_pylist()}
    offers = 0
    for row in published:
        words = row["keywords"]
        assert words == sorted(set(words))
        offered = set(words) & set(OFFER_WORDS)
        offers += len(offered)
        assert len(offered) <= 1
        assert set(words) - offered <= places[row["lon"], row["lat"]]
        assert len(set(words) - offered) >= 2
    assert 0.4 < offers / len(published) < 0.75


def test_written_tables_can_be_read_again(simulation):
    again = load(simulation.path)
    assert again.objects.equals(simulation.objects)
    assert again.world == simulation.world
