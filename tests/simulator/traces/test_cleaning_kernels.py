"""Points that are kept, against plain Python."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.traces.cleaning_kernels import RUN, classify
from simulator.traces.points import Verdict

SECOND_MS = 1_000
KEPT, DUPLICATE, BACK, JUMP, ISOLATED = (
    one.value for one in (Verdict.KEPT, Verdict.DUPLICATE, Verdict.BACK, Verdict.JUMP, Verdict.ISOLATED)
)


def classified(traces, verdicts=None, *, gap_s=60, speed_mps_max=10.0, points_min=1):
    """Judge traces of (seconds, x, y); return verdicts, pieces and steps of all points."""
    rows = np.array([row for trace in traces for row in trace], np.float64).reshape(-1, 3)
    offsets = np.cumsum([0, *map(len, traces)]).astype(np.int64)
    found = np.zeros(len(rows), np.int8) if verdicts is None else np.array(verdicts, np.int8)
    ts_ms = (rows[:, 0] * SECOND_MS).astype(np.int64)
    xs_m, ys_m = rows[:, 1].copy(), rows[:, 2].copy()
    pieces, steps_ms = classify(
        offsets, ts_ms, xs_m, ys_m, found, gap_s * SECOND_MS, speed_mps_max, points_min
    )
    return found.tolist(), pieces.tolist(), steps_ms.tolist()


class Oracle:
    """Judges one trace, as the kernel's module describes it, over lists."""

    def __init__(self, trace, speed_mps_max, gap_s):
        self.trace, self.speed_mps_max, self.gap_s = trace, speed_mps_max, gap_s
        self.verdicts = {}

    def classify(self, points_min):
        """Verdicts and pieces of all points."""
        pieces = self.cut(self.in_time(self.order()))
        self.mark([i for piece in pieces if len(piece) < points_min for i in piece], ISOLATED)
        found = [-1] * len(self.trace)
        for number, piece in enumerate(piece for piece in pieces if len(piece) >= points_min):
            for i in piece:
                found[i] = number
        return [self.verdicts.get(i, KEPT) for i in range(len(self.trace))], found

    def mark(self, points, verdict):
        self.verdicts |= dict.fromkeys(points, verdict)

    def pardon(self, points):
        for i in points:
            del self.verdicts[i]

    def order(self):
        steps = [b[0] - a[0] for a, b in pairwise(self.trace)]
        numbers = range(len(self.trace))
        return numbers[::-1] if sum(s < 0 for s in steps) > sum(s > 0 for s in steps) else numbers

    def time(self, i):
        return self.trace[i][0]

    def is_reachable(self, a, b):
        (t0, *p0), (t1, *p1) = self.trace[a], self.trace[b]
        return math.dist(p0, p1) <= self.speed_mps_max * (t1 - t0)

    def in_time(self, order):
        kept, run = [], []
        for i in order:
            if not kept or self.time(i) > self.time(kept[-1]):
                kept, run = [*kept, i], []
            elif self.time(i) in {self.time(k) for k in (kept[-1], *run[-1:])}:
                self.mark([i], DUPLICATE)
            else:
                self.mark([i], BACK)
                run = [*run, i] if run and self.time(i) > self.time(run[-1]) else [i]
            if len(run) == RUN:
                ahead = [k for k in kept if self.time(k) >= self.time(run[0])]
                if len(ahead) < RUN:
                    self.mark(ahead, BACK)
                    self.pardon(run)
                    kept = [k for k in kept if k not in ahead] + run
                run = []
        return kept

    def cut(self, kept):
        pieces, run = [], []
        for i in kept:
            if not pieces or self.time(i) - self.time(pieces[-1][-1]) > self.gap_s:
                pieces, run = [*pieces, [i]], []
            elif self.is_reachable(pieces[-1][-1], i):
                pieces[-1].append(i)
                run = []
            else:
                run = [*run, i] if run and self.is_reachable(run[-1], i) else [i]
                self.mark([i], JUMP)
            if len(run) == RUN:
                self.pardon(run)
                if len(pieces[-1]) < RUN:
                    self.mark(pieces.pop(), JUMP)
                pieces, run = [*pieces, run], []
        return pieces


