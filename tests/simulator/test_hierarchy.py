"""Paths of the hierarchy against scipy's, and turns that are not allowed against a search over edges."""

import heapq

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from simulator import schemas
from simulator.network.graph import Graph
from simulator.network.hierarchy import Hierarchy
from simulator.network.turns import split
from tests.simulator.test_graph import FRAME, random_roads


def scipy_s(graph, times_s, sources):
    """Travel times from some nodes to all; of several edges between two nodes the fastest counts."""
    order = np.lexsort((times_s, graph.targets, graph.sources))
    ends = np.column_stack([graph.sources, graph.targets])[order]
    first = np.concatenate([[True], (np.diff(ends, axis=0) != 0).any(axis=1)])
    kept = order[first]
    kept = kept[np.isfinite(times_s[kept])]
    shape = (graph.node_count, graph.node_count)
    weights = csr_array((times_s[kept], (graph.sources[kept], graph.targets[kept])), shape)
    return dijkstra(weights, indices=sources)


def check_paths(graph, times_s, sources, targets):
    hierarchy = Hierarchy.of(graph)
    offsets, edges = hierarchy.paths(hierarchy.customised(times_s), sources, targets)
    expected_s = scipy_s(graph, times_s, sources)
    for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
        path = edges[offsets[i] : offsets[i + 1]]
        if source == target or not np.isfinite(expected_s[i, target]):
            assert len(path) == 0
            continue
        assert graph.sources[path[0]] == source
        assert graph.targets[path[-1]] == target
        assert (graph.sources[path[1:]] == graph.targets[path[:-1]]).all()
        assert times_s[path].sum() == pytest.approx(expected_s[i, target], rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), closed=st.floats(0.0, 0.5))
def test_paths_are_as_fast_as_those_of_scipy(seed, closed):
    """Whatever the times: the hierarchy's order knows nothing of them. Some edges are closed."""
    graph = Graph.of(random_roads(seed), FRAME)
    chance = np.random.default_rng(seed)
    times_s = chance.uniform(0.1, 50.0, len(graph.targets))
    times_s[chance.uniform(size=len(times_s)) < closed] = np.inf
    ends = chance.integers(0, graph.node_count, (2, 30)).astype(np.int32)
    check_paths(graph, times_s, *ends)


def test_paths_in_a_city_are_as_fast_as_those_of_scipy(graph):
    chance = np.random.default_rng(4)
    sources = chance.integers(0, graph.node_count, 40).astype(np.int32)
    targets = chance.integers(0, graph.node_count, 40).astype(np.int32)
    for times_s in graph.times_s:
        check_paths(graph, times_s, sources, targets)


def turn_by_turn_s(sources, targets, times_s, banned, begin, end):
    """The least time from a node to another, by a search over edges that keeps to the turns allowed."""
    heap = [(times_s[one], one) for one in np.flatnonzero(sources == begin)]
    heapq.heapify(heap)
    seen = set()
    while heap:
        time_s, edge = heapq.heappop(heap)
        if edge in seen:
            continue
        seen.add(edge)
        if targets[edge] == end:
            return time_s
        for following in np.flatnonzero(sources == targets[edge]):
            if (edge, following) not in banned:
                heapq.heappush(heap, (time_s + times_s[following], following))
    return np.inf


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_turns_that_are_not_allowed_are_not_made(seed):
    roads = random_roads(seed)
    chance = np.random.default_rng(seed)
    sources, targets = roads["source"].to_numpy(), roads["target"].to_numpy()
    turns = [(a, b) for a in range(len(sources)) for b in np.flatnonzero(sources == targets[a])]
    banned = {turns[i] for i in chance.choice(len(turns), min(12, len(turns)), replace=False)}
    rows = np.array(sorted(banned), np.int64).reshape(-1, 2)
    restrictions = pa.table(
        {"edge_id_from": rows[:, 0], "edge_id_to": rows[:, 1]},
        schema=schemas.arrow_schema(schemas.RESTRICTIONS),
    )
    try:
        graph = Graph.of(roads, FRAME, restrictions)
    except ValueError:  # nothing is connected any more
        return
    times_s = graph.lengths_m
    hierarchy = Hierarchy.of(graph)
    stops = np.flatnonzero(~graph.is_restricted)
    if not len(stops):
        return
    ends = chance.choice(stops, (2, 15)).astype(np.int32)
    offsets, edges = hierarchy.paths(hierarchy.customised(times_s), *ends)
    lengths_m, kept = roads["length_m"].to_numpy().copy(), np.unique(graph.edge_ids)
    lengths_m[np.setdiff1d(np.arange(len(lengths_m)), kept)] = np.inf  # not connected to the others
    for i, (source, target) in enumerate(ends.T):
        path = graph.edge_ids[edges[offsets[i] : offsets[i + 1]]]
        assert not banned & set(zip(path[:-1].tolist(), path[1:].tolist(), strict=True))
        if source == target:
            continue
        begin = sources[graph.edge_ids[np.flatnonzero(graph.sources == source)[0]]]
        end = targets[graph.edge_ids[np.flatnonzero(graph.targets == target)[0]]]
        expected_m = turn_by_turn_s(sources, targets, lengths_m, banned, begin, end)
        assert lengths_m[path].sum() == pytest.approx(expected_m, rel=1e-12)


def test_an_edge_and_its_copies_keep_their_row():
    """0 -> 1 -> 2 and 1 -> 3, where who comes from 0 must not go to 3."""
    sources, targets = np.array([0, 1, 1], np.int32), np.array([1, 2, 3], np.int32)
    found = split(sources, targets, 4, np.array([0]), np.array([2]))
    assert found.rows.tolist() == [0, 1, 2, 1]
    assert found.targets.tolist() == [4, 2, 3, 2]
    assert found.originals.tolist() == [0, 1, 2, 3, 1]
    assert found.is_restricted.tolist() == [False, True, False, False, True]
