"""Points from files: GPX, CSV and Parquet, as one frame in the schema `RAW`.

The driver reads only the header of each file; workers do everything else.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from simulator import schemas
from simulator.parameters.traces import TRIP, TraceOptions
from simulator.traces.columns import VEHICLES_TEXT, Meaning, degrees, meaning_of, time_ms
from simulator.traces.errors import TraceError
from simulator.traces.gpx import track_points
from simulator.traces.points import RAW

GPX, TEXT, PARQUET = (".gpx", ".gpx.gz"), (".csv", ".csv.gz", ".txt", ".txt.gz"), (".parquet",)
ENDINGS = (*GPX, *TEXT, *PARQUET)
"""Suffixes of files' names; case does not matter."""

_HEADER_BYTES = 1 << 16
_ROWS = 50_000
"""Points of a GPX file in a batch."""

SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.legacy.parquet.nanosAsLong": "true"}
"""The settings of a session that reads points: times without a zone are UTC, and Spark, which has no
timestamps in nanoseconds, reads them as numbers."""

_BLOCK, _ROW_INDEX = "block of the file", "row of the file"

_IGNORED, _PATTERNS = ("_", "."), "*?[]{}\\"
"""Spark ignores files whose names begin with the first, and takes paths with the others as patterns."""

_LINES_MAX, _PLACES_MAX = 2**33, 2**20
"""Of a block of a file, and of a line with a whole trip. Spark's ids of rows have the task above."""


def read_points(spark: SparkSession, paths: Sequence[Path], options: TraceOptions) -> DataFrame:
    """Return the points of files, with time and position as far as they can be read.

    Parameters
    ----------
    spark
        The session, with `SETTINGS`.
    paths
        The files.
    options
        Names of columns, the key of a trace, the time between points of a polyline.

    Raises
    ------
    TraceError
        If a file is missing, empty, of no known kind, or has no column for the time or the position.
    """
    check_files(paths)
    found: DataFrame | None = None
    for part in _frames(spark, paths, options):
        found = part if found is None else found.unionByName(part)
    if found is None:
        raise TraceError("no files of traces are given")
    if options.by != TRIP:
        found = found.withColumn("trip", F.lit(""))
    return found.select(*RAW.names)


def check_files(paths: Sequence[Path]) -> None:
    """Check whether files can be files of traces, by their names and sizes.

    Raises
    ------
    TraceError
        If one is missing, empty or of no known kind, has the name of another, or a path that Spark would
        not take literally.
    """
    names = [source_name(path) for path in paths]
    for path, name in zip(paths, names, strict=True):
        _check(path)
        if names.count(name) > 1:
            raise TraceError(
                f"{name} is the name of several files, apart from their suffixes: file names must "
                "distinguish traces"
            )


def unused_columns(paths: Sequence[Path], options: TraceOptions) -> list[str]:
    """Read the headers of files; return the columns that are not used, a line for all files alike.

    Raises
    ------
    TraceError
        If a file cannot be read, or has no column for the time or the position.
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        if path.name.lower().endswith(GPX):
            continue
        names = _parquet_names(path, options) if _is_parquet(path) else _text_names(path, options)[1]
        meaning = meaning_of(path, names)
        unused = [name for name in names if name not in meaning]
        if unused:
            text = f"unused columns: {', '.join(unused)}"
            if meaning.vehicle is None:
                text += f". No column has the vehicle, so all points belong to one: {VEHICLES_TEXT}"
            found.setdefault(text, []).append(path.name)
    return [
        f"{names[0]}{f' and {len(names) - 1} more files' * (len(names) > 1)}: {text}"
        for text, names in found.items()
    ]


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(PARQUET)


def source_name(path: Path) -> str:
    """Return a file's name in the tables: without its suffix."""
    name = path.name
    ending = max((one for one in ENDINGS if name.lower().endswith(one)), key=len, default="")
    return name[: len(name) - len(ending)]


def damage_of(paths: Sequence[Path]) -> str | None:
    """Return the first compressed file that is damaged, and the reason; None for none. Reads them all."""
    for path in paths:
        if not path.name.lower().endswith(".gz"):
            continue
        try:
            with gzip.open(path) as file:
                while file.read(1 << 20):
                    pass
        except (OSError, EOFError, zlib.error) as error:
            return f"{path} cannot be read: {error}"
    return None


