"""Common parts of the commands of `nearcast stream`: types of values, options, a session of Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.failures import reported
from cli.paths import FOLDER, LocalPath, is_uri
from cli.simulated_area import area_text
from cli.spark_options import SparkChoice, spark_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MECHANISMS = ("hashing", "location", "keyword", "prefix", "spatial-first", "keyword-first")
"""Names of the mechanisms of `streaming.distribution`, which is imported when it is needed."""
MASTER = "local[*,4]"
"""All cores, and failed tasks are retried, which they are not with local[*]."""
_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def _milliseconds(text: str) -> int:
    """Parse a time with its unit; return it in milliseconds, or 0 if it is not valid."""
    found = _DURATION.fullmatch(text)
    return int(found[1]) * _UNITS_MS[found[2]] if found else 0


class Window(click.ParamType[Any]):
    """A number of messages, or a time with its unit."""

    name = "COUNT|TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the argument."""
        from streaming.partition.window import WindowSize  # noqa: PLC0415

        if isinstance(value, WindowSize):
            return value
        text = str(value).replace("_", "").strip()
        if text.isdecimal() and int(text):
            return WindowSize(count=int(text))
        if duration_ms := _milliseconds(text):
            return WindowSize(duration_ms=duration_ms)
        return self.fail(
            f"{value!r} must be a number of messages, or a time like 90s, 10m, 24h", param, ctx
        )


class Duration(click.ParamType[Any]):
    """A time with its unit, in milliseconds."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the argument."""
        if isinstance(value, int):
            return value
        if duration_ms := _milliseconds(str(value).strip()):
            return duration_ms
        return self.fail(f"{value!r} must be a time like 500ms, 10s, 1m", param, ctx)


class Feed(click.ParamType[Any]):
    """A folder, or an address in Redis."""

    name = "FOLDER|redis://..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the argument."""
        from feeds.redis.address import AddressError, RedisAddress, is_redis  # noqa: PLC0415

        if not is_redis(str(value)):
            return FOLDER.convert(value, param, ctx)
        try:
            return RedisAddress.parse(str(value))
        except AddressError as error:
            return self.fail(str(error), param, ctx)


class Area(click.ParamType[Any]):
    """A rectangle in degrees, or the area of a simulation; `area_at` reads the area of a URI later."""

    name = "LON,LAT,LON,LAT|FOLDER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the argument."""
        from safe_region.earth.frame import Area, Frame  # noqa: PLC0415

        if isinstance(value, Area) or is_uri(value):
            return value
        try:
            area = Area(*map(float, area_text(str(value)).split(",")))
            Frame.of(area)
        except (TypeError, ValueError) as error:
            self.fail(f"{value!r} must be west,south,east,north in degrees: {error}", param, ctx)
        return area


OUT_OPTION = click.option("--out", type=FOLDER, required=True, help="Folder of the job's results.")
CHECKPOINT_OPTION = click.option(
    "--checkpoint",
    type=FOLDER,
    required=True,
    help="Folder of the state with which the job resumes.",
)
SPARK_OPTIONS = spark_options(MASTER)
MEMORY_OPTION = click.option(
    "--memory",
    type=LocalPath(file_okay=False),
    default=Path("/dev/shm"),  # noqa: S108 - each job has a separate folder
    show_default=True,
    help="Folder on a file system in memory, which holds indexes between batches.",
)


@contextmanager
def session(chosen: SparkChoice) -> Iterator[SparkSession]:
    """Yield a session of Spark."""
    from feeds.cluster import ClusterError  # noqa: PLC0415
    from feeds.java import JavaNotFoundError  # noqa: PLC0415
    from feeds.spark import spark_session  # noqa: PLC0415

    with reported(JavaNotFoundError, ClusterError), spark_session(*chosen) as spark:
        yield spark
