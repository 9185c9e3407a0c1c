"""The matcher against plain Python, and on traces whose roads are known."""

import heapq
import math

import numpy as np
import pytest

from safe_region.earth.frame import Frame
from simulator.movement.streets import Streets
from simulator.movement.trajectories import drive
from simulator.network.graph import Graph
from simulator.parameters.traces import TraceOptions
from simulator.traces.matching.grid_kernels import CANDIDATES_MAX, candidates
from simulator.traces.matching.layout import Points, Roads, Tolerances
from simulator.traces.matching.matcher import Matcher
from simulator.traces.matching.road_grid import grid_over
from simulator.traces.matching.viterbi_kernels import DETOUR_MAX, likeliest
from tests.simulator.conftest import SMALL

OPTIONS = TraceOptions(match_radius_m=60.0, match_sigma_m=10.0, match_beta_m=30.0, speed_mps_max=30.0)
BACK_M = 20.0


def crooked_roads(rng, size=6, step_m=80.0):
    """A grid of streets with crooked nodes; some streets are missing, some lead one way."""
    xs_m, ys_m = (axis.ravel() * step_m for axis in np.meshgrid(np.arange(size), np.arange(size)))
    xs_m, ys_m = xs_m + rng.normal(0, 15, size**2), ys_m + rng.normal(0, 15, size**2)
    pairs = []
    for node in range(size**2):
        for other in ([node + 1] if node % size < size - 1 else []) + (
            [node + size] if node < size**2 - size else []
        ):
            draw = rng.random()
            pairs += [(node, other)] * (draw > 0.1) + [(other, node)] * (draw > 0.25)
    tails, heads = (np.array(one, np.int32) for one in zip(*sorted(pairs), strict=True))
    lengths_m = np.hypot(xs_m[heads] - xs_m[tails], ys_m[heads] - ys_m[tails]) * rng.uniform(
        1, 1.2, len(tails)
    )
    offsets = np.searchsorted(tails, np.arange(size**2 + 1)).astype(np.int64)
    return Roads(
        offsets, tails, heads, lengths_m, xs_m, ys_m, np.arange(len(tails), dtype=np.int64) + 100
    )


def nearest(roads, edge, x_m, y_m):
    """How far along an edge its nearest place is, and how far away."""
    a, b = roads.tails[edge], roads.heads[edge]
    ax_m, ay_m = roads.xs_m[a], roads.ys_m[a]
    dx_m, dy_m = roads.xs_m[b] - ax_m, roads.ys_m[b] - ay_m
    along = ((x_m - ax_m) * dx_m + (y_m - ay_m) * dy_m) / (dx_m * dx_m + dy_m * dy_m)
    fraction = min(1.0, max(0.0, along))
    ux_m, uy_m = ax_m + fraction * dx_m - x_m, ay_m + fraction * dy_m - y_m
    return fraction, math.sqrt(ux_m * ux_m + uy_m * uy_m)


def plain_candidates(roads, x_m, y_m, radius_m):
    found = [(*nearest(roads, edge, x_m, y_m), edge) for edge in range(len(roads.tails))]
    near = sorted((away, edge, fraction) for fraction, away, edge in found if away <= radius_m)
    return near[:CANDIDATES_MAX]


def distances(roads, source):
    """Dijkstra over dictionaries."""
    found, heap = {}, [(0.0, source)]
    while heap:
        cost, node = heapq.heappop(heap)
        if node not in found:
            found[node] = cost
            for edge in range(roads.offsets[node], roads.offsets[node + 1]):
                heapq.heappush(heap, (cost + roads.lengths_m[edge], int(roads.heads[edge])))
    return found


def way_m(roads, reach, begin, end):
    """The length of the way between two candidates (away, edge, fraction)."""
    (_, a, f), (_, b, g) = begin, end
    if a == b and (g - f) * roads.lengths_m[a] >= -BACK_M:
        return abs(g - f) * roads.lengths_m[a]
    between = reach[int(roads.heads[a])].get(int(roads.tails[b]), math.inf)
    return (1 - f) * roads.lengths_m[a] + between + g * roads.lengths_m[b]


