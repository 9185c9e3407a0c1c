"""The stages of one run over traces.

Stages: `points` (the points and their verdicts), `traces` (the pieces that become devices), `devices`,
`trajectories`, then the workload. A complete stage is not repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nearcast.version import installed_version
from safe_region.earth.frame import Area, Frame
from simulator import schemas
from simulator.files import Root, files_at
from simulator.maps import read_texts
from simulator.network.graph import Graph
from simulator.network.traffic import TRACE_CLASS
from simulator.parameters import SimulationParameters
from simulator.parameters.movement import DEVICES_MAX, SLICE_ROWS
from simulator.parameters.traces import START, TraceOptions, TraceParameters
from simulator.run import STAGES, Progress, Run, write_terrain
from simulator.simulation import Simulation, load
from simulator.stages import Stages
from simulator.tables import write_rows, write_slices, write_sorted
from simulator.terrain import Terrain, Texts
from simulator.traces.cleaning import cleaned
from simulator.traces.errors import TraceError
from simulator.traces.matching.matcher import Matcher
from simulator.traces.pieces import PIECES, pieces_of
from simulator.traces.points import POINTS, Verdict
from simulator.traces.reading import read_points, source_name
from simulator.traces.sampling import sampled
from simulator.traces.surroundings import bare_terrain, checked_area, survey
from simulator.world import WORLD_FILE, World, write_world

_STEP_MS_MIN, _STEP_MS_MAX = 100, 3_600_000
_SECOND_MS = 1_000
_ARRIVALS_MAX = 10_000_000
"""The maximum number of arrivals, unless the rate is given: that of the objects alive at the start."""


@dataclass(frozen=True, slots=True)
class TraceReport:
    """The outcome of a run over traces.

    Parameters
    ----------
    simulation
        The simulation.
    points
        The number of points that were read.
    verdicts
        The number of points by verdict, in words.
    devices, positions, on_roads
        Their numbers; `on_roads` is the number of positions on a road.
    short
        The number of pieces that were too short for two ticks.
    seconds
        The time for reading, cleaning, sampling and matching, without the start of Spark.
    """

    simulation: Simulation
    points: int
    verdicts: dict[str, int]
    devices: int
    positions: int
    on_roads: int
    short: int
    seconds: float


class TraceRun:
    """The stages of one run."""

    def __init__(
        self,
        spark: SparkSession,
        paths: list[Path],
        parameters: TraceParameters,
        root: Root,
        report: Progress,
        tasks: int,
    ) -> None:
        self._spark = spark
        self._paths = paths
        self._parameters = parameters
        self._root = root
        self._report = report
        self._tasks = tasks
        self._sources = [[path.name, _digest(path)] for path in paths]

    def made(self, terrain: Terrain | None) -> TraceReport:
        """Run all stages; `terrain` is that of a map, or None."""
        self._report("read", 0, 1)
        raw = read_points(self._spark, self._paths, self._parameters)
        found_area = checked_area(survey(raw, self._parameters), self._paths, self._parameters)
        area = found_area if terrain is None else terrain.area
        texts = self._texts(area) if terrain is None else terrain.texts
        self._report("read", 1, 1)
        # The files have been checked now, and nothing has been removed.
        stages = Stages(self._root)
        files_at(self._root / WORLD_FILE).remove()
        self._points(stages, raw, area)
        points = self._read("points", POINTS)
        verdicts = self._verdicts(points, area)
        clock = self._clock(points)
        devices, short = self._pieces(stages, points, verdicts, clock)
        if terrain is None:
            terrain = bare_terrain(points, area, self._parameters, source_name(self._paths[0]), texts)
        write_terrain(stages, terrain)
        world = self._world(terrain, clock)
        self._require_arrivals(world)
        on_roads = self._movement(stages, points, terrain, world)
        Run(
            self._spark,
            terrain,
            _as_simulated(self._parameters, world, devices),
            self._tasks,
            self._root,
            stages,
            self._report,
        ).workload()
        stages.remove_others(STAGES)
        write_world(world, self._root)
        ours = ("points", "traces", "devices", "trajectories")
        return TraceReport(
            load(self._root),
            stages.done["points"].rows,
            verdicts,
            devices,
            stages.done["trajectories"].rows,
            on_roads,
            short,
            sum(stages.done[name].seconds for name in ours),
        )

    def _texts(self, area: Area) -> Texts | None:
        """Read the file of texts, if there is one."""
        path = self._parameters.texts_file
        return None if path is None else read_texts(path, area, self._parameters.seed)

    def _points(self, stages: Stages, raw: DataFrame, area: Area) -> None:
        options = {name: getattr(self._parameters, name) for name in TraceOptions.model_fields}
        used = (
            "columns",
            "area",
            "by",
            "gap_s",
            "speed_mps_max",
            "points_min",
            "begin",
            "end",
            "polyline_step_s",
        )
        key = self._key({name: options[name] for name in used}) | {
            "sources": self._sources,
            "area": area._asdict(),
        }

        def write(folder: Root) -> int:
            return write_rows(cleaned(raw, area, self._parameters, self._tasks), folder)

        self._report("clean", 0, 1)
        stages.run("points", key, write)
        self._report("clean", 1, 1)

    def _verdicts(self, points: DataFrame, area: Area) -> dict[str, int]:
        """Count points by verdict; pieces are counted by their first points."""
        found = points.groupBy("verdict").count().collect()
        counts = {Verdict(row["verdict"]).text: row["count"] for row in found}
        known = {one.text: counts[one.text] for one in Verdict if one.text in counts}
        if Verdict.KEPT.text not in known:
            listed = ", ".join(f"{count} {text}" for text, count in known.items())
            where = f"; the map's area is {tuple(area)}" if Verdict.OUTSIDE.text in known else ""
            raise TraceError(f"{_shown(self._paths)}: no points are left: {listed}{where}")
        return known

    def _clock(self, points: DataFrame) -> tuple[int, int]:
        """Return the period, and the time of tick 0."""
        kept = points.where(F.col("verdict") == Verdict.KEPT.value)
        row = kept.agg(
            F.min("t_ms").alias("begin_ms"), F.percentile("step_ms", 0.5).alias("step_ms")
        ).first()
        assert row is not None  # noqa: S101 - there are points
        period_ms = self._parameters.period_ms or usual_period_ms(row["step_ms"])
        return period_ms, row["begin_ms"] // period_ms * period_ms

    def _pieces(
        self, stages: Stages, points: DataFrame, verdicts: dict[str, int], clock: tuple[int, int]
    ) -> tuple[int, int]:
        """Make the pieces that become devices; return the numbers of devices and of too short pieces."""
        period_ms, origin_ms = clock
        align = self._parameters.align
        key = self._key({"align": align, "period_ms": period_ms, "origin_ms": origin_ms})
        key |= {"points": stages.done["points"].key}

        def write(folder: Root) -> int:
            pieces = pieces_of(points, period_ms, None if align == START else origin_ms)
            return write_rows(pieces, folder)

        devices = stages.run("traces", key, write).rows
        firsts = (F.col("verdict") == Verdict.KEPT.value) & F.col("step_ms").isNull()
        short = points.where(firsts).count() - devices
        if not devices:
            raise TraceError(
                f"{_shown(self._paths)}: none of {short} traces has two ticks of {period_ms} ms; "
                f"{verdicts[Verdict.KEPT.text]} points were kept"
            )
        if devices > DEVICES_MAX:
            raise TraceError(
                f"{_shown(self._paths)}: {devices} traces, must be at most {DEVICES_MAX}: set begin and "
                "end, or use vehicles as devices (--by vehicle)"
            )
        return devices, short

    def _world(self, terrain: Terrain, clock: tuple[int, int]) -> World:
        period_ms, origin_ms = clock
        row = (
            self._read("traces", PIECES)
            .agg(
                F.max(F.col("first_tick") + F.col("ticks")).alias("ticks"),
                F.sum("ticks").alias("rows"),
                F.min("begin_ms").alias("begin_ms"),
            )
            .first()
        )
        assert row is not None  # noqa: S101 - there are devices
        # A run has whole seconds and whole periods.
        seconds_step = period_ms // gcd(period_ms, 1000)
        run_ms = max(1, row["ticks"] - 1) * period_ms
        seconds = -(-run_ms // (1000 * seconds_step)) * seconds_step
        return World(
            name=terrain.name,
            area=terrain.area,
            seed=self._parameters.seed,
            seconds=seconds,
            period_ms=period_ms,
            start_ms=row["begin_ms"] if self._parameters.align == START else origin_ms,
            slice_ticks=max(1, SLICE_ROWS * row["ticks"] // row["rows"]),
            parameters=self._parameters.as_dict() | {"traces": [path.name for path in self._paths]},
            texts=None if terrain.texts is None else terrain.texts.counts(),
            water=terrain.water,
        )

    def _require_arrivals(self, world: World) -> None:
        """Refuse more objects than `_ARRIVALS_MAX` if no rate is given."""
        rate = self._parameters.arrivals_per_s
        count = rate * world.seconds
        if count <= _ARRIVALS_MAX or "arrivals_per_s" in self._parameters.model_fields_set:
            return
        raise TraceError(
            f"{_shown(self._paths)}: traces span {world.seconds / 86_400:,.1f} days, in which {rate:g} "
            f"arrivals a second are {count:,.0f} objects, must be at most {_ARRIVALS_MAX:,}: give "
            f"--arrivals-per-s {_ARRIVALS_MAX / world.seconds:.1g} or another rate, --align start, or "
            "--from and --to"
        )

    def _movement(self, stages: Stages, points: DataFrame, terrain: Terrain, world: World) -> int:
        """Make devices and trajectories; return the number of positions on a road."""
        parameters = self._parameters
        is_matched = parameters.match and terrain.roads.num_rows > 0
        used = ("match_radius_m", "match_sigma_m", "match_beta_m", "mode", "speed_mps_max")
        matching = {name: getattr(parameters, name) for name in used} if is_matched else {}
        pieces = self._read("traces", PIECES)
        key = self._key(matching) | {
            "traces": stages.done["traces"].key,
            "roads": [stages.done[name].key for name in ("roads", "restrictions") if is_matched],
            "slice_ticks": world.slice_ticks,
        }
        # Where a trace leaves the road it may be a little faster than its points.
        limit = F.lit(None if is_matched else parameters.speed_mps_max).cast("double")

        def write_devices(folder: Root) -> int:
            columns = (
                "device_id",
                F.lit(TRACE_CLASS).alias("device_class"),
                limit.alias("speed_mps_max"),
            )
            return write_sorted(pieces.select(*columns), "devices", folder)

        def write(folder: Root) -> int:
            frame = Frame.of(world.area)
            matcher = _matcher(terrain, frame, parameters) if is_matched else None
            found = sampled(points, pieces, frame, world.period_ms, matcher, self._tasks)
            return write_slices(found, world.slice_ticks, folder)

        stages.run("devices", key, write_devices)
        self._report("trajectories", 0, 1)
        stages.run("trajectories", key, write)
        self._report("trajectories", 1, 1)
        if not is_matched:
            return 0
        return self._read("trajectories", schemas.TRAJECTORIES).where("edge_id IS NOT NULL").count()

    def _key(self, parameters: dict[str, Any]) -> dict[str, Any]:
        return {"program": installed_version(), "parameters": parameters}

    def _read(self, name: str, schema: StructType) -> DataFrame:
        return self._spark.read.schema(schema).parquet(str(self._root / name))


def usual_period_ms(step_ms: float) -> int:
    """Return a period for points at this interval: whole seconds, below one second tenths of a second."""
    unit_ms = _SECOND_MS if step_ms >= _SECOND_MS else _STEP_MS_MIN
    return min(_STEP_MS_MAX, max(_STEP_MS_MIN, round(step_ms / unit_ms) * unit_ms))


def _matcher(terrain: Terrain, frame: Frame, options: TraceOptions) -> Matcher:
    try:
        return Matcher.of(Graph.of(terrain.roads, frame, terrain.restrictions), options)
    except ValueError:
        raise TraceError(f"{terrain.name} has no roads that are open to a {options.mode}") from None


def _as_simulated(parameters: TraceParameters, world: World, devices: int) -> SimulationParameters:
    """Return the parameters of the workload. Traces may last longer than a simulation."""
    given = {name: getattr(parameters, name) for name in TraceParameters.model_fields}
    found = {name: given[name] for name in SimulationParameters.model_fields.keys() & given.keys()}
    found |= {"devices": devices, "seconds": world.seconds, "period_ms": world.period_ms}
    return SimulationParameters.model_construct(**found, start_ms=world.start_ms)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _shown(paths: Sequence[Path]) -> str:
    return ", ".join(str(path) for path in paths)
