"""A simulation in a folder: the only module that makes, writes and reads it.

`simulate` generates a city or reads a map, makes Spark drive the devices and draw the workload, and
writes a folder of Parquet files per table, stage by stage, plus `world.json`, which is written last: a
folder without it is not complete. Complete stages are not repeated. `load` opens it, and reads each table
on first use.

The folder is a local path, or lies on any file system that Spark has, by its URI (`root_of`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from feeds.cluster import is_local
from feeds.hosts.preflight import check_hosts
from feeds.redis import RedisAddress
from feeds.storage import Stored, Where
from safe_region.scoring.idf import IdfTable
from simulator import schemas
from simulator.city import generate_city
from simulator.errors import SimulationError
from simulator.files import Root, files_at
from simulator.maps import read_map, read_texts
from simulator.parameters import SimulationParameters
from simulator.run import STAGES, Progress, Run, require_own_folder, write_terrain
from simulator.session import SparkStart, session_of
from simulator.stages import Stages
from simulator.tables import check_table, read_table
from simulator.terrain import Terrain
from simulator.workload.feeds import append_feeds
from simulator.world import VERSION, WORLD_FILE, World, read_world, write_world

_ALONE = SparkStart()

__all__ = ["VERSION", "Simulation", "SimulationError", "World", "load", "root_of", "simulate"]


@dataclass(frozen=True)
class Simulation:
    """A simulation as Arrow tables, which are read on first use; `schemas` names their columns.

    Parameters
    ----------
    path
        Its location. Tables at a URI can be read while the session of `root_of` exists.
    world
        Its `world.json`.
    rows
        The number of rows of each of `schemas.TABLES`.
    """

    path: Root
    world: World
    rows: Mapping[str, int]

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
        """The whole table of this name, by (tick, device_id): for runs that fit into memory."""
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
        """Return the number of rows of a table, without reading them."""
        return self.rows[name]

    def idf_table(self) -> IdfTable:
        """Return the weights of keywords, by the number of objects that have each."""
        words, counts = (self.idf.column(name).to_pylist() for name in ("keyword", "objects"))
        return IdfTable.of_counts(self.row_count("objects"), dict(zip(words, counts, strict=True)))


def simulate(
    parameters: SimulationParameters,
    out_dir: Where,
    progress: Progress | None = None,
    *,
    spark: SparkSession | SparkStart = _ALONE,
    partitions: int | None = None,
    feed_slice_s: int = 0,
    append_to: RedisAddress | None = None,
) -> Simulation:
    """Make a simulation and write it to a folder.

    Parameters
    ----------
    parameters
        The parameters. Equal parameters give equal tables.
    out_dir
        The folder, a path or the URI of a file system that Spark has; existing tables are replaced, or
        kept if they are identical; other files are left alone.
    progress
        Called as progress(stage, done, total); a total of 0 is not known yet.
    spark
        A session to use, or how to start one, which is stopped at the end; by default on this machine.
    partitions
        The number of tasks; no influence on the result.
    feed_slice_s
        If above 0, the feeds are also written (`simulator.workload.feeds`), with this many seconds in a
        file.
    append_to
        The feeds in Redis to which the feeds are also appended.

    Raises
    ------
    MapError
        If the map cannot be used; nothing has been written or removed then.
    JavaNotFoundError, ClusterError
        If Spark has to be started and there is no Java, or a cluster fails a check.
    StageError
        If a table cannot be written; those before it are kept, and there is no `world.json`. Or if the
        folder has a folder with a table's name that no simulation has written, or one with a file that
        the parameters name: nothing has been written or removed then.
    StorageError
        If there is no such file system, or an operation on it fails.
    """
    report = progress or (lambda _stage, _done, _total: None)
    if isinstance(out_dir, Path):
        require_own_folder(out_dir, parameters.input_files)
    terrain = _terrain(parameters, report)
    with ExitStack() as stack:
        report("spark", 0, 1)
        session = stack.enter_context(session_of(spark))
        root = root_of(out_dir, session)
        require_own_folder(root, parameters.input_files)
        require_hosts(session, out_dir)
        report("spark", 1, 1)
        stages = Stages(root)
        files_at(root / WORLD_FILE).remove()
        write_terrain(stages, terrain)
        run = Run(session, terrain, parameters, partitions, root, stages, report)
        run.movement()
        run.workload()
        if feed_slice_s:
            run.feeds(feed_slice_s)
        if append_to is not None:
            append_feeds(root, session, append_to, report)
        stages.remove_others(STAGES)
        write_world(_world(parameters, terrain), root)
        return load(root)


def require_hosts(spark: SparkSession, out_dir: Where) -> None:
    """Require that all hosts of a cluster can write to a simulation; nothing on this machine.

    Raises
    ------
    ClusterError
        If a host cannot.
    """
    if not is_local(str(spark.sparkContext.master)):
        # A URI is for Spark alone: the stage misses rows that were written elsewhere.
        check_hosts(spark, written=[out_dir.absolute()] if isinstance(out_dir, Path) else [])


def root_of(where: Where, spark: SparkSession) -> Root:
    """Return the location of a simulation: a path unchanged, a URI through the session.

    Raises
    ------
    StorageError
        If the session has no such file system.
    """
    return where if isinstance(where, Path) else Stored(spark, where, is_shared=True)


def load(path: Root) -> Simulation:
    """Open a simulation.

    Parameters
    ----------
    path
        The folder that `simulate` wrote: its path, or the result of `root_of` for its URI.

    Raises
    ------
    SimulationError
        If the folder, `world.json` or a table is missing, or a table has other columns.
    """
    if not files_at(path).is_folder():
        raise SimulationError(f"{path} is not a folder")
    world = read_world(path)
    return Simulation(path, world, {name: check_table(path, name) for name in schemas.TABLES})


def _terrain(parameters: SimulationParameters, report: Progress) -> Terrain:
    if parameters.map_file is not None:
        return read_map(parameters.map_file, parameters, report)
    report("city", 0, 1)
    city = generate_city(parameters)
    if parameters.texts_file is not None:
        city = city._replace(texts=read_texts(parameters.texts_file, city.area, parameters.seed))
    report("city", 1, 1)
    return city


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