class PlainMatch:
    """Scores over lists."""

    def __init__(self, roads, ts_ms, xs_m, ys_m):
        self.roads, self.ts_ms, self.xs_m, self.ys_m = roads, ts_ms, xs_m, ys_m
        self.reach = {node: distances(roads, node) for node in range(len(roads.xs_m))}
        self.states = [
            plain_candidates(roads, x, y, OPTIONS.match_radius_m) for x, y in zip(xs_m, ys_m, strict=True)
        ]

    def emitted(self, i, c):
        return -0.5 * (self.states[i][c][0] / OPTIONS.match_sigma_m) ** 2

    def moved(self, i, before, c):
        """The score of the way to a candidate of a point; minus infinity for none."""
        straight = math.hypot(self.xs_m[i] - self.xs_m[i - 1], self.ys_m[i] - self.ys_m[i - 1])
        bound = min(
            OPTIONS.speed_mps_max * (self.ts_ms[i] - self.ts_ms[i - 1]) / 1000.0,
            straight + DETOUR_MAX * OPTIONS.match_beta_m,
        )
        length = way_m(self.roads, self.reach, self.states[i - 1][before], self.states[i][c])
        return -abs(length - straight) / OPTIONS.match_beta_m if length <= bound else -math.inf

    def best(self):
        """Viterbi: whether each point is linked to the next, and the best score of each chain."""
        links, scores, current = [], [], []
        for i, near in enumerate(self.states):
            found = [
                max((score + self.moved(i, k, c) for k, score in enumerate(current)), default=-math.inf)
                for c in range(len(near))
            ]
            is_linked = any(score > -math.inf for score in found)
            links += [is_linked] if i else []
            if not is_linked:
                scores += [max(current)] if current else []
                found = [0.0] * len(near)
            current = [score + self.emitted(i, c) for c, score in enumerate(found)]
        return links, scores + ([max(current)] if current else [])

    def scores_of(self, chosen, links):
        """The score of each chain of chosen candidates."""
        scores = []
        for i, c in enumerate(chosen):
            if c < 0:
                continue
            if i and links[i - 1]:
                scores[-1] += self.moved(i, chosen[i - 1], c)
            else:
                scores.append(0.0)
            scores[-1] += self.emitted(i, c)
        return scores


@pytest.mark.parametrize("seed", range(12))
def test_the_likeliest_places_are_those_of_plain_python(seed):
    rng = np.random.default_rng(seed)
    roads = crooked_roads(rng)
    grid = grid_over(roads, 50.0)
    count = 14
    walk = np.cumsum(rng.normal(0, 60, (count, 2)), axis=0) + 200.0
    if seed % 3 == 0:
        walk[7] += 2_000.0  # far from every road
    ts_ms = np.cumsum(rng.integers(3, 20, count)) * 1000
    xs_m, ys_m = walk[:, 0].copy(), walk[:, 1].copy()
    near = candidates(xs_m, ys_m, OPTIONS.match_radius_m, roads, grid)
    counts, edges, fractions, aways_m = near
    for i in range(count):
        expected = plain_candidates(roads, xs_m[i], ys_m[i], OPTIONS.match_radius_m)
        assert edges[i, : counts[i]].tolist() == [edge for _, edge, _ in expected]
        assert aways_m[i, : counts[i]] == pytest.approx([away for away, _, _ in expected])
        assert fractions[i, : counts[i]] == pytest.approx([fraction for *_, fraction in expected])
    offsets = np.array([0, count], np.int64)
    tolerances = Tolerances(10.0, 30.0, OPTIONS.speed_mps_max, BACK_M)
    chosen, linked = likeliest(offsets, Points(ts_ms, xs_m, ys_m), near, roads, tolerances)
    plain = PlainMatch(roads, ts_ms, xs_m, ys_m)
    links, scores = plain.best()
    assert linked[:-1].tolist() == links
    assert (chosen >= 0).tolist() == [bool(near) for near in plain.states]
    # At crossings several candidates are as likely.
    assert plain.scores_of(chosen.tolist(), links) == pytest.approx(scores)
    routes = Matcher(roads, grid, OPTIONS).routes(offsets, ts_ms, xs_m, ys_m)
    check_ways(roads, plain.reach, routes, links)


