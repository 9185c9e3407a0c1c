"""The Spark session of the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from pyspark.sql import SparkSession

from feeds.spark import spark_session

LOCAL = "local[*]"
"""All cores of this machine."""


class SparkStart(NamedTuple):
    """How to start a session: Spark's master URL, and settings beside the defaults."""

    master: str = LOCAL
    settings: Mapping[str, str] | None = None


_SETTINGS = {
    # For the writers of all slices at a time, and joins of tables of a million devices.
    "spark.driver.memory": "2g",
}


@contextmanager
def simulator_session(
    master: str = LOCAL, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start a session that writes and reads tables of simulations, and stop it at the end.

    Parameters
    ----------
    master
        Spark's master URL.
    settings
        Spark's settings, which replace or extend the defaults.

    Raises
    ------
    JavaNotFoundError
        If there is no Java runtime.
    ClusterError
        If a cluster fails a check.
    """
    with spark_session(master, {**_SETTINGS, **(settings or {})}) as session:
        yield session


@contextmanager
def session_of(spark: SparkSession | SparkStart) -> Iterator[SparkSession]:
    """Use a session, or start one and stop it at the end; see `simulator_session`."""
    if not isinstance(spark, SparkStart):
        yield spark
        return
    with simulator_session(*spark) as session:
        yield session
