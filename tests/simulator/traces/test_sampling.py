"""Positions at ticks, without Spark: between points, and along ways."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_region.earth.frame import Area, Frame
from simulator import schemas
from simulator.traces.matching.layout import Roads
from simulator.traces.matching.routes import Routes, no_routes
from simulator.traces.sampling import sample
from simulator.traces.trace_run import usual_period_ms

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))


def table_of(traces, period_ms, origin_ms):
    """Points of traces (ms, lon, lat), with the ticks that they have."""
    rows = []
    for number, trace in enumerate(traces):
        first = -((origin_ms - trace[0][0]) // period_ms)
        last = (trace[-1][0] - origin_ms) // period_ms
        rows += [(f"device-{number}", *point, origin_ms, first, last - first + 1) for point in trace]
    names = ("device_id", "t_ms", "lon", "lat", "origin_ms", "first_tick", "ticks")
    offsets = np.cumsum([0, *map(len, traces)]).astype(np.int64)
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), offsets


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 5_000), min_size=2, max_size=9), min_size=1, max_size=4),
    st.integers(100, 3_000),
    st.randoms(use_true_random=False),
)
def test_positions_are_interpolated(all_steps_ms, period_ms, random):
    traces = []
    for steps_ms in all_steps_ms:
        times = np.cumsum([random.randint(0, 10_000), *steps_ms])
        traces.append([(int(t), 14.5 + random.uniform(-0.1, 0.1), 35.5) for t in times])
    table, offsets = table_of(traces, period_ms, 0)
    if min(table["ticks"].to_pylist()) < 1:
        return
    found = sample(table, offsets, FRAME, period_ms, None)
    assert found.schema == schemas.arrow_schema(schemas.TRAJECTORIES)
    rows = found.to_pylist()
    for number, trace in enumerate(traces):
        own = [row for row in rows if row["device_id"] == f"device-{number}"]
        ticks = [row["tick"] for row in own]
        assert ticks == [t for t in range(trace[-1][0] // period_ms + 1) if t * period_ms >= trace[0][0]]
        times, lons, _ = zip(*trace, strict=True)
        expected = np.interp(np.array(ticks) * period_ms, times, lons)
        assert [row["lon"] for row in own] == pytest.approx(expected.tolist(), abs=1e-9)
        assert {row["edge_id"] for row in own} == {None}


def test_speeds_and_headings():
    north = [(0, 14.5, 35.5), (10_000, 14.5, 35.501), (20_000, 14.499, 35.501), (30_000, 14.499, 35.501)]
    table, offsets = table_of([north], 5_000, 0)
    rows = sample(table, offsets, FRAME, 5_000, None).to_pylist()
    assert [round(row["heading_deg"]) for row in rows] == [0, 0, 270, 270, 0, 0, 0]
    up, left = 0.0001 * FRAME.y_m_per_deg, 0.0001 * FRAME.x_m_per_deg
    assert [row["speed_mps"] for row in rows] == pytest.approx([up, up, left, left, 0, 0, 0])


def corner():
    """100 m to the east, 50 m to the north, and back on both."""
    xs_m, ys_m = np.array([0.0, 100.0, 100.0]), np.array([0.0, 0.0, 50.0])
    tails, heads = np.array([0, 1, 1, 2], np.int32), np.array([1, 0, 2, 1], np.int32)
    lengths_m = np.array([100.0, 100.0, 50.0, 50.0])
    return Roads(np.array([0, 1, 3, 4]), tails, heads, lengths_m, xs_m, ys_m, np.arange(4) + 70)


def along(routes, points, passed, ts_ms, xs_m, ys_m):
    values = np.array(points), np.array(passed), np.array(ts_ms), np.array(xs_m), np.array(ys_m)
    return routes.along(*values)


def test_along_a_way_around_a_corner():
    routes = Routes(
        corner(),
        np.array([0, 2], np.int32),
        np.array([0.5, 0.5]),
        np.array([0, 2, 2]),
        np.array([0, 2], np.int32),
    )
    found = along(routes, [0] * 4, [0.0, 0.5, 0.8, 1.0], [0, 15_000], [52.0, 103.0], [3.0, 25.0])
    # 75 m in 15 s; the last third of it goes north.
    assert found.xs_m.tolist() == pytest.approx([50.0, 87.5, 100.0, 100.0])
    assert found.ys_m.tolist() == pytest.approx([0.0, 0.0, 10.0, 25.0])
    assert found.edge_ids.tolist() == [70, 70, 72, 72]
    assert found.headings_deg.tolist() == pytest.approx([90.0, 90.0, 0.0, 0.0])
    assert found.speeds_mps.tolist() == pytest.approx([5.0] * 4)


def test_back_on_an_edge_and_straight_on_from_the_road():
    routes = Routes(
        corner(),
        np.array([0, 0, -1], np.int32),
        np.array([0.5, 0.4, 0.0]),
        np.array([0, 1, 1, 1]),
        np.array([0], np.int32),
    )
    found = along(
        routes,
        [0, 0, 1, 1],
        [0.0, 0.5, 0.0, 1.0],
        [0, 10_000, 20_000],
        [50.0, 40.0, 40.0],
        [9.0, 9.0, 30.0],
    )
    assert found.xs_m.tolist() == pytest.approx([50.0, 45.0, 40.0, 40.0])
    # The line begins on the road, where the way ended.
    assert found.ys_m.tolist() == pytest.approx([0.0, 0.0, 0.0, 30.0])
    assert found.headings_deg.tolist() == pytest.approx([270.0, 270.0, 0.0, 0.0])
    assert found.edge_ids.tolist() == [70, 70, -1, -1]


def test_without_roads_all_is_straight():
    found = along(no_routes(2), [0], [0.25], [0, 4_000], [0.0, 8.0], [0.0, 0.0])
    assert (found.xs_m[0], found.speeds_mps[0], found.edge_ids[0]) == (2.0, 2.0, -1)


@pytest.mark.parametrize(
    ("step_ms", "period_ms"),
    [
        (60_000, 60_000),
        (59_600, 60_000),
        (15_000, 15_000),
        (1_400, 1_000),
        (950, 1_000),
        (240, 200),
        (3, 100),
    ],
)
def test_the_usual_period(step_ms, period_ms):
    assert usual_period_ms(step_ms) == period_ms
