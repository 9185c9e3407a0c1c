"""The check of a simulation: nothing is wrong with what is made, and planted faults are found."""

import json
import shutil
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.app import app
from simulator import schemas
from simulator.checks.check import check
from simulator.checks.points import POINT_RULES
from simulator.checks.steps import RUNS, STEP_RULES, Turns, joints, runs, runs_of
from simulator.simulation import load
from simulator.tables import slice_name

LENGTH = 6


def broken(folder, spark):
    """The rules that are broken, with how often."""
    return {one.rule: one.violations for one in check(load(folder), spark) if one.violations}


@pytest.fixture
def folder(simulation, tmp_path):
    return shutil.copytree(simulation.path, tmp_path / "copy")


def test_a_simulation_breaks_no_rule(simulation, spark):
    found = check(simulation, spark)
    assert [one for one in found if one.violations] == []
    checked = {one.rule: one.checked for one in found}
    assert set(schemas.TABLES) <= {rule.split(":")[0] for rule in checked}
    assert checked[POINT_RULES[0]] == simulation.trajectories.num_rows
    assert checked[STEP_RULES[0]] == simulation.trajectories.num_rows - simulation.devices.num_rows


def rewritten(folder, name, change):
    """Write a table anew, and its mark with it."""
    simulation = load(folder)
    table = change(getattr(simulation, name))
    shutil.rmtree(folder / name)
    target = folder / name / (slice_name(0) if name == "trajectories" else "")
    target.mkdir(parents=True)
    pq.write_table(table, target / "part.parquet")
    mark = folder / "stages" / f"{name}.json"
    mark.write_text(json.dumps(json.loads(mark.read_text()) | {"rows": table.num_rows}))


def put(table, column, rows, value):
    """Change a column in some rows."""
    at = table.schema.get_field_index(column)
    values = table[column].to_pylist()
    for row in rows:
        values[row] = value(values[row])
    return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))


def moving(table):
    return int(np.argmax(table["speed_mps"].to_numpy() > 1.0))


# Faults that do not hide each other are planted together: a check takes some seconds.
PLANTED = [
    {
        POINT_RULES[0]: ("trajectories", lambda t: put(t, "device_id", [5], lambda _: "device-999999")),
        POINT_RULES[1]: ("trajectories", lambda t: put(t, "edge_id", [30], lambda _: 10**12)),
        POINT_RULES[2]: ("trajectories", lambda t: put(t, "edge_id", [60], lambda _: far_from(t, 60))),
        POINT_RULES[3]: ("trajectories", lambda t: put(t, "lon", [90], lambda lon: lon + 1.0)),
        POINT_RULES[4]: ("trajectories", lambda t: put(t, "speed_mps", [moving(t)], lambda v: 2.0 * v)),
        POINT_RULES[6]: ("trajectories", lambda t: put(t, "tick", [120], lambda _: 91)),
        STEP_RULES[0]: ("trajectories", lambda t: t.filter(pc.not_equal(t["tick"], 40))),
        STEP_RULES[1]: ("trajectories", lambda t: put(t, "lat", [700], lambda lat: lat + 1e-3)),
        "restrictions: edge_id_to is in roads": (
            "restrictions",
            lambda t: pa.table({"edge_id_from": [0], "edge_id_to": [10**9]}, schema=t.schema),
        ),
        "subscriptions: device_id is in devices": (
            "subscriptions",
            lambda t: put(t, "device_id", [0], lambda _: "nobody"),
        ),
        "places: within the area": ("places", lambda t: put(t, "lon", [0], lambda _: 0.0)),
        "objects: within the area": ("objects", lambda t: put(t, "lon", [0], lambda _: 0.0)),
        "objects: published within the run": (
            "objects",
            lambda t: put(t, "publish_ms", [9], lambda _: 10**9),
        ),
        "objects: ttl_ms above 0, and not retracted before publication": (
            "objects",
            lambda t: put(t, "retract_ms", [8], lambda _: -1),
        ),
        "idf: as many objects as have the keyword": (
            "idf",
            lambda t: put(t.slice(1), "objects", [4], lambda _: 0),
        ),
    },
    {
        POINT_RULES[5]: ("devices", lambda t: put(t, "speed_mps_max", range(23), lambda _: 1.0)),
        "devices: device_id is unique": ("devices", lambda t: pa.concat_tables([t, t.slice(0, 1)])),
        "devices: each has a position": (
            "trajectories",
            lambda t: t.filter(pc.not_equal(t["device_id"], "device-000003")),
        ),
        "roads: edge_id is unique": ("roads", lambda t: pa.concat_tables([t, t.slice(0, 1)])),
        "roads: length and speed above 0": ("roads", lambda t: put(t, "speed_mps", [3], lambda _: 0.0)),
        POINT_RULES[1]: ("trajectories", lambda t: put(t, "edge_id", range(9), lambda _: None)),
        POINT_RULES[7]: (
            "roads",
            lambda t: put(t, "road_class", range(len(t)), lambda _: "footway"),
        ),
        "places: place_id is unique": ("places", lambda t: pa.concat_tables([t, t.slice(0, 1)])),
        "objects: object_key and publish_ms are unique": (
            "objects",
            lambda t: pa.concat_tables([t, t.slice(3, 1)]),
        ),
        "subscriptions: device_id and subscription_id are unique": (
            "subscriptions",
            lambda t: pa.concat_tables([t, t.slice(len(t) - 1)]),
        ),
    },
]


