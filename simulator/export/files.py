"""Files of features. Spark writes parts in order; they are joined to one file as a stream.

The file gets its name when it is complete. Only one batch is in memory at a time.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DoubleType, StructField, StructType

from simulator.export.features import POINT, Features
from simulator.export.wkb import geometry_of

DIGITS = 7
"""Decimal digits of degrees in GeoJSON: a centimetre."""

GEOMETRY, BOX = "geometry", "bbox"
_SIDES = ("xmin", "ymin", "xmax", "ymax")


class Format(StrEnum):
    """The format of a file of features."""

    GEOJSON = "geojson"
    GEOPARQUET = "geoparquet"

    @property
    def ending(self) -> str:
        """The suffix of its name."""
        return ".geojson" if self is Format.GEOJSON else ".parquet"


def write_features(found: Features, kind: Format, path: Path) -> int:
    """Write features to a file; return their number.

    Parameters
    ----------
    found
        The features.
    kind
        GeoJSON or GeoParquet.
    path
        The file; an existing file is replaced.

    Raises
    ------
    OSError
        If it cannot be written; an existing file is then unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    parts, draft = path.with_name(f".{path.name}.parts"), path.with_name(f".{path.name}.new")
    shutil.rmtree(parts, ignore_errors=True)
    try:
        count = (_write_geojson if kind is Format.GEOJSON else _write_geoparquet)(found, parts, draft)
        draft.replace(path)
    finally:
        shutil.rmtree(parts, ignore_errors=True)
        draft.unlink(missing_ok=True)
    return count


def _parts(folder: Path, ending: str) -> list[Path]:
    return sorted(folder.glob(f"part-*{ending}"))


def _write_geojson(found: Features, parts: Path, draft: Path) -> int:
    names = [name for name in found.frame.columns if name != "coordinates"]
    geometry = F.struct(F.lit(found.kind).alias("type"), _rounded(found.kind).alias("coordinates"))
    feature = F.struct(
        F.lit("Feature").alias("type"),
        F.struct(*names).alias("properties"),
        geometry.alias("geometry"),
    )
    lines = found.frame.orderBy(*found.order).select(F.to_json(feature, {"ignoreNullFields": "false"}))
    written = Observation()
    lines.observe(written, F.count(F.lit(1)).alias("rows")).write.text(parts.as_uri())
    count = 0
    with draft.open("w", encoding="utf-8") as file:
        file.write('{"type":"FeatureCollection","features":[')
        for part in _parts(parts, ".txt"):
            with part.open(encoding="utf-8") as source:
                for line in source:
                    file.write(",\n" if count else "\n")
                    file.write(line.rstrip("\n"))
                    count += 1
        file.write("\n]}\n")
    _require_all(count, written, parts)
    return count


def _rounded(kind: str) -> Column:
    def place(one: Column) -> Column:
        return F.transform(one, lambda value: F.round(value, DIGITS))

    coordinates = F.col("coordinates")
    return place(coordinates) if kind == POINT else F.transform(coordinates, place)


def _write_geoparquet(found: Features, parts: Path, draft: Path) -> int:
    kept = [field for field in found.frame.schema.fields if field.name != "coordinates"]
    box = StructType([StructField(side, DoubleType(), nullable=False) for side in _SIDES])
    more = [StructField(GEOMETRY, BinaryType(), nullable=False), StructField(BOX, box, nullable=False)]
    ordered = found.frame.orderBy(*found.order)
    rows = ordered.mapInArrow(_with_geometry(found.kind), StructType([*kept, *more]))
    written = Observation()
    rows.observe(written, F.count(F.lit(1)).alias("rows")).write.parquet(parts.as_uri())
    paths = _parts(parts, ".parquet")
    if not paths:
        _require_all(0, written, parts)
    schema = pq.read_schema(paths[0]).remove_metadata()
    count = 0
    bounds: tuple[float, ...] = (math.inf, math.inf, -math.inf, -math.inf)
    with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        for part in paths:
            for batch in pq.ParquetFile(part).iter_batches():
                writer.write_batch(batch.cast(schema))
                bounds = _joined(bounds, batch.column(BOX))
                count += batch.num_rows
        writer.add_key_value_metadata({"geo": json.dumps(geo_metadata(found.kind, bounds))})
    _require_all(count, written, parts)
    return count


def _require_all(count: int, written: Observation, parts: Path) -> None:
    """Require that all features are here that tasks have written.

    Raises
    ------
    OSError
        If some are missing.
    """
    expected = int(written.get["rows"])
    if count != expected:
        raise OSError(
            f"{parts.parent} has {count:,} of {expected:,} features: other hosts wrote the rest to their "
            "own disks; choose a folder that all hosts of the cluster share"
        )


def _with_geometry(kind: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            wkb, boxes = geometry_of(batch.column("coordinates"), kind)
            kept = [name for name in batch.schema.names if name != "coordinates"]
            columns = [*(batch.column(name) for name in kept), wkb, boxes]
            yield pa.RecordBatch.from_arrays(columns, names=[*kept, GEOMETRY, BOX])

    return run


def _joined(bounds: tuple[float, ...], boxes: pa.StructArray) -> tuple[float, ...]:
    """Return the bounding box of some boxes and another."""
    if not len(boxes):
        return bounds
    low = [pc.min(boxes.field(side)).as_py() for side in _SIDES[:2]]
    high = [pc.max(boxes.field(side)).as_py() for side in _SIDES[2:]]
    return (*map(min, bounds[:2], low), *map(max, bounds[2:], high))


def geo_metadata(kind: str, bounds: tuple[float, ...]) -> dict[str, object]:
    """Return the metadata of geometry in a GeoParquet 1.1 file: WKB, degrees of WGS84.

    Parameters
    ----------
    kind
        Point or LineString.
    bounds
        The box around all; infinite if there is no feature.
    """
    column: dict[str, object] = {
        "encoding": "WKB",
        "geometry_types": [kind],
        "covering": {"bbox": {side: [BOX, side] for side in _SIDES}},
    }
    if all(map(math.isfinite, bounds)):
        column["bbox"] = list(bounds)
    return {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: column}}
