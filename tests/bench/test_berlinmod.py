"""Queries of BerlinMOD: answers of batches of any size are those of the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.berlinmod.audit import expected, mismatches
from bench.berlinmod.experiments import BerlinModParameters
from bench.berlinmod.queries import PUBLISHED_PER_S, Answering, Answers
from bench.berlinmod.run import measure
from bench.berlinmod.workload import Events, scene, stationary_ranges
from engine.contracts import BOOLEAN, CHANGE_DTYPE, handle_of
from safe_region.oracle.plane import OracleCircle

SMALL = BerlinModParameters(
    vehicles=3, events=1_500, ranges=300, distance_m=400.0, region_m=400.0, poi_m=200.0
)
EVERYBODY = list(range(SMALL.ranges))
QUERIES = ("q3", "q4", "q7")


@pytest.fixture(scope="module")
def happens():
    return scene(SMALL)


@pytest.mark.parametrize("query", QUERIES)
def test_results_are_those_of_plain_python_for_every_batch_size(happens, query):
    requests = SMALL.changed(query=query)
    stand = stationary_ranges(happens.corners, requests)
    counts = set()
    for batch in (1, 7, 1_500):
        done = measure(happens, stand, requests.changed(batch=batch), EVERYBODY)
        assert done.events == SMALL.events
        assert len(done.answers.events) == done.answer_count > 0
        assert mismatches(query, happens.events, stand, done.answers, EVERYBODY) == 0
        counts.add(done.answer_count)
    assert len(counts) == 1


def test_the_audit_notices_missing_and_excess_results(happens):
    stand = stationary_ranges(happens.corners, SMALL)
    found = measure(happens, stand, SMALL, EVERYBODY).answers
    less = Answers(found.events[1:], found.ranges[1:])
    more = Answers(np.append(found.events, 0), np.append(found.ranges, found.ranges[0]))
    for wrong in (less, more):
        assert mismatches("q3", happens.events, stand, wrong, EVERYBODY) == 1


def test_vehicles_take_turns_and_drive(happens):
    events = happens.events
    assert events.vehicle[:7].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert events.number[:7].tolist() == [0, 0, 0, 1, 1, 1, 2]
    for vehicle in range(3):
        mine = events.vehicle == vehicle
        steps_m = np.hypot(np.diff(events.x_m[mine]), np.diff(events.y_m[mine]))
        assert 0.0 < steps_m.max() < 60.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=40),
    st.integers(1, 9),
    st.sampled_from(["q4", "q7"]),
    st.randoms(use_true_random=False),
)
def test_entries_and_first_passages_by_the_definitions(steps, batch, query, chance):
    """Vehicles on a line of five places; pairs of a batch come in any order."""
    counts = [0, 0, 0]
    numbers = []
    for vehicle, _ in steps:
        numbers.append(counts[vehicle])
        counts[vehicle] += 1
    x_m = np.array([10.0 * place for _, place in steps])
    vehicles = np.array([vehicle for vehicle, _ in steps], dtype=np.int64)
    events = Events(vehicles, np.array(numbers, dtype=np.int64), x_m, np.zeros(len(steps)))
    answering = Answering(query, events, 3, 2)
    found = []
    for start in range(0, len(steps), batch):
        pairs = [
            (row, number)
            for row in range(start, min(start + batch, len(steps)))
            for number in range(2)
            if abs(x_m[row] - 20.0 * number) <= 10.0
        ]
        chance.shuffle(pairs)
        changes = np.zeros(len(pairs), dtype=CHANGE_DTYPE)
        changes["object_id"] = [row + 1 for row, _ in pairs]
        changes["handle"] = [handle_of(BOOLEAN, number) for _, number in pairs]
        found.append(answering.answers(changes))
    results = Answers.joined(found)
    stream = [(vehicle, x, 0.0) for (vehicle, _), x in zip(steps, x_m.tolist(), strict=True)]
    for number in range(2):
        circle = OracleCircle(10.0, (20.0 * number, 0.0))
        mine = results.events[results.ranges == number]
        assert sorted(mine.tolist()) == expected(query, stream, circle)


@pytest.mark.slow
def test_the_experiments(run_experiments):
    settings = ["ranges=1,500", "batch=1,500", "events=2000", "audited=10"]
    found = run_experiments("berlinmod", settings=settings)
    assert list(found) == [f"berlinmod/{query}" for query in QUERIES]
    for query in QUERIES:
        rows = found[f"berlinmod/{query}"]
        assert [(row["ranges"], row["batch"]) for row in rows] == [(1, 1), (1, 500), (500, 1), (500, 500)]
        assert all(row["events"] == 2_000 and row["events_per_s"] > 0 for row in rows)
        assert [row.get("events_per_s_published") for row in rows[1:3]] == [PUBLISHED_PER_S[query], None]
