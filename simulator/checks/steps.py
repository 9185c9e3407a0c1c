"""Rules for two consecutive positions of a device, and runs of consecutive positions.

Rows of a device mostly lie one after the other in a file. Steps within a batch of rows are therefore
checked where they are read. Of each run only its two ends go through a shuffle, to be joined to the run
before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from simulator.checks.points import POINT_RULES
from simulator.schemas import arrow_schema

STEP_RULES = (
    "steps: ticks without gaps or duplicates",
    "steps: no farther than the device may go",
    "steps: allowed turns only",
)

_SLACK_M = 0.01
"""Positions are rounded, and so is the distance between them."""

_TURN_S = 1e-3
"""A direct turn takes the time of the two parts of roads before and after it, with at most this error."""

_END = (
    ("tick", IntegerType()),
    ("x_m", DoubleType()),
    ("y_m", DoubleType()),
    ("speed_mps_max", DoubleType()),
    ("edge_id", LongType()),
    ("before_s", DoubleType()),
    ("after_s", DoubleType()),
)
_COUNTS = (*(f"point_{bit}" for bit in range(len(POINT_RULES))), "step_1", "step_2")

RUNS = StructType(
    [
        StructField("device_id", StringType()),
        StructField("row_count", LongType()),
        *(StructField(f"{end}_{name}", kind) for end in ("first", "last") for name, kind in _END),
        *(StructField(name, LongType()) for name in _COUNTS),
    ]
)
"""Runs of positions of a device, tick after tick: their two ends, and the numbers of faults."""

FAULTS = StructType([StructField(name, LongType()) for name in ("step_0", "step_1", "step_2")])

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


class Ends(NamedTuple):
    """Positions at the same end of steps, as arrays; -1 is no edge, infinite no limit, nan no time."""

    x_m: Floats
    y_m: Floats
    speed_mps_max: Floats
    edge_id: Longs
    before_s: Floats
    after_s: Floats

    def at(self, rows: Longs) -> Ends:
        """Return the positions of some rows."""
        columns: Any = [column[rows] for column in self]
        return Ends(*columns)

    @classmethod
    def of(cls, batch: pa.RecordBatch, prefix: str = "") -> Ends:
        """Read positions from columns."""
        missing = {"edge_id": -1, "speed_mps_max": np.inf}

        def column(name: str) -> Any:  # noqa: ANN401 - doubles, of edges longs
            filled = batch.column(f"{prefix}{name}").fill_null(missing.get(name, np.nan))
            return filled.to_numpy(zero_copy_only=False)

        return cls._make(column(name) for name in cls._fields)


class Turns:
    """Forbidden turns.

    Parameters
    ----------
    froms, tos
        Edges that must not follow one another.
    """

    def __init__(self, froms: Longs, tos: Longs) -> None:
        self._froms, self._tos = np.unique(froms), np.unique(tos)
        self._keys = self._key(froms, tos)

    def are_banned(self, froms: Longs, tos: Longs) -> Bools:
        """Return the mask of the turns that are forbidden."""
        if not len(self._keys):
            return np.zeros(len(froms), np.bool_)
        is_known = np.isin(froms, self._froms) & np.isin(tos, self._tos)
        found = np.zeros(len(froms), np.bool_)
        found[is_known] = np.isin(self._key(froms[is_known], tos[is_known]), self._keys)
        return found

    def _key(self, froms: Longs, tos: Longs) -> Longs:
        rows = np.searchsorted(self._froms, froms).astype(np.int64)
        return rows * len(self._tos) + np.searchsorted(self._tos, tos)


def judged_steps(here: Ends, there: Ends, period_s: float, turns: Turns) -> tuple[Bools, Bools]:
    """Return the masks of steps of one period that go too far, and of those with a forbidden turn.

    A turn is certain if the remaining part of the road before and the covered part of the road after take
    exactly the time of the step: on a detour, less time would be left for them.
    """
    dx_m, dy_m = there.x_m - here.x_m, there.y_m - here.y_m
    goes_far = np.sqrt(dx_m * dx_m + dy_m * dy_m) > here.speed_mps_max * period_s + _SLACK_M
    is_direct = np.abs(here.after_s + there.before_s - period_s) < _TURN_S
    return goes_far, is_direct & turns.are_banned(here.edge_id, there.edge_id)


def runs_of(batch: pa.RecordBatch, period_s: float, turns: Turns) -> pa.RecordBatch:
    """Return the runs of a batch of checked points, in the schema `RUNS`."""
    schema = arrow_schema(RUNS)
    count = batch.num_rows
    if not count:
        return _empty(schema)
    ids = batch.column("device_id")
    ticks = batch.column("tick").to_numpy()
    is_same = pc.equal(ids.slice(1), ids.slice(0, count - 1)).to_numpy(zero_copy_only=False)
    follows = is_same & (np.diff(ticks) == 1)
    firsts = np.concatenate([[0], np.flatnonzero(~follows) + 1])
    lasts = np.concatenate([firsts[1:] - 1, [count - 1]])
    ends = Ends.of(batch)
    rows = np.flatnonzero(follows)
    steps = judged_steps(ends.at(rows), ends.at(rows + 1), period_s, turns)
    faults = batch.column("faults").to_numpy()
    points = [np.add.reduceat((faults >> bit) & 1, firsts) for bit in range(len(POINT_RULES))]
    owners = np.searchsorted(firsts, rows, side="right") - 1
    between = [np.bincount(owners[one], minlength=len(firsts)) for one in steps]
    columns = [ids.take(pa.array(firsts)), pa.array(lasts - firsts + 1)]
    columns += [batch.column(name).take(pa.array(at)) for at in (firsts, lasts) for name, _ in _END]
    columns += [pa.array(one.astype(np.int64)) for one in (*points, *between)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def runs(points: DataFrame, period_s: float, turns: Turns) -> DataFrame:
    """Return the runs of checked points (`judged_points`), in any order."""

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield runs_of(batch, period_s, turns)

    return points.mapInArrow(make, RUNS)


def joints(found: DataFrame, period_s: float, turns: Turns) -> DataFrame:
    """Return the faults between each run and the run before it of its device, in the schema `FAULTS`."""
    order = Window.partitionBy("device_id").orderBy("first_tick", "last_tick")
    names = [f"last_{name}" for name, _ in _END]
    pairs = found.select(
        "device_id",
        *(F.col(f"first_{name}").alias(f"there_{name}") for name, _ in _END),
        *(F.lag(name).over(order).alias(f"here_{name.removeprefix('last_')}") for name in names),
    ).where(F.col("here_tick").isNotNull())

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield judged_joints(batch, period_s, turns)

    return pairs.mapInArrow(check, FAULTS)


def judged_joints(batch: pa.RecordBatch, period_s: float, turns: Turns) -> pa.RecordBatch:
    """Count the pairs of run ends that are not a step, go too far, or make a forbidden turn."""
    ticks = [batch.column(f"{end}_tick").to_numpy() for end in ("here", "there")]
    is_step = ticks[1] - ticks[0] == 1
    goes_far, turns_badly = judged_steps(
        Ends.of(batch, "here_"), Ends.of(batch, "there_"), period_s, turns
    )
    counts = [~is_step, is_step & goes_far, is_step & turns_badly]
    columns = [pa.array([np.count_nonzero(one)], pa.int64()) for one in counts]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(FAULTS))