def check_ways(roads, reach, routes, links):
    """Every way begins and ends on the right edges, is connected, and no longer than need be."""
    for i, link in enumerate(links):
        way = routes.ways[routes.offsets[i] : routes.offsets[i + 1]]
        assert (len(way) > 0) == link
        if not link:
            continue
        assert (way[0], way[-1]) == (routes.edges[i], routes.edges[i + 1])
        assert (roads.heads[way[:-1]] == roads.tails[way[1:]]).all()
        begin, end = ((0.0, routes.edges[k], routes.fractions[k]) for k in (i, i + 1))
        if len(way) > 1:
            length = (1 - begin[2]) * roads.lengths_m[way[0]] + end[2] * roads.lengths_m[way[-1]]
            length += roads.lengths_m[way[1:-1]].sum()
            assert length == pytest.approx(way_m(roads, reach, begin, end))


def test_traces_do_not_depend_on_each_other():
    rng = np.random.default_rng(5)
    roads = crooked_roads(rng)
    matcher = Matcher(roads, grid_over(roads, 50.0), OPTIONS)
    walks = [np.cumsum(rng.normal(0, 50, (n, 2)), axis=0) + 200.0 for n in (5, 1, 9)]
    times = [np.arange(len(walk), dtype=np.int64) * 10_000 for walk in walks]
    offsets = np.cumsum([0, *map(len, walks)]).astype(np.int64)
    together = matcher.routes(
        offsets, np.concatenate(times), *(np.concatenate([walk[:, k] for walk in walks]) for k in (0, 1))
    )
    for n, (walk, ts_ms) in enumerate(zip(walks, times, strict=True)):
        alone = matcher.routes(
            np.array([0, len(walk)], np.int64), ts_ms, walk[:, 0].copy(), walk[:, 1].copy()
        )
        part = slice(offsets[n], offsets[n + 1])
        assert together.edges[part].tolist() == alone.edges.tolist()
        first, last = together.offsets[offsets[n]], together.offsets[offsets[n + 1]]
        assert together.ways[first:last].tolist() == alone.ways.tolist()


@pytest.mark.parametrize(
    ("every_s", "noise_m", "right"), [(1, 3.0, 0.94), (10, 8.0, 0.94), (30, 8.0, 0.92)]
)
def test_the_roads_of_simulated_drives_are_found(city, every_s, noise_m, right):
    """Of the way driven nearly all is found, and nearly all that is found was driven."""
    count = 60
    parameters = SMALL.changed(devices=count, seconds=300, car_share=1.0, bicycle_share=0.0)
    frame = Frame.of(city.area)
    batch = drive(Streets.of(city, parameters), np.arange(count), parameters)
    driven = batch.column("edge_id").to_numpy().reshape(count, -1)
    seen = np.arange(0, parameters.tick_count, every_s)
    lons, lats = (batch.column(name).to_numpy().reshape(count, -1)[:, seen] for name in ("lon", "lat"))
    rng = np.random.default_rng(1)
    xs_m = (lons - frame.lon0_deg) * frame.x_m_per_deg + rng.normal(0, noise_m, lons.shape)
    ys_m = (lats - frame.lat0_deg) * frame.y_m_per_deg + rng.normal(0, noise_m, lons.shape)
    matcher = Matcher.of(Graph.of(city.roads, frame), OPTIONS)
    offsets = np.arange(count + 1, dtype=np.int64) * len(seen)
    ts_ms = np.tile(seen * 1000, count).astype(np.int64)
    routes = matcher.routes(offsets, ts_ms, xs_m.ravel(), ys_m.ravel())
    lengths_m = dict(zip(matcher.roads.edge_ids.tolist(), matcher.roads.lengths_m.tolist(), strict=True))
    both_m = driven_m = found_m = 0.0
    for device, edges in enumerate(driven):
        first, last = (routes.offsets[offsets[device + k]] for k in (0, 1))
        true = set(edges.tolist())
        found = set(matcher.roads.edge_ids[routes.ways[first:last]].tolist())
        both_m += sum(lengths_m[edge] for edge in true & found)
        driven_m += sum(lengths_m[edge] for edge in true)
        found_m += sum(lengths_m[edge] for edge in found)
    assert both_m / driven_m > right
    assert both_m / found_m > right
