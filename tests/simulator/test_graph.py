import heapq

import numpy as np
import pyarrow as pa
import pytest

from safe_region.earth.frame import Area, Frame
from simulator import schemas
from simulator.network.graph import Graph, largest_component
from simulator.network.hierarchy import Hierarchy
from simulator.network.traffic import DEVICE_CLASSES, SPEEDS_MPS, RoadClass

FRAME = Frame.of(Area(14.0, 35.0, 14.1, 35.1))
CAR, BICYCLE = 0, 1


def roads(points, edges):
    """A roads table of straight edges (source, target, class)."""
    rows = []
    for number, (source, target, road_class) in enumerate(edges):
        (x0, y0), (x1, y1) = points[source], points[target]
        lon0, lat0 = FRAME.unproject(x0, y0)
        lon1, lat1 = FRAME.unproject(x1, y1)
        length_m = float(np.hypot(x1 - x0, y1 - y0))
        speed_mps = SPEEDS_MPS[road_class]
        rows.append(
            (number, source, target, road_class.value, speed_mps, length_m, lon0, lat0, lon1, lat1)
        )
    schema = schemas.arrow_schema(schemas.ROADS)
    columns = zip(*rows, strict=True)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def random_roads(seed):
    chance = np.random.default_rng(seed)
    count = int(chance.integers(5, 60))
    points = chance.uniform(-3000.0, 3000.0, (count, 2))
    classes = list(RoadClass)
    edges = {}
    for node in range(count):
        # A cycle through all nodes, so that most of the graph is strongly connected.
        edges[node, (node + 1) % count] = classes[int(chance.integers(1, 5))]
        for other in chance.integers(0, count, int(chance.integers(0, 4))):
            if other != node:
                edges[node, int(other)] = classes[int(chance.integers(0, 5))]
    return roads(points, [(*ends, one) for ends, one in edges.items()])


def dijkstra_s(graph, source, device_class):
    """Travel times from a node, by the definition."""
    costs = {}
    heap = [(0.0, source)]
    while heap:
        cost, node = heapq.heappop(heap)
        if node in costs:
            continue
        costs[node] = cost
        for edge in range(graph.offsets[node], graph.offsets[node + 1]):
            speed = graph.speeds_mps[device_class, edge]
            if speed > 0.0:
                heapq.heappush(heap, (cost + graph.lengths_m[edge] / speed, graph.targets[edge]))
    return costs


def paths(graph, sources, targets, classes):
    """Fastest paths, each of a device class, as rows of edges."""
    hierarchy = Hierarchy.of(graph)
    metrics = [hierarchy.customised(times_s) for times_s in graph.times_s]
    found = [
        hierarchy.paths(metrics[one], sources[i : i + 1], targets[i : i + 1])[1]
        for i, one in enumerate(classes)
    ]
    return np.cumsum([0, *map(len, found)]), np.concatenate(found)


def path_s(graph, edges, device_class):
    return sum(graph.lengths_m[edge] / graph.speeds_mps[device_class, edge] for edge in edges)


@pytest.mark.parametrize("seed", range(25))
def test_paths_are_as_fast_as_those_of_the_oracle(seed):
    graph = Graph.of(random_roads(seed), FRAME)
    chance = np.random.default_rng(1000 + seed)
    sources = chance.integers(0, graph.node_count, 40).astype(np.int32)
    targets = chance.integers(0, graph.node_count, 40).astype(np.int32)
    classes = chance.integers(0, len(DEVICE_CLASSES), 40).astype(np.int32)
    offsets, edges = paths(graph, sources, targets, classes)
    assert len(offsets) == 41
    assert offsets[-1] == len(edges)
    for i, (source, target, one) in enumerate(zip(sources, targets, classes, strict=True)):
        path = edges[offsets[i] : offsets[i + 1]]
        expected_s = dijkstra_s(graph, source, one).get(target)
        if source == target or expected_s is None:
            assert len(path) == 0
            continue
        assert graph.sources[path[0]] == source
        assert graph.targets[path[-1]] == target
        assert (graph.sources[path[1:]] == graph.targets[path[:-1]]).all()
        assert path_s(graph, path, one) == pytest.approx(expected_s, rel=1e-12)


