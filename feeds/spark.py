"""A quiet Spark session on any suitable Java, on this machine or a cluster (`feeds.cluster`)."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from feeds.class_archive import archive_options
from feeds.cluster import CLUSTER_SETTINGS, await_executors, is_local, require_master
from feeds.java import find_java

SHUFFLE_PARTITIONS = 4
"""Few partitions: the tables of a simulation are small compared with the cost of a task."""

# The gateway's logger is named so that Spark does not print its own log level.
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
_PYTHON = "spark.pyspark.python"
_LOCAL_DIR = "spark.local.dir"


@contextmanager
def spark_session(
    master: str = "local[*]", more: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start a session, and stop it at the end. The first session of a process takes some seconds.

    On a cluster Spark chooses the address at which executors reach this process. The operator overrides
    it with the variable `SPARK_LOCAL_IP` or the setting `spark.driver.host`.

    Parameters
    ----------
    master
        Spark's master URL.
    more
        Settings of Spark that replace or extend the defaults.

    Raises
    ------
    JavaNotFoundError
        If there is no Java runtime.
    ClusterError
        If the master does not listen, or no executor registers.
    """
    java, given = find_java(), dict(more or {})
    require_master(master)
    root = str(Path(__file__).resolve().parent.parent)
    with tempfile.TemporaryDirectory(prefix="nearcast-spark-") as scratch:
        log4j = Path(scratch) / "log4j2.properties"
        log4j.write_text(_LOG4J)
        # The stack size: Spark searches texts of exceptions with deeply recursive patterns.
        archive = shlex.join(archive_options(java))
        options = f"-Xss8m -Dlog4j2.configurationFile={log4j.as_uri()} {archive}"
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.extraJavaOptions": options,
            "spark.sql.warehouse.dir": str(Path(scratch) / "warehouse"),
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
            **_authenticated(master),
            # Workers import this package from the driver's path.
            "spark.executorEnv.PYTHONPATH": root,
            **(_local_settings(scratch, archive) if is_local(master) else CLUSTER_SETTINGS),
            **given,
        }
        with _environment(_variables(master, str(java.home), given)):
            builder = SparkSession.builder.master(master).appName("nearcast")
            for name, value in settings.items():
                builder = builder.config(name, value)
            session = builder.getOrCreate()
        try:
            if not is_local(master):
                await_executors(session, master)
            yield session
        finally:
            session.stop()


def _variables(master: str, java_home: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of Spark's processes."""
    found = {
        "JAVA_HOME": java_home,
        "PYSPARK_PYTHON": given.get(_PYTHON, sys.executable),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if is_local(master):
        # The ports of Spark are for its own processes.
        found["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    return found


def _local_settings(scratch: str, archive: str) -> dict[str, str]:
    """Return the settings of a session on this machine: its folder, and the archive for its executors."""
    return {_LOCAL_DIR: scratch} | ({"spark.executor.extraJavaOptions": archive} if archive else {})


def _authenticated(master: str) -> dict[str, str]:
    """Return the settings that make Spark require a secret, which it generates on this machine.

    The ports of Spark are for its own processes, which run any code that they receive. On a cluster every
    host needs the secret: the operator of the cluster sets it.
    """
    makes_secret = master == "yarn" or master.partition("[")[0] == "local"
    return {"spark.authenticate": "true"} if makes_secret else {}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the start of Spark only."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
