"""Makes a simulation from traces, as `simulator.simulation` makes one from a map."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from feeds.storage import Where
from simulator.maps import read_map
from simulator.parameters import SimulationParameters
from simulator.parameters.places import PlaceParameters
from simulator.parameters.traces import TraceParameters
from simulator.run import Progress, require_own_folder
from simulator.session import SparkStart, session_of
from simulator.simulation import require_hosts, root_of
from simulator.stages import UNREADABLE, reason_of
from simulator.terrain import Terrain
from simulator.traces.errors import TraceError
from simulator.traces.reading import SETTINGS, check_files, damage_of, unused_columns
from simulator.traces.trace_run import TraceReport, TraceRun

TASKS_PER_CORE = 2

_ALONE = SparkStart()

_TRACE_ERROR = re.compile(r"simulator\.traces\.errors\.TraceError: (.*)")
"""The message of a worker, in the error that Spark makes of it."""
_FILE = re.compile(r"while reading file (.+?)\.\s+SQLSTATE")


def simulate_traces(
    paths: Sequence[Path],
    parameters: TraceParameters,
    out_dir: Where,
    progress: Progress | None = None,
    *,
    spark: SparkSession | SparkStart = _ALONE,
    partitions: int | None = None,
) -> TraceReport:
    """Make a simulation from files of traces and write it to a folder.

    Parameters
    ----------
    paths
        GPX, CSV and Parquet files.
    parameters
        The parameters. Equal parameters and files give equal tables.
    out_dir
        The folder, a path or the URI of a file system that Spark has; existing tables are replaced, or
        kept if they are identical.
    progress
        Called as progress(stage, done, total).
    spark
        A session to use, or how to start one, which is stopped at the end; by default on this machine.
    partitions
        The number of tasks; no influence on the result.

    Raises
    ------
    TraceError
        If files cannot be used, or nothing is left of them.
    MapError
        If the map or the texts cannot be used.
    JavaNotFoundError, ClusterError
        If Spark has to be started and there is no Java, or a cluster fails a check.
    StageError
        If a table cannot be written; those before it are kept, and there is no `world.json`. Or if the
        folder has a folder with a table's name that no simulation has written, or one with a file that
        would be read: nothing has been written or removed then.
    StorageError
        If there is no such file system, or an operation on it fails.
    """
    report = progress or (lambda _stage, _done, _total: None)
    check_files(paths)
    unused_columns(paths, parameters)  # raises errors of the files before Spark starts
    inputs = [*paths, *parameters.input_files]
    if isinstance(out_dir, Path):
        require_own_folder(out_dir, inputs)
    terrain = None if parameters.map_file is None else _map(parameters.map_file, parameters, report)
    with ExitStack() as stack:
        report("spark", 0, 1)
        session = stack.enter_context(session_of(spark))
        require_hosts(session, out_dir)
        report("spark", 1, 1)
        stack.enter_context(_set(session))
        stack.enter_context(_named(paths))
        tasks = partitions or TASKS_PER_CORE * session.sparkContext.defaultParallelism
        root = root_of(out_dir, session)
        require_own_folder(root, inputs)
        run = TraceRun(session, list(paths), parameters, root, report, tasks)
        return run.made(terrain)


def _map(path: Path, parameters: TraceParameters, report: Progress) -> Terrain:
    """Read a map; its shares of device classes do not count."""
    given = {name: getattr(parameters, name) for name in PlaceParameters.model_fields}
    shares = {f"{mode}_share": float(mode == parameters.mode) for mode in ("car", "bicycle")}
    return read_map(path, SimulationParameters(**given, **shares), report)


@contextmanager
def _set(spark: SparkSession) -> Iterator[None]:
    """Give a session the settings that reading requires, for a while."""
    before = {name: str(spark.conf.get(name)) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@contextmanager
def _named(paths: Sequence[Path]) -> Iterator[None]:
    """Convert errors of Spark to one that names the file that workers could not read."""
    try:
        yield
    except UNREADABLE as error:
        message = str(error)
        found = _TRACE_ERROR.search(message)
        if found is not None:
            raise TraceError(found[1].strip()) from None
        damage = damage_of(paths)
        if damage is not None:
            raise TraceError(damage) from None
        names = _FILE.findall(message)[:1] or [str(path) for path in paths]
        raise TraceError(f"{', '.join(names)} cannot be read: {reason_of(error)}") from error