def first_with(table, column):
    """The first row in which the column is not null."""
    return table[column].is_valid().index(True).as_py()


def far_from(table, row):
    """An edge that somebody else is on."""
    here = table["edge_id"][row].as_py()
    return next(one for one in table["edge_id"].to_pylist() if abs(one - here) > 50)


@pytest.mark.parametrize("faults", PLANTED)
def test_faults_that_are_planted_are_found(folder, spark, faults):
    for name, change in faults.values():
        rewritten(folder, name, change)
    assert broken(folder, spark).keys() >= faults.keys()


# A value for the first row that has one.
REFUSED = {
    "keywords": [],
    "k": -5,
    "alpha": 7.0,
    "similarity": "none",
    "expression": "tea AND (",
    "bounds": [179.0, 10.0, 181.0, 11.0],
    "center": [14.0, 91.0],
    "radius_m": -1.0,
    "extent_m": [1e6, 10.0],
    "window_ms": -1,
    "window_count": 10**12,
}


@pytest.mark.slow
def test_every_subscription_that_a_server_would_refuse_is_found(folder, spark):
    def change(table):
        taken = set()
        for name, value in REFUSED.items():
            values = table[name].to_pylist()
            row = next(i for i, one in enumerate(values) if one is not None and i not in taken)
            taken.add(row)
            table = put(table, name, [row], lambda _, value=value: value)
        return table

    rewritten(folder, "subscriptions", change)
    assert broken(folder, spark) == {"subscriptions: a server accepts them": len(REFUSED)}


@pytest.mark.slow
def test_rows_that_are_gone_are_missed(folder, spark):
    mark = folder / "stages" / "objects.json"
    mark.write_text(json.dumps(json.loads(mark.read_text()) | {"rows": 1}))
    (folder / "stages" / "idf.json").unlink()
    assert broken(folder, spark) == {
        "objects: as many rows as its stage wrote": 1,
        "idf: as many rows as its stage wrote": 1,
    }


@pytest.mark.slow
def test_a_turn_that_is_not_allowed_is_found(folder, simulation, spark):
    """Every turn that somebody makes within one step is forbidden afterwards."""
    table = simulation.trajectories.sort_by([("device_id", "ascending"), ("tick", "ascending")])
    edges, devices = table["edge_id"].to_numpy(), table["device_id"].to_numpy()
    speeds = table["speed_mps"].to_numpy()
    roads = {row["edge_id"]: row for row in simulation.roads.to_pylist()}
    turns = {
        (int(a), int(b))
        for a, b, one, other, v, w in zip(
            edges[:-1], edges[1:], devices[:-1], devices[1:], speeds[:-1], speeds[1:], strict=True
        )
        if one == other and a != b and roads[a]["target"] == roads[b]["source"] and v > 0.0 and w > 0.0
    }
    assert turns
    rows = np.array(sorted(turns))
    rewritten(
        folder,
        "restrictions",
        lambda t: pa.table({"edge_id_from": rows[:, 0], "edge_id_to": rows[:, 1]}, schema=t.schema),
    )
    found = broken(folder, spark)
    assert found.keys() == {STEP_RULES[2]}
    assert found[STEP_RULES[2]] >= len(turns)