def test_paths_longer_than_the_first_buffer():
    count = 3000
    points = [(float(i), 0.0) for i in range(count)]
    pairs = [(i, i + 1) for i in range(count - 1)]
    both = [*pairs, *[(b, a) for a, b in pairs]]
    graph = Graph.of(roads(points, [(*pair, RoadClass.RESIDENTIAL) for pair in both]), FRAME)
    ends = np.array([0, count - 1], np.int32)
    offsets, edges = paths(graph, ends, ends[::-1].copy(), np.zeros(2, np.int32))
    assert offsets.tolist() == [0, count - 1, 2 * (count - 1)]
    assert (graph.targets[edges[: count - 1]] == np.arange(1, count)).all()
    assert (graph.targets[edges[count - 1 :]] == np.arange(count - 2, -1, -1)).all()


def test_bicycles_keep_off_motorways():
    points = [(0.0, 0.0), (1000.0, 0.0), (500.0, 900.0)]
    edges = [
        (0, 1, RoadClass.MOTORWAY),
        (1, 0, RoadClass.MOTORWAY),
        (0, 2, RoadClass.RESIDENTIAL),
        (2, 1, RoadClass.RESIDENTIAL),
        (1, 2, RoadClass.RESIDENTIAL),
        (2, 0, RoadClass.RESIDENTIAL),
    ]
    graph = Graph.of(roads(points, edges), FRAME)
    there = np.array([0, 0], np.int32)
    offsets, _ = paths(graph, there, there + 1, np.array([CAR, BICYCLE], np.int32))
    assert np.diff(offsets).tolist() == [1, 2]


def test_no_way_gives_an_empty_path():
    points = [(0.0, 0.0), (1000.0, 0.0), (2000.0, 0.0)]
    pairs = [(0, 1, RoadClass.RESIDENTIAL), (1, 2, RoadClass.MOTORWAY)]
    both = pairs + [(b, a, one) for a, b, one in pairs]
    graph = Graph.of(roads(points, both), FRAME)
    offsets, edges = paths(
        graph, np.array([0, 0], np.int32), np.array([2, 1], np.int32), np.array([BICYCLE] * 2, np.int32)
    )
    assert np.diff(offsets).tolist() == [0, 1]
    assert len(edges) == 1


def _reachable(sources, targets, count):
    """Which node reaches which, by repeated squaring."""
    reach = np.eye(count, dtype=bool)
    reach[sources, targets] = True
    while True:
        wider = reach | (reach.astype(np.int64) @ reach.astype(np.int64) > 0)
        if (wider == reach).all():
            return reach
        reach = wider


@pytest.mark.parametrize("seed", range(30))
def test_largest_component_against_reachability(seed):
    chance = np.random.default_rng(seed)
    count = int(chance.integers(2, 40))
    edge_count = int(chance.integers(1, 3 * count))
    sources = chance.integers(0, count, edge_count).astype(np.int32)
    targets = chance.integers(0, count, edge_count).astype(np.int32)
    reach = _reachable(sources, targets, count)
    mutual = reach & reach.T
    found = largest_component(sources, targets, count)
    assert found.sum() == mutual.sum(axis=1).max()
    assert (mutual[np.flatnonzero(found)[0]] == found).all()


def test_nodes_not_connected_both_ways_are_omitted():
    points = [(0.0, 0.0), (100.0, 0.0), (200.0, 0.0), (900.0, 0.0)]
    edges = [(0, 1), (1, 0), (1, 2), (3, 2)]
    graph = Graph.of(roads(points, [(*pair, RoadClass.RESIDENTIAL) for pair in edges]), FRAME)
    assert graph.node_count == 2
    assert sorted(zip(graph.sources, graph.targets, strict=True)) == [(0, 1), (1, 0)]
    with pytest.raises(ValueError, match="no two nodes"):
        Graph.of(roads(points, [(0, 1, RoadClass.RESIDENTIAL)]), FRAME)
