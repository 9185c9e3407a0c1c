"""The stages of a simulation: the tables of a terrain, and the tables that Spark makes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from feeds.parameters import Parameters
from feeds.spark import SHUFFLE_PARTITIONS
from nearcast.version import installed_version
from safe_region.earth.frame import Frame
from simulator import schemas
from simulator.errors import StageError
from simulator.files import Root, files_at
from simulator.movement.streets import Streets
from simulator.movement.trajectories import devices, loads, trajectories
from simulator.parameters import SimulationParameters
from simulator.parameters.movement import MovementParameters
from simulator.parameters.workload import WorkloadParameters
from simulator.spark_progress import followed
from simulator.stages import STAGES_FOLDER, Stages, require_own
from simulator.tables import FILE_ROWS, read_table, write_slices, write_sorted, write_table
from simulator.terrain import Terrain
from simulator.workload.feeds import FEEDS_FOLDER, write_feeds
from simulator.workload.objects import (
    keyword_counts,
    object_count,
    objects,
    objects_of_texts,
    synthetic_objects,
)
from simulator.workload.subscriptions import subscriptions
from simulator.world import WORLD_FILE

_TASK_ROWS = 2_000_000
"""About the positions of a task: some seconds of work."""

STAGES = frozenset({*schemas.TABLES, *schemas.MORE_TABLES, *schemas.TRACE_TABLES, FEEDS_FOLDER})
"""The names of all stages of simulations. A run removes the tables of those that it does not have."""

Progress = Callable[[str, int, int], None]
"""Called as progress(stage, done, total); a total of 0 is not known yet."""


def require_own_folder(root: Root, inputs: Sequence[Path]) -> None:
    """Require that a run may replace what has the name of a table or of `world.json` in its folder.

    Parameters
    ----------
    root
        The folder of the simulation.
    inputs
        The files that the run reads.

    Raises
    ------
    StageError
        If no simulation has written it, or it contains an input.
    """
    require_own(root, STAGES, inputs)
    if files_at(root / WORLD_FILE).exists() and not files_at(root / STAGES_FOLDER).exists():
        raise StageError(
            f"out is {root}, must be another folder: no simulation has written its {WORLD_FILE}"
        )


def write_terrain(stages: Stages, terrain: Terrain) -> None:
    """Write the tables of a terrain."""
    tables = {"roads": terrain.roads, "places": terrain.places, "restrictions": terrain.restrictions}
    if terrain.restrictions is None:
        tables["restrictions"] = schemas.arrow_schema(schemas.RESTRICTIONS).empty_table()
    if terrain.texts is not None:
        tables["texts"] = terrain.texts.table
    for name, table in tables.items():

        def write(folder: Root, table: pa.Table = table) -> int:
            write_table(table, folder)
            return int(table.num_rows)

        stages.run(name, {"sha256": _digest(table)}, write)


def _digest(table: pa.Table) -> str:
    """Return a digest of the rows of a table."""
    found = hashlib.sha256()
    for batch in table.combine_chunks().to_batches():
        found.update(batch.serialize())
    return found.hexdigest()


class Run:
    """The stages that Spark makes."""

    def __init__(
        self,
        spark: SparkSession,
        terrain: Terrain,
        parameters: SimulationParameters,
        partitions: int | None,
        root: Root,
        stages: Stages,
        report: Progress,
    ) -> None:
        self._spark = spark
        self._terrain = terrain
        self._parameters = parameters
        self._partitions = partitions
        self._root = root
        self._stages = stages
        self._report = report
        self._frame = Frame.of(terrain.area)

    def movement(self) -> None:
        """Make devices and trajectories."""
        parameters = self._parameters
        key = self._key(MovementParameters, "roads", "places", "restrictions")
        rows = parameters.devices * parameters.tick_count
        numbers = self._numbers(parameters.devices, -(-rows // _TASK_ROWS))
        self._sorted("devices", key, lambda: devices(numbers, parameters), parameters.devices)

        streets = cache(lambda: Streets.of(self._terrain, parameters))
        if parameters.load_slot_s:
            with followed(self._spark, self._report, "loads", parameters.devices):
                self._sorted("loads", key, lambda: loads(numbers, streets(), parameters))

        def write(folder: Root) -> int:
            found = streets()
            if parameters.load_slot_s:
                found = found.loaded(parameters, read_table(self._root, "loads"))
            moved = trajectories(numbers, found, parameters)
            return write_slices(moved, parameters.ticks_of_slice, folder)

        with followed(self._spark, self._report, "trajectories", rows):
            self._stages.run("trajectories", key, write)

    def workload(self) -> None:
        """Make objects, subscriptions and the counts of keywords."""
        parameters, terrain = self._parameters, self._terrain
        self._report("workload", 0, 3)
        source = _object_source(parameters, terrain)
        tables = () if source == "synthetic" else (source,)
        of_run = {"run_s": parameters.seconds, "start_ms": parameters.start_ms}
        key = self._key(WorkloadParameters, *tables) | of_run | {"area": terrain.area._asdict()}

        def published() -> DataFrame:
            keys = self._numbers(object_count(parameters), object_count(parameters) // FILE_ROWS)
            if source == "synthetic":
                return synthetic_objects(keys, self._frame, parameters)
            if terrain.texts is None or source == "places":
                count = terrain.places.num_rows
                return objects(self._read("places"), count, keys, self._frame, parameters)
            text_frame = self._spark.read.schema(schemas.TEXTS).parquet(str(self._root / "texts"))
            count = terrain.texts.table.num_rows
            return objects_of_texts(text_frame, count, keys, self._frame, parameters)

        self._sorted("objects", key, published, object_count(parameters))
        self._report("workload", 1, 3)
        wanted_count = parameters.devices * parameters.subscriptions_per_device
        wanted = self._numbers(wanted_count, wanted_count // FILE_ROWS)
        of_all = key | {"devices": parameters.devices}
        self._sorted(
            "subscriptions",
            of_all,
            lambda: subscriptions(self._read("objects"), wanted, self._frame, parameters),
            wanted_count,
        )
        self._report("workload", 2, 3)
        self._sorted("idf", key, lambda: keyword_counts(self._read("objects")))
        self._report("workload", 3, 3)

    def feeds(self, slice_s: int) -> None:
        """Make the feeds."""
        start_ms = self._parameters.start_ms
        made_of = [self._stages.done[one].key for one in ("trajectories", "objects", "subscriptions")]

        def write(_folder: Root) -> int:
            return write_feeds(self._root, start_ms, self._spark, slice_s)

        self._report("feeds", 0, 1)
        key = {"made_of": made_of, "start_ms": start_ms, "slice_s": slice_s}
        self._stages.run(FEEDS_FOLDER, key, write)
        self._report("feeds", 1, 1)

    def _key(self, group: type[Parameters], *tables: str) -> dict[str, Any]:
        """Return the key of a table: the program, some parameters, and the tables it is made from."""
        given = self._parameters.as_dict()
        return {
            "program": installed_version(),
            "parameters": {name: given[name] for name in group.model_fields} | {"seed": given["seed"]},
            "tables": {name: self._stages.done[name].key for name in tables},
        }

    def _sorted(
        self, name: str, key: dict[str, Any], make: Callable[[], DataFrame], rows: int = 0
    ) -> None:
        """Make a sorted table of about `rows` rows."""

        def write(folder: Root) -> int:
            return write_sorted(make(), name, folder, rows)

        self._stages.run(name, key, write)

    def _read(self, name: str) -> DataFrame:
        return self._spark.read.schema(schemas.TABLES[name]).parquet(str(self._root / name))

    def _numbers(self, count: int, tasks: int = SHUFFLE_PARTITIONS) -> DataFrame:
        return self._spark.range(0, count, 1, self._partitions or max(SHUFFLE_PARTITIONS, tasks))


def _object_source(parameters: SimulationParameters, terrain: Terrain) -> str:
    return parameters.object_source or ("places" if terrain.texts is None else "texts")