def test_the_command_prints_broken_rules(folder, monkeypatch, spark):
    from contextlib import nullcontext  # noqa: PLC0415

    monkeypatch.setattr("simulator.session.simulator_session", lambda *_: nullcontext(spark))
    rewritten(folder, "places", lambda t: put(t, "lon", [0], lambda _: 0.0))
    result = CliRunner().invoke(app, ["simulate", "check", str(folder)])
    assert result.exit_code == 1
    assert "1 broken" in result.output
    (folder / "world.json").unlink()
    result = CliRunner().invoke(app, ["simulate", "check", str(folder)])
    assert result.exit_code == 1
    assert "world.json is missing" in result.output


def test_damaged_data_is_an_error_that_names_the_table(folder, monkeypatch, spark):
    """Footers are intact, so the damage is found only when rows are read."""
    from contextlib import nullcontext  # noqa: PLC0415

    monkeypatch.setattr("simulator.session.simulator_session", lambda *_: nullcontext(spark))
    for name in ("roads", "trajectories"):
        for path in (folder / name).rglob("*.parquet"):
            content = path.read_bytes()
            path.write_bytes(content[:4] + bytes(200) + content[204:])
    for command, name, *more in (
        ("check", "roads"),
        ("describe", "trajectories"),
        ("export", "roads", "--table=roads"),
    ):
        result = CliRunner().invoke(app, ["simulate", command, str(folder), *more])
        assert result.exit_code == 1
        assert f"Error: the table {name} in {folder} cannot be read: " in result.output, result.output


def judged_batch(rows):
    """Judged points on a line, one a (device, tick, x)."""
    count = len(rows)
    devices, ticks, xs = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.RecordBatch.from_pydict(
        {
            "device_id": pa.array([f"d{one}" for one in devices], pa.string()),
            "tick": pa.array(ticks, pa.int32()),
            "x_m": pa.array(xs, pa.float64()),
            "y_m": pa.array([0.0] * count, pa.float64()),
            "speed_mps_max": pa.array([10.0 if one else None for one in devices], pa.float64()),
            "edge_id": pa.array([None] * count, pa.int64()),
            "before_s": pa.array([None] * count, pa.float64()),
            "after_s": pa.array([None] * count, pa.float64()),
            "faults": pa.array([one % 4 for one in ticks], pa.int32()),
        }
    )


@settings(max_examples=8, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, LENGTH), st.sampled_from([0.0, 5.0, 12.0, 30.0])),
        max_size=24,
    )
)
def test_steps_of_runs_are_those_of_sorted_rows(spark, rows):
    """Whatever the order of the rows, and however they are divided: as plain Python counts."""
    turns = Turns(np.empty(0, np.int64), np.empty(0, np.int64))
    batch = judged_batch(rows)
    inside = runs_of(batch, 1.0, turns)
    assert inside.schema.names == RUNS.names
    assert sum(inside.column("row_count").to_pylist()) == len(rows)
    assert sum(inside.column("point_0").to_pylist()) == sum(tick % 2 for _, tick, _ in rows)
    if len({(device, tick) for device, tick, _ in rows}) < len(rows):
        return  # of rows that are there twice any may be the next
    points = spark.createDataFrame(pa.Table.from_batches([batch])).repartition(2)
    parts = runs(points, 1.0, turns).persist()
    found = joints(parts, 1.0, turns).toArrow()
    far = sum(parts.toArrow()["step_1"].to_pylist()) + sum(found["step_1"].to_pylist())
    parts.unpersist()
    gaps = sum(found["step_0"].to_pylist())
    ordered = sorted(rows)
    pairs = [pair for pair in pairwise(ordered) if pair[0][0] == pair[1][0]]
    assert gaps == sum(b[1] - a[1] != 1 for a, b in pairs)
    assert far == sum(b[1] - a[1] == 1 and bool(a[0]) and abs(b[2] - a[2]) > 10.01 for a, b in pairs)


@settings(deadline=None)
@given(
    banned=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12),
    queries=st.lists(st.tuples(st.integers(-1, 10), st.integers(-1, 10)), max_size=12),
)
def test_turns_are_found_as_in_a_set(banned, queries):
    columns = np.array(banned, np.int64).reshape(-1, 2)
    wanted = np.array(queries, np.int64).reshape(-1, 2)
    found = Turns(columns[:, 0], columns[:, 1]).are_banned(wanted[:, 0], wanted[:, 1])
    assert found.tolist() == [one in set(banned) for one in queries]