def _check(path: Path) -> None:
    if not path.exists():
        raise TraceError(f"file {path} does not exist")
    if not path.is_file():
        raise TraceError(f"{path} is not a file")
    if not path.name.lower().endswith(ENDINGS):
        raise TraceError(
            f"{path} is not a file of traces: its name must end in one of {', '.join(ENDINGS)}"
        )
    if path.stat().st_size == 0:
        raise TraceError(f"{path} is empty")
    where = path.resolve()
    if where.name.startswith(_IGNORED) or ":" in where.name or set(_PATTERNS).intersection(str(where)):
        raise TraceError(
            f"the path is {where}, must be without any of {_PATTERNS}, and its last part must "
            "have no : and not begin with _ or a dot: rename the file"
        )


def _frames(spark: SparkSession, paths: Sequence[Path], options: TraceOptions) -> Iterator[DataFrame]:
    """Yield a frame for all GPX files, and one for each of the others: their columns may differ."""
    gpx = [path for path in paths if path.name.lower().endswith(GPX)]
    if gpx:
        yield _read_gpx(spark, gpx)
    for path in paths:
        name = path.name.lower()
        if name.endswith(PARQUET):
            yield _read_parquet(spark, path, options)
        elif name.endswith(TEXT):
            yield _read_text(spark, path, options)