POINT = st.tuples(
    st.integers(0, 12).map(lambda n: n * 10), st.sampled_from([0.0, 50.0, 90.0, 5_000.0]), st.just(0.0)
)
TRACE = st.lists(POINT, min_size=1, max_size=14)


@settings(max_examples=400, deadline=None)
@given(st.lists(TRACE, min_size=1, max_size=3), st.integers(1, 4), st.booleans())
def test_as_the_oracle(traces, points_min, is_sorted):
    traces = [sorted(trace) if is_sorted else trace for trace in traces]
    given_verdicts, pieces, _ = classified(traces, points_min=points_min, gap_s=40)
    expected = [Oracle(trace, 10.0, 40).classify(points_min) for trace in traces]
    assert given_verdicts == [one for verdicts, _ in expected for one in verdicts]
    assert pieces == [one for _, found in expected for one in found]


def line(first, count, *, x=0.0, step_s=10):
    return [(first + i * step_s, x + 20.0 * i, 0.0) for i in range(count)]


def test_nothing_is_wrong():
    verdicts, pieces, steps_ms = classified([line(0, 5), line(100, 3)])
    assert verdicts == [KEPT] * 8
    assert pieces == [0] * 8
    assert steps_ms == [-1, 10_000, 10_000, 10_000, 10_000, -1, 10_000, 10_000]


def test_newest_first_is_read_from_the_end():
    verdicts, pieces, steps_ms = classified([line(0, 5)[::-1]])
    assert verdicts == [KEPT] * 5
    assert pieces == [0] * 5
    assert steps_ms == [10_000, 10_000, 10_000, 10_000, -1]


def test_a_gap_starts_another_piece():
    verdicts, pieces, _ = classified([line(0, 3) + line(81, 3)])
    assert verdicts == [KEPT] * 6
    assert pieces == [0, 0, 0, 1, 1, 1]


def test_a_duplicate_and_a_step_back():
    rows = line(0, 4)
    verdicts, *_ = classified([[*rows, rows[-1], rows[1], (40, 70.0, 0.0)]])
    assert verdicts == [KEPT] * 4 + [DUPLICATE, BACK, KEPT]


def test_one_time_that_is_far_ahead_does_not_spoil_the_rest():
    rows = line(0, 6)
    verdicts, pieces, _ = classified([[*rows[:2], (1_000_000, 40.0, 0.0), *rows[2:]]])
    assert verdicts == [KEPT, KEPT, BACK, *[KEPT] * 4]
    assert set(pieces) == {0, -1}


def test_one_jump_is_dropped():
    verdicts, pieces, steps_ms = classified([[*line(0, 3), (30, 9_000.0, 0.0), *line(40, 2, x=60.0)]])
    assert verdicts == [KEPT] * 3 + [JUMP] + [KEPT] * 2
    assert pieces == [0, 0, 0, -1, 0, 0]
    assert steps_ms[4] == 20_000


def test_a_bad_first_point_is_dropped():
    verdicts, pieces, _ = classified([[(0, 9_000.0, 0.0), *line(10, 5)]])
    assert verdicts == [JUMP] + [KEPT] * 5
    assert pieces == [-1, 0, 0, 0, 0, 0]


def test_a_vehicle_elsewhere_for_long_has_two_pieces():
    verdicts, pieces, _ = classified([line(0, 4) + line(40, 4, x=9_000.0)])
    assert verdicts == [KEPT] * 8
    assert pieces == [0] * 4 + [1] * 4


def test_short_pieces_are_dropped_and_the_others_numbered():
    verdicts, pieces, _ = classified(
        [line(0, 2) + line(200, 3) + line(400, 1) + line(600, 3)], points_min=3
    )
    assert verdicts == [ISOLATED] * 2 + [KEPT] * 3 + [ISOLATED] + [KEPT] * 3
    assert pieces == [-1, -1, 0, 0, 0, -1, 1, 1, 1]


def test_earlier_verdicts_stay():
    verdicts, pieces, _ = classified([line(0, 4)], [0, Verdict.OUTSIDE.value, 0, 0])
    assert verdicts == [KEPT, Verdict.OUTSIDE.value, KEPT, KEPT]
    assert pieces == [0, -1, 0, 0]


@pytest.mark.parametrize("count", [0, 1])
def test_few_points(count):
    verdicts, *_ = classified([line(0, count)], points_min=2)
    assert verdicts == [ISOLATED] * count
