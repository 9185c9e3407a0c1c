"""A simulation in a folder: made, written and read here and nowhere else.

`simulate` generates a city or reads a map, lets Spark drive the devices and draw the workload, and
writes one sorted Parquet file per table plus `world.json`, which is written last: a folder without it
is not complete. `load` reads it back as Arrow tables.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from feeds.spark import SHUFFLE_PARTITIONS, spark_session
from safe_region.frame import Area, Frame
from safe_region.idf import IdfTable
from simulator import schemas
from simulator.city import generate_city
from simulator.maps import read_map, read_texts
from simulator.movement.destinations import Destinations
from simulator.movement.trajectories import trajectories
from simulator.network.graph import Graph
from simulator.parameters import SimulationParameters
from simulator.terrain import Terrain
from simulator.workload.feeds import FEEDS_FOLDER, write_feeds
from simulator.workload.objects import keyword_counts, object_count, objects, objects_of_texts
from simulator.workload.subscriptions import subscriptions

VERSION = 5
"""Of the layout of the folder."""

WORLD_FILE = "world.json"

Progress = Callable[[str, int, int], None]
"""Called as progress(stage, done, total); a total of 0 is not known yet."""

_SORT_KEYS = {
    "trajectories": ("tick", "device_id"),
    "objects": ("publish_ms", "object_key"),
    "subscriptions": ("device_id", "subscription_id"),
    "idf": ("keyword",),
}


class SimulationError(Exception):
    """A folder that does not hold a simulation; the message names what is wrong with it."""


@dataclass(frozen=True, slots=True)
class World:
    """What `world.json` says.

    Parameters
    ----------
    name
        Name of the city or the map.
    area
        The service area; everything lies in it.
    seed
        What the simulation was drawn from.
    seconds, period_ms
        Length of the run and time between ticks.
    start_ms
        Epoch milliseconds of tick 0.
    parameters
        All parameters by name, for the record.
    texts
        How many texts of a file are taken, lie outside of the area, give no keyword; None without one.
    water
        Outlines of lakes and sea for pictures: rings of (lon, lat); there may be none.
    """

    name: str
    area: Area
    seed: int
    seconds: int
    period_ms: int
    start_ms: int
    parameters: dict[str, Any]
    texts: dict[str, int] | None
    water: list[list[tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulation as Arrow tables; `schemas` names their columns."""

    path: Path
    world: World
    roads: pa.Table
    places: pa.Table
    trajectories: pa.Table
    objects: pa.Table
    subscriptions: pa.Table
    idf: pa.Table

    def idf_table(self) -> IdfTable:
        """Return what keywords weigh, by how many of the objects have each."""
        words, counts = (self.idf.column(name).to_pylist() for name in ("keyword", "objects"))
        return IdfTable.of_counts(self.objects.num_rows, dict(zip(words, counts, strict=True)))


def simulate(
    parameters: SimulationParameters,
    out_dir: Path,
    progress: Progress | None = None,
    *,
    spark: SparkSession | None = None,
    partitions: int | None = None,
    feed_slice_s: int = 0,
) -> Simulation:
    """Make a simulation and write it to a folder.

    Parameters
    ----------
    parameters
        What to make. Equal parameters give equal tables.
    out_dir
        Where to; tables that are there are replaced, other files are left alone.
    progress
        Called as progress(stage, done, total); a total of 0 is not known yet.
    spark
        A session to use; by default a local one is started and stopped.
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
    OSError
        If the folder cannot be written.
    """
    report = progress or (lambda _stage, _done, _total: None)
    terrain = _terrain(parameters, report)
    _clear(out_dir)
    with ExitStack() as stack:
        _write_table(terrain.roads, out_dir / "roads")
        _write_table(terrain.places, out_dir / "places")
        if terrain.texts is not None:
            _write_table(terrain.texts.table, out_dir / "texts")
        report("spark", 0, 1)
        session = spark or stack.enter_context(spark_session())
        report("spark", 1, 1)
        _write_frames(session, terrain, parameters, partitions, out_dir, report)
        if feed_slice_s:
            report("feeds", 0, 1)
            write_feeds(out_dir, parameters.start_ms, session, feed_slice_s)
            report("feeds", 1, 1)
    _write_world(parameters, terrain, out_dir)
    return load(out_dir)


def _terrain(parameters: SimulationParameters, report: Progress) -> Terrain:
    if parameters.map_file is not None:
        return read_map(parameters.map_file, parameters, report)
    report("city", 0, 1)
    city = generate_city(parameters)
    if parameters.texts_file is not None:
        city = city._replace(texts=read_texts(parameters.texts_file, city.area, parameters.seed))
    report("city", 1, 1)
    return city


