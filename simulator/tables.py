"""Tables of a simulation on disk: Parquet files in a folder each, written and read with their schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from simulator import schemas
from simulator.errors import SimulationError
from simulator.files import Root, files_at, parquet_files
from simulator.stages import UNREADABLE, reason_of

SORT_KEYS = {
    "roads": ("edge_id",),
    "restrictions": ("edge_id_from", "edge_id_to"),
    "places": ("place_id",),
    "devices": ("device_id",),
    "trajectories": ("tick", "device_id"),
    "loads": ("slot", "edge_id"),
    "objects": ("publish_ms", "object_key"),
    "subscriptions": ("device_id", "subscription_id"),
    "idf": ("keyword",),
}
"""The order of the rows of each table, on disk or after reading."""

FILE_ROWS = 1_000_000
"""About the rows of a file of a sorted table."""
SLICE_FILES_MAX = 256
"""Slices that a task writes at a time; if there are more, Spark sorts the rest of its rows by slice."""

_NAMES = "|".join((*schemas.TABLES, *schemas.MORE_TABLES, *schemas.TRACE_TABLES))
_FILE_OF_TABLE = re.compile(rf"/({_NAMES})/(?:slice=\d+/)?[^/\s]+\.parquet")

_WRITERS = "spark.sql.maxConcurrentOutputFileWriters"


def slice_name(number: int) -> str:
    """Return the folder of a slice of the trajectories."""
    return f"slice={number:05d}"


def write_table(table: pa.Table, folder: Root) -> None:
    """Write a table of this process: files of `FILE_ROWS`, in order."""
    files = files_at(folder)
    files.make_folder()
    for number, begin in enumerate(range(0, max(1, table.num_rows), FILE_ROWS)):
        sink = pa.BufferOutputStream()
        pq.write_table(table.slice(begin, FILE_ROWS), sink)
        (files / f"part-{number:05d}.parquet").replace(sink.getvalue().to_pybytes())


def write_sorted(frame: DataFrame, name: str, folder: Root, rows: int = 0) -> int:
    """Write sorted files, in order; return the number of rows that tasks have written.

    Parameters
    ----------
    frame
        The rows, in any order.
    name
        The name of the table.
    folder
        The target folder.
    rows
        About the number of rows: a file has some `FILE_ROWS`. One file needs no sampling, which would
        compute everything twice.
    """
    files = max(1, rows // FILE_ROWS)
    keys = SORT_KEYS[name]
    parts = frame.repartition(1) if files == 1 else frame.repartitionByRange(files, *keys)
    return write_rows(parts.sortWithinPartitions(*keys), folder)


def write_slices(frame: DataFrame, slice_ticks: int, folder: Root) -> int:
    """Write trajectories into folders by time, with rows in any order: nothing is sorted.

    Returns
    -------
    int
        The number of rows that tasks have written.
    """
    settings = frame.sparkSession.conf
    settings.set(_WRITERS, SLICE_FILES_MAX)
    try:
        number = F.format_string("%05d", F.floor(F.col("tick") / F.lit(slice_ticks)))  # `slice_name`
        return write_rows(frame.withColumn("slice", number), folder, "slice")
    finally:
        settings.unset(_WRITERS)


def write_rows(frame: DataFrame, folder: Root, *columns: str) -> int:
    """Write a table, in folders by some columns; return the number of rows that tasks have counted."""
    counted = Observation()
    observed = frame.observe(counted, F.count(F.lit(1)).alias("rows"))
    observed.write.partitionBy(*columns).parquet(str(folder))
    return int(counted.get["rows"])


@contextmanager
def reading(root: Root) -> Iterator[None]:
    """Convert errors of Spark and Arrow while tables are read.

    Raises
    ------
    SimulationError
        In their place; it names the table, if the error names its file.
    """
    try:
        yield
    except UNREADABLE as error:
        found = _FILE_OF_TABLE.search(str(error))
        where = str(root) if found is None else f"the table {found[1]} in {root} cannot be read"
        raise SimulationError(f"{where}: {reason_of(error)}") from error


def check_table(root: Root, name: str) -> int:
    """Check that all files of a table have its columns, by their metadata. Reads no rows.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    SimulationError
        If the folder is missing, a file cannot be read, or a column is missing, of another type, or
        has nulls.
    """
    if not files_at(root / name).is_folder():
        raise SimulationError(f"the table {name} is missing from {root}")
    count = 0
    for file in parquet_files(root / name):
        try:
            with file.opened() as source:
                about = pq.read_metadata(source)
            found = about.schema.to_arrow_schema()
        except (OSError, pa.ArrowException) as error:
            raise SimulationError(f"the table {name} in {root} cannot be read: {error}") from None
        _check_schema(root, name, found)
        _check_nulls(root, name, about)
        count += about.num_rows
    return count


def read_table(root: Root, name: str, slice_number: int | None = None) -> pa.Table:
    """Read a table, or a slice of the trajectories, in its order.

    Raises
    ------
    SimulationError
        If it cannot be read.
    """
    folder = root / name
    schema = schemas.arrow_schema((schemas.TABLES | schemas.MORE_TABLES)[name])
    part = folder if slice_number is None else folder / slice_name(slice_number)
    tables = []
    try:
        for file in parquet_files(part):
            with file.opened() as source:
                tables.append(pq.ParquetFile(source).read(columns=schema.names))
        if not tables:
            return schema.empty_table()
        table = pa.concat_tables([one.select(schema.names).cast(schema) for one in tables])
    except (OSError, pa.ArrowException, ValueError) as error:
        raise SimulationError(f"the table {name} in {root} cannot be read: {error}") from None
    if name == "trajectories":
        return table.sort_by([(key, "ascending") for key in SORT_KEYS[name]])
    return table


def _check_schema(root: Root, name: str, found: pa.Schema) -> None:
    for field in schemas.arrow_schema(schemas.TABLES[name]):
        if field.name not in found.names:
            raise SimulationError(f"the table {name} in {root} has no column {field.name}")
        if (there := found.field(field.name).type) != field.type:
            raise SimulationError(
                f"the column {name}.{field.name} in {root} is {there}, must be {field.type}"
            )


def _check_nulls(root: Root, name: str, about: pq.FileMetaData) -> None:
    must = {field.name for field in schemas.arrow_schema(schemas.TABLES[name]) if not field.nullable}
    for group in range(about.num_row_groups):
        for number in range(about.num_columns):
            column = about.row_group(group).column(number)
            statistics = column.statistics
            if column.path_in_schema in must and statistics is not None and statistics.null_count:
                raise SimulationError(f"the column {name}.{column.path_in_schema} in {root} has nulls")
