"""Common parts of the commands of `nearcast stream`: options, a session of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.failures import reported
from cli.paths import FOLDER, LocalPath
from cli.spark_options import SparkChoice, spark_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[*,4]"
"""All cores, and failed tasks are retried, which they are not with local[*]."""

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
    """Yield a session of Spark; report errors of Spark and Redis as a line."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from feeds.causes import cause_of  # noqa: PLC0415
    from feeds.cluster import ClusterError  # noqa: PLC0415
    from feeds.java import JavaNotFoundError  # noqa: PLC0415
    from feeds.redis.streams import RedisError  # noqa: PLC0415
    from feeds.spark import spark_session  # noqa: PLC0415

    with reported(JavaNotFoundError, ClusterError, RedisError), spark_session(*chosen) as spark:
        try:
            yield spark
        except PySparkException as error:
            raise click.ClickException(cause_of(error)) from None
