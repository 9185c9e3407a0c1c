"""Spark's session of the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from feeds.spark import spark_session

LOCAL = "local[*]"
"""All cores of this machine."""

_SETTINGS = {
    # Writers of all slices at a time, and tables of a million devices that are joined.
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
        Of Spark, in place of the usual ones or beside them.

    Raises
    ------
    JavaNotFoundError
        If there is no Java runtime.
    ClusterError
        If a cluster does not do its part.
    """
    with spark_session(master, {**_SETTINGS, **(settings or {})}) as session:
        yield session
