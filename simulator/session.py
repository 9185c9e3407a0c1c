"""The Spark session of the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from feeds.spark import spark_session

LOCAL = "local[*]"
"""All cores of this machine."""

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