def _read_gpx(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    names = {path.name: source_name(path) for path in paths}
    files = spark.read.format("binaryFile").load([_url(path) for path in paths])

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for url, content in zip(*(one.to_pylist() for one in batch.columns), strict=True):
                name = url.rpartition("/")[2]
                yield from gpx_batches(name, names.get(name, name), content)

    return files.select("path", "content").repartition(len(paths)).mapInArrow(run, RAW)


def gpx_batches(name: str, source: str, content: bytes) -> Iterator[pa.RecordBatch]:
    """Yield the points of a GPX file in the schema `RAW`: the file is the vehicle, segments are trips.

    Raises
    ------
    TraceError
        If it cannot be read completely.
    """
    schema = schemas.arrow_schema(RAW)
    try:
        if name.lower().endswith(".gz"):
            content = gzip.decompress(content)
        rows: list[tuple[object, ...]] = []
        for number, point in enumerate(track_points(content)):
            trip = f"{point.track}.{point.segment}"
            rows.append((source, source, trip, 0, number, point.t_ms, point.lon, point.lat))
            if len(rows) == _ROWS:
                yield _batch(rows, schema)
                rows = []
        if rows:
            yield _batch(rows, schema)
    except TraceError as error:
        raise TraceError(f"{name} {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{name} cannot be read: {error}") from None


def _batch(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _read_parquet(spark: SparkSession, path: Path, options: TraceOptions) -> DataFrame:
    names = _parquet_names(path, options)
    meaning = meaning_of(path, names)
    frame = spark.read.parquet(_url(path))
    found = frame.select(*_used(frame, names, meaning), F.col("_metadata.row_index").alias(_ROW_INDEX))
    if pa.types.is_timestamp(pq.read_schema(path).field(names.index(meaning.time)).type):
        found = _with_timestamps(found, meaning.time)
    place = (F.lit(0).cast("long"), F.col(_ROW_INDEX))
    return _points(found, meaning, path, place, options)


def _used(frame: DataFrame, names: Sequence[str], meaning: Meaning) -> list[Column]:
    """Return the columns that have a meaning under their names: of equal names, the first counts."""
    used = [names.index(name) for name in dict.fromkeys(meaning) if name is not None]
    escaped = [frame.columns[number].replace("`", "``") for number in used]
    return [F.col(f"`{old}`").alias(names[new]) for old, new in zip(escaped, used, strict=True)]


def _with_timestamps(frame: DataFrame, name: str) -> DataFrame:
    """Convert timestamps in nanoseconds, which Spark reads as numbers; others are unchanged."""
    if dict(frame.dtypes)[name] != "bigint":
        return frame
    return frame.withColumn(name, F.timestamp_micros(F.expr(f"`{name}` div 1000")))


def _parquet_names(path: Path, options: TraceOptions) -> list[str]:
    """Return the names of the columns: those of the file, or the given ones."""
    try:
        names: list[str] = pq.read_schema(path).names
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"{path} cannot be read: {error}") from None
    if options.columns is None:
        return names
    given = _given_names(options.columns)
    if len(given) != len(names):
        raise TraceError(
            f"{path}: --columns names {len(given)} columns, must name {len(names)}: the file has "
            f"{', '.join(names)}"
        )
    return given


def _given_names(columns: str) -> list[str]:
    return [one.strip() for one in columns.split(",")]


def _text_names(path: Path, options: TraceOptions) -> tuple[str, list[str]]:
    """Return the separator of fields, and the names of the columns."""
    first = _first_line(path)
    separator = next((one for one in (",", ";", "\t") if one in first), " ")
    if options.columns is not None:
        return separator, _given_names(options.columns)
    return separator, [one.strip().strip('"') for one in first.split(separator)]


def _read_text(spark: SparkSession, path: Path, options: TraceOptions) -> DataFrame:
    separator, names = _text_names(path, options)
    reader = spark.read.option("sep", separator).option("mode", "PERMISSIVE").option("escape", '"')
    meaning = meaning_of(path, names)
    schema = ", ".join(f"c{number} string" for number in range(len(names)))
    frame = reader.option("header", options.columns is None).schema(schema).csv(_url(path))
    block = F.col("_metadata.file_block_start").alias(_BLOCK)
    found = frame.select(
        *_used(frame, names, meaning), block, F.monotonically_increasing_id().alias(_ROW_INDEX)
    )
    return _points(found, meaning, path, (F.col(_BLOCK), F.col(_ROW_INDEX)), options)


def _points(
    frame: DataFrame, meaning: Meaning, path: Path, place: tuple[Column, Column], options: TraceOptions
) -> DataFrame:
    """Return the columns of `RAW`; a file without vehicles has one, named as the file."""
    kinds = dict(frame.dtypes)
    source = F.lit(source_name(path))
    vehicle = source if meaning.vehicle is None else F.col(f"`{meaning.vehicle}`").cast("string")
    trip = F.lit("") if meaning.trip is None else F.col(f"`{meaning.trip}`").cast("string")
    block, row = place
    t_ms = time_ms(meaning.time, kinds[meaning.time])
    if meaning.polyline is not None:
        listed = F.from_json(F.col(f"`{meaning.polyline}`"), "array<array<double>>")
        step_ms = options.polyline_step_s * 1000.0
        lines = frame.select(
            source.alias("source"),
            F.coalesce(vehicle, F.lit("")).alias("vehicle"),
            F.coalesce(trip, F.lit("")).alias("trip"),
            block.alias("block"),
            row.alias("line"),
            t_ms.alias("begin_ms"),
            listed.alias("places"),
        )
        exploded = lines.select("*", F.posexplode("places").alias("number", "place"))
        line = F.col("line").bitwiseAND(_LINES_MAX - 1)
        return exploded.select(
            "source",
            "vehicle",
            "trip",
            "block",
            (line * F.lit(_PLACES_MAX) + F.col("number")).alias("row"),
            (F.col("begin_ms") + F.round(F.col("number") * step_ms).cast("long")).alias("t_ms"),
            F.get("place", F.lit(0)).alias("lon"),
            F.get("place", F.lit(1)).alias("lat"),
        )
    return frame.select(
        source.alias("source"),
        F.coalesce(vehicle, F.lit("")).alias("vehicle"),
        F.coalesce(trip, F.lit("")).alias("trip"),
        block.alias("block"),
        row.alias("row"),
        t_ms.alias("t_ms"),
        degrees(meaning.lon or "").alias("lon"),
        degrees(meaning.lat or "").alias("lat"),
    )


def _first_line(path: Path) -> str:
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            content = file.readline(_HEADER_BYTES)
        return str(content.decode("utf-8-sig").strip("\r\n"))
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{path} cannot be read: {error}") from None
    except UnicodeDecodeError as error:
        raise TraceError(f"{path} is not UTF-8 text ({error.reason})") from None


def _url(path: Path) -> str:
    return str(path.resolve())
