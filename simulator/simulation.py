"""A simulation in a folder: made, written and read here and nowhere else.

`simulate` generates a city or reads a map, lets Spark drive the devices and draw the workload, and
writes a folder of Parquet files per table, stage by stage, plus `world.json`, which is written last: a
folder without it is not complete. Stages that are complete are not repeated. `load` reads it back, a
table when it is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from feeds.spark import SHUFFLE_PARTITIONS
from safe_region.frame import Frame
from safe_region.idf import IdfTable
from simulator import schemas
from simulator.city import generate_city
from simulator.errors import SimulationError
from simulator.maps import read_map, read_texts
from simulator.movement.streets import Streets
from simulator.movement.trajectories import devices, loads, trajectories
from simulator.parameters import SimulationParameters
from simulator.parameters.declared import Parameters
from simulator.parameters.movement import MovementParameters
from simulator.parameters.workload import WorkloadParameters
from simulator.session import LOCAL, simulator_session
from simulator.spark_progress import followed
from simulator.stages import Stages, row_count
from simulator.tables import check_table, read_table, write_slices, write_sorted, write_table
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
from simulator.world import VERSION, WORLD_FILE, World, read_world, write_world

__all__ = ["VERSION", "Simulation", "SimulationError", "World", "load", "simulate"]

_TASK_ROWS = 2_000_000
"""About the positions of a task: some seconds of work."""

Progress = Callable[[str, int, int], None]
"""Called as progress(stage, done, total); a total of 0 is not known yet."""


@dataclass(frozen=True)
class Simulation:
    """A simulation as Arrow tables, read when they are asked for; `schemas` names their columns."""

    path: Path
    world: World

    @cached_property
    def roads(self) -> pa.Table:
        """The table of this name."""
        return read_table(self.path, "roads")

    @cached_property
    def restrictions(self) -> pa.Table:
        """The table of this name."""
        return read_table(self.path, "restrictions")

    @cached_property
    def places(self) -> pa.Table:
        """The table of this name."""
        return read_table(self.path, "places")

    @cached_property
    def devices(self) -> pa.Table:
        """The table of this name."""
        return read_table(self.path, "devices")

    @cached_property
    def trajectories(self) -> pa.Table:
        """All of the table of this name, by (tick, device_id): for runs that fit into memory."""
        return read_table(self.path, "trajectories")

    @cached_property
    def objects(self) -> pa.Table:
        """The table of this name."""
        return read_table(self.path, "objects")

    @cached_property
    def subscriptions(self) -> pa.Table:
        """The table of this name."""
        return read_table(self.path, "subscriptions")

    @cached_property
    def idf(self) -> pa.Table:
        """The table of this name."""
        return read_table(self.path, "idf")

    def slices(self) -> Iterator[pa.Table]:
        """Read the trajectories slice by slice, each by (tick, device_id); some may have no rows."""
        for number in range(self.world.slice_count):
            yield read_table(self.path, "trajectories", number)

    def row_count(self, name: str) -> int:
        """Return how many rows a table has, without reading them."""
        return row_count(self.path / name)

    def idf_table(self) -> IdfTable:
        """Return what keywords weigh, by how many of the objects have each."""
        words, counts = (self.idf.column(name).to_pylist() for name in ("keyword", "objects"))
        return IdfTable.of_counts(self.row_count("objects"), dict(zip(words, counts, strict=True)))


def simulate(
    parameters: SimulationParameters,
    out_dir: Path,
    progress: Progress | None = None,
    *,
    spark: SparkSession | None = None,
    master: str = LOCAL,
    partitions: int | None = None,
    feed_slice_s: int = 0,
) -> Simulation:
    """Make a simulation and write it to a folder.

    Parameters
    ----------
    parameters
        What to make. Equal parameters give equal tables.
    out_dir
        Where to; tables that are there are replaced, or kept where they are the very same; other files
        are left alone.
    progress
        Called as progress(stage, done, total); a total of 0 is not known yet.
    spark
        A session to use; by default one is started and stopped.
    master
        Where that one runs, Spark's master URL.
    partitions
        Into how many tasks the work is divided; no influence on the result.
    feed_slice_s
        Whether the feeds are written besides (`simulator.workload.feeds`), and how many seconds
        a file has; 0 for not.

    Raises
    ------
    MapError
        If the map cannot be used; nothing has been written or removed then.
    JavaNotFoundError
        If Spark has to be started and there is no Java.
    StageError
        If a table cannot be written; those before it are kept, and `world.json` is not there.
    """
    report = progress or (lambda _stage, _done, _total: None)
    terrain = _terrain(parameters, report)
    stages = Stages(out_dir)
    (out_dir / WORLD_FILE).unlink(missing_ok=True)
    with ExitStack() as stack:
        write_terrain(stages, terrain)
        report("spark", 0, 1)
        session = spark or stack.enter_context(simulator_session(master))
        report("spark", 1, 1)
        run = Run(session, terrain, parameters, partitions, out_dir, stages, report)
        run.movement()
        run.workload()
        if feed_slice_s:
            run.feeds(feed_slice_s)
    others = {*schemas.TABLES, *schemas.MORE_TABLES, *schemas.TRACE_TABLES, FEEDS_FOLDER}
    for name in others - stages.done.keys():
        stages.remove(name)
    write_world(_world(parameters, terrain), out_dir)
    return load(out_dir)


def load(path: Path) -> Simulation:
    """Open a simulation.

    Parameters
    ----------
    path
        The folder that `simulate` wrote.

    Raises
    ------
    SimulationError
        If the folder, `world.json` or a table is missing, or a table has other columns.
    """
    if not path.is_dir():
        raise SimulationError(f"{path} is not a folder")
    world = read_world(path)
    for name in schemas.TABLES:
        check_table(path, name)
    return Simulation(path, world)


def _terrain(parameters: SimulationParameters, report: Progress) -> Terrain:
    if parameters.map_file is not None:
        return read_map(parameters.map_file, parameters, report)
    report("city", 0, 1)
    city = generate_city(parameters)
    if parameters.texts_file is not None:
        city = city._replace(texts=read_texts(parameters.texts_file, city.area, parameters.seed))
    report("city", 1, 1)
    return city


def _object_source(parameters: SimulationParameters, terrain: Terrain) -> str:
    return parameters.object_source or ("places" if terrain.texts is None else "texts")


def write_terrain(stages: Stages, terrain: Terrain) -> None:
    """Write the tables that a terrain has."""
    tables = {"roads": terrain.roads, "places": terrain.places, "restrictions": terrain.restrictions}
    if terrain.restrictions is None:
        tables["restrictions"] = schemas.arrow_schema(schemas.RESTRICTIONS).empty_table()
    if terrain.texts is not None:
        tables["texts"] = terrain.texts.table
    for name, table in tables.items():

        def write(folder: Path, table: pa.Table = table) -> int:
            write_table(table, folder)
            return int(table.num_rows)

        stages.run(name, {"sha256": _digest(table)}, write)


def _digest(table: pa.Table) -> str:
    """Return a digest of the rows of a table."""
    found = hashlib.sha256()
    for batch in table.combine_chunks().to_batches():
        found.update(batch.serialize())
    return found.hexdigest()


def _world(parameters: SimulationParameters, terrain: Terrain) -> World:
    return World(
        name=terrain.name,
        area=terrain.area,
        seed=parameters.seed,
        seconds=parameters.seconds,
        period_ms=parameters.period_ms,
        start_ms=parameters.start_ms,
        slice_ticks=parameters.ticks_of_slice,
        parameters=parameters.as_dict(),
        texts=None if terrain.texts is None else terrain.texts.counts(),
        water=terrain.water,
    )


class Run:
    """The stages that Spark makes."""

    def __init__(
        self,
        spark: SparkSession,
        terrain: Terrain,
        parameters: SimulationParameters,
        partitions: int | None,
        out_dir: Path,
        stages: Stages,
        report: Progress,
    ) -> None:
        self._spark = spark
        self._terrain = terrain
        self._parameters = parameters
        self._partitions = partitions
        self._out_dir = out_dir
        self._stages = stages
        self._report = report
        self._frame = Frame.of(terrain.area)

    def movement(self) -> None:
        """Make devices and trajectories."""
        parameters = self._parameters
        key = self._key(MovementParameters, "roads", "places", "restrictions")
        rows = parameters.devices * parameters.tick_count
        numbers = self._numbers(parameters.devices, -(-rows // _TASK_ROWS))
        self._sorted("devices", key, lambda: devices(numbers, parameters))

        streets = cache(lambda: Streets.of(self._terrain, parameters))
        if parameters.load_slot_s:
            with followed(self._spark, self._report, "loads", parameters.devices):
                self._sorted("loads", key, lambda: loads(numbers, streets(), parameters))

        def write(folder: Path) -> int | None:
            found = streets()
            if parameters.load_slot_s:
                found = found.loaded(parameters, read_table(self._out_dir, "loads"))
            moved = trajectories(numbers, found, parameters)
            write_slices(moved, parameters.ticks_of_slice, folder)
            return None

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
            keys = self._numbers(object_count(parameters))
            if source == "synthetic":
                return synthetic_objects(keys, self._frame, parameters)
            if terrain.texts is None or source == "places":
                count = terrain.places.num_rows
                return objects(self._read("places"), count, keys, self._frame, parameters)
            text_frame = self._spark.read.schema(schemas.TEXTS).parquet(str(self._out_dir / "texts"))
            count = terrain.texts.table.num_rows
            return objects_of_texts(text_frame, count, keys, self._frame, parameters)

        self._sorted("objects", key, published)
        self._report("workload", 1, 3)
        wanted = self._numbers(parameters.devices * parameters.subscriptions_per_device)
        of_all = key | {"devices": parameters.devices}
        self._sorted(
            "subscriptions",
            of_all,
            lambda: subscriptions(self._read("objects"), wanted, self._frame, parameters),
        )
        self._report("workload", 2, 3)
        self._sorted("idf", key, lambda: keyword_counts(self._read("objects")))
        self._report("workload", 3, 3)

    def feeds(self, slice_s: int) -> None:
        """Make the feeds."""
        start_ms = self._parameters.start_ms
        made_of = [self._stages.done[one].key for one in ("trajectories", "objects", "subscriptions")]

        def write(folder: Path) -> int | None:
            write_feeds(folder.parent, start_ms, self._spark, slice_s)
            return None

        self._report("feeds", 0, 1)
        key = {"made_of": made_of, "start_ms": start_ms, "slice_s": slice_s}
        self._stages.run(FEEDS_FOLDER, key, write)
        self._report("feeds", 1, 1)

    def _key(self, group: type[Parameters], *tables: str) -> dict[str, Any]:
        """Return what determines a table: the program, some parameters, the tables it is made from."""
        given = self._parameters.as_dict()
        return {
            "program": version("nearcast"),
            "parameters": {name: given[name] for name in group.model_fields} | {"seed": given["seed"]},
            "tables": {name: self._stages.done[name].key for name in tables},
        }

    def _sorted(self, name: str, key: dict[str, Any], make: Callable[[], DataFrame]) -> None:
        def write(folder: Path) -> int | None:
            write_sorted(make(), name, folder)
            return None

        self._stages.run(name, key, write)

    def _read(self, name: str) -> DataFrame:
        return self._spark.read.schema(schemas.TABLES[name]).parquet(str(self._out_dir / name))

    def _numbers(self, count: int, tasks: int = SHUFFLE_PARTITIONS) -> DataFrame:
        return self._spark.range(0, count, 1, self._partitions or max(SHUFFLE_PARTITIONS, tasks))