def _write_frames(
    spark: SparkSession,
    terrain: Terrain,
    parameters: SimulationParameters,
    partitions: int | None,
    out_dir: Path,
    report: Progress,
) -> None:
    """Compute and write the tables that Spark makes."""

    def numbers(count: int) -> DataFrame:
        return spark.range(0, count, 1, partitions or SHUFFLE_PARTITIONS)

    report("trajectories", 0, 1)
    frame = Frame.of(terrain.area)
    graph = Graph.of(terrain.roads, frame)
    destinations = Destinations.of(graph, terrain.places)
    devices = numbers(parameters.devices)
    _write_frame(trajectories(devices, graph, destinations, parameters), "trajectories", out_dir)
    report("trajectories", 1, 1)
    report("workload", 0, 3)
    keys = numbers(object_count(parameters))
    if terrain.texts is None:
        place_frame = spark.read.schema(schemas.PLACES).parquet(str(out_dir / "places"))
        published = objects(place_frame, terrain.places.num_rows, keys, parameters)
    else:
        text_frame = spark.read.schema(schemas.TEXTS).parquet(str(out_dir / "texts"))
        published = objects_of_texts(text_frame, terrain.texts.table.num_rows, keys, parameters)
    _write_frame(published, "objects", out_dir)
    report("workload", 1, 3)
    written = spark.read.schema(schemas.OBJECTS).parquet(str(out_dir / "objects"))
    wanted = numbers(parameters.devices * parameters.subscriptions_per_device)
    _write_frame(subscriptions(written, wanted, frame, parameters), "subscriptions", out_dir)
    report("workload", 2, 3)
    _write_frame(keyword_counts(written), "idf", out_dir)
    report("workload", 3, 3)


def _clear(out_dir: Path) -> None:
    """Remove an earlier simulation, its mark of completeness first."""
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / WORLD_FILE).unlink(missing_ok=True)
    for name in (*schemas.TABLES, "texts", FEEDS_FOLDER):
        if (out_dir / name).exists():
            shutil.rmtree(out_dir / name)


def _write_table(table: pa.Table, folder: Path) -> None:
    folder.mkdir()
    pq.write_table(table, folder / "part-00000.parquet")


def _write_frame(frame: DataFrame, name: str, out_dir: Path) -> None:
    """Write one sorted file. One partition needs no sampling, which would compute it all twice."""
    whole = frame.repartition(1).sortWithinPartitions(*_SORT_KEYS[name])
    whole.write.parquet(str(out_dir / name))


def _write_world(parameters: SimulationParameters, terrain: Terrain, out_dir: Path) -> None:
    world = {
        "version": VERSION,
        "name": terrain.name,
        "area": terrain.area._asdict(),
        "seed": parameters.seed,
        "seconds": parameters.seconds,
        "period_ms": parameters.period_ms,
        "start_ms": parameters.start_ms,
        "parameters": parameters.as_dict(),
        "texts": None if terrain.texts is None else terrain.texts.counts(),
        "water": terrain.water,
    }
    # One line a key: people read it, and the water is long.
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in world.items()]
    (out_dir / WORLD_FILE).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def load(path: Path) -> Simulation:
    """Read a simulation.

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
    world = _read_world(path / WORLD_FILE)
    tables = {name: _read_table(path, name) for name in schemas.TABLES}
    return Simulation(path, world, **tables)


def _read_world(path: Path) -> World:
    try:
        found = json.loads(path.read_text())
        version = found["version"]
        if version != VERSION:
            raise SimulationError(f"{path} has version {version}, this program reads {VERSION}")
        return World(
            name=found["name"],
            area=Area(**found["area"]),
            seed=found["seed"],
            seconds=found["seconds"],
            period_ms=found["period_ms"],
            start_ms=found["start_ms"],
            parameters=found["parameters"],
            texts=found["texts"],
            water=[[(lon, lat) for lon, lat in ring] for ring in found.get("water", [])],
        )
    except FileNotFoundError:
        raise SimulationError(
            f"{path} is missing: not a simulation, or one that was not completed"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise SimulationError(f"{path} cannot be read: {error!r}") from None


def _read_table(path: Path, name: str) -> pa.Table:
    folder = path / name
    if not folder.is_dir():
        raise SimulationError(f"the table {name} is missing from {path}")
    try:
        table = pq.read_table(folder)
    except (OSError, pa.ArrowException) as error:
        raise SimulationError(f"the table {name} in {path} cannot be read: {error}") from None
    expected = schemas.arrow_schema(schemas.TABLES[name])
    for field in expected:
        if field.name not in table.column_names:
            raise SimulationError(f"the table {name} in {path} has no column {field.name}")
        column = table[field.name]
        if column.type != field.type:
            raise SimulationError(
                f"the column {name}.{field.name} in {path} is {column.type}, must be {field.type}"
            )
        if not field.nullable and column.null_count:
            raise SimulationError(f"the column {name}.{field.name} in {path} has nulls")
    return table.select(expected.names)
