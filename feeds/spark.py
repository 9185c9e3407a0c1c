"""A local Spark session: quiet, without a user interface, on whatever Java there is."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from feeds.java import find_java

SHUFFLE_PARTITIONS = 4
"""Few: tables of a simulation are small next to the cost of a task."""

# The gateway's logger is named so that Spark does not announce a log level of its own.
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


@contextmanager
def spark_session(
    master: str = "local[*]", more: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start a session and stop it at the end. The first of a process takes some seconds.

    Parameters
    ----------
    master
        Spark's master URL.
    more
        Settings of Spark beside the usual ones.

    Raises
    ------
    JavaNotFoundError
        If there is no Java runtime.
    """
    java = find_java()
    root = str(Path(__file__).resolve().parent.parent)
    with tempfile.TemporaryDirectory(prefix="nearcast-spark-") as scratch:
        log4j = Path(scratch) / "log4j2.properties"
        log4j.write_text(_LOG4J)
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # The stack: Spark looks through texts of exceptions with patterns that recur deeply.
            "spark.driver.extraJavaOptions": f"-Xss8m -Dlog4j2.configurationFile={log4j.as_uri()}",
            "spark.local.dir": scratch,
            "spark.sql.warehouse.dir": str(Path(scratch) / "warehouse"),
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
            **_authenticated(master),
            # Workers import this package, wherever the driver found it.
            "spark.executorEnv.PYTHONPATH": root,
            **(more or {}),
        }
        variables = {
            "JAVA_HOME": str(java.home),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with _environment(variables):
            builder = SparkSession.builder.master(master).appName("nearcast")
            for name, value in settings.items():
                builder = builder.config(name, value)
            session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


def _authenticated(master: str) -> dict[str, str]:
    """Return what has Spark ask whoever connects to it for a secret, which it makes itself here.

    Its ports are for its own processes, which run whatever they are sent. On a cluster the secret must be
    everywhere: who runs that sets it.
    """
    return {"spark.authenticate": "true"} if master.partition("[")[0] in ("local", "yarn") else {}


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
