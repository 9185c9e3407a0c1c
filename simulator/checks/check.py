"""The check of a simulation: for every rule, the number of rows checked and of violations."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from simulator import schemas
from simulator.checks.points import POINT_RULES, judged_points
from simulator.checks.references import reference_rules
from simulator.checks.steps import STEP_RULES, Turns, joints, runs
from simulator.files import Root, files_at
from simulator.simulation import Simulation
from simulator.stages import read_mark, row_count
from simulator.tables import reading

Progress = Callable[[str, int, int], None]


class Finding(NamedTuple):
    """The result of one rule.

    Parameters
    ----------
    rule
        The rule, in words.
    checked
        The number of rows or steps that were checked.
    violations
        The number of them that violate the rule.
    """

    rule: str
    checked: int
    violations: int


def check(simulation: Simulation, spark: SparkSession, progress: Progress | None = None) -> list[Finding]:
    """Check a simulation. One pass over its positions, and a shuffle of few of them.

    Parameters
    ----------
    simulation
        The simulation to check; its tables have their columns (`load`).
    spark
        The session.
    progress
        Called as progress(stage, done, total).

    Raises
    ------
    SimulationError
        If a table cannot be read.
    """
    with reading(simulation.path):
        return _findings(simulation, spark, progress)


def _findings(simulation: Simulation, spark: SparkSession, progress: Progress | None) -> list[Finding]:
    report = progress or (lambda _stage, _done, _total: None)
    path, world = simulation.path, simulation.world
    more = frozenset(name for name in schemas.MORE_TABLES if files_at(path / name).is_folder())

    def read(name: str) -> DataFrame:
        schema = (schemas.TABLES | schemas.MORE_TABLES)[name]
        if name == "trajectories":
            schema = StructType([*schema.fields, StructField("slice", IntegerType())])
        return spark.read.schema(schema).parquet(str(path / name))

    report("tables", 0, 1)
    found = _counts(path, more)
    for rule, broken in reference_rules(read, world, more):
        table = rule.split(":")[0]
        found.append(Finding(rule, row_count(path / table), broken.count()))
    report("tables", 1, 1)
    report("positions", 0, 1)
    found += _positions(simulation, read)
    report("positions", 1, 1)
    return found


def _counts(path: Root, more: frozenset[str]) -> list[Finding]:
    """Compare the number of rows of each table with the number recorded when it was made."""
    found = []
    of_traces = (name for name in schemas.TRACE_TABLES if files_at(path / name).is_folder())
    for name in (*schemas.TABLES, *sorted(more), *of_traces):
        with reading(path / name):
            rows, mark = row_count(path / name), read_mark(path, name)
        is_wrong = mark is None or mark.rows != rows
        found.append(Finding(f"{name}: as many rows as its stage wrote", rows, int(is_wrong)))
    return found


def _positions(simulation: Simulation, read: Callable[[str], DataFrame]) -> list[Finding]:
    world = simulation.world
    period_s = world.period_ms / 1000.0
    banned = simulation.restrictions
    turns = Turns(banned["edge_id_from"].to_numpy(), banned["edge_id_to"].to_numpy())
    points = judged_points(read("trajectories"), read("roads"), read("devices"), world)
    parts = runs(points, period_s, turns).persist()
    try:
        names = [f"point_{bit}" for bit in range(len(POINT_RULES))]
        sums = ["row_count", *names, "step_1", "step_2"]
        inside = _summed(parts, sums)
        outside = _summed(joints(parts, period_s, turns), ["step_0", "step_1", "step_2"])
        device_count = parts.select("device_id").distinct().count()
    finally:
        parts.unpersist()
    rows = inside["row_count"]
    found = [Finding(rule, rows, inside[name]) for rule, name in zip(POINT_RULES, names, strict=True)]
    steps = [inside.get(f"step_{i}", 0) + outside[f"step_{i}"] for i in range(len(STEP_RULES))]
    checked = rows - device_count
    found += [Finding(rule, checked, count) for rule, count in zip(STEP_RULES, steps, strict=True)]
    still = simulation.row_count("devices") - device_count
    found.append(Finding("devices: each has a position", simulation.row_count("devices"), max(0, still)))
    return found


def _summed(frame: DataFrame, names: list[str]) -> dict[str, int]:
    row = frame.agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names)).first()
    return {name: int(row[name]) for name in names} if row is not None else dict.fromkeys(names, 0)
