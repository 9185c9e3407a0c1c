"""A cluster of Spark: settings for it, and clear errors where it would wait without a word."""

from __future__ import annotations

import re
import socket
import time
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

CLUSTER_SETTINGS = {
    # An executor that is not heard for so long is lost, and its tasks are given to others.
    "spark.executor.heartbeatInterval": "4s",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "20s",
    # A partition stays on the host that has its indexes: to build them again takes longer than to wait.
    "spark.locality.wait.process": "1s",
    "spark.locality.wait.node": "60s",
    # Tasks begin when all executors are there, so that partitions are spread.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "20s",
    # Beside the heap, where the cluster's manager counts that: Python, and indexes in memory.
    "spark.executor.memoryOverheadFactor": "1.0",
    # Workers of Python come back to the indexes and kernels that they have loaded.
    "spark.python.worker.reuse": "true",
}
"""What a session has on a cluster unless it is told otherwise."""

EXECUTORS_S = 30.0
"""An executor registers by then, or there is an error."""
_CONNECT_S = 5.0
_PORT = 7077
_LOCAL = re.compile(r"local(-cluster)?(\[.*\])?")


class ClusterError(Exception):
    """A cluster does not do its part; the message says what to look at."""


def is_local(master: str) -> bool:
    """Whether all processes of a session run on this machine."""
    return _LOCAL.fullmatch(master) is not None


def require_master(master: str) -> None:
    """Require that something listens at the address of a standalone master; others are not looked at.

    Raises
    ------
    ClusterError
        If nothing does, at any of several addresses.
    """
    if not master.startswith("spark://"):
        return
    failed = []
    for address in master.removeprefix("spark://").split(","):
        found = urlsplit(f"//{address}")
        try:
            where = found.hostname or "", found.port or _PORT
            with socket.create_connection(where, timeout=_CONNECT_S):
                return
        except (OSError, ValueError) as error:
            failed.append(f"{address}: {error}")
    raise ClusterError(f"no Spark master answers at {master} ({'; '.join(failed)})")


def executor_count(session: SparkSession) -> int:
    """Return how many executors are registered, beside the driver."""
    context = session.sparkContext._jsc.sc()  # noqa: SLF001 - Spark's status from Python
    return len(context.statusTracker().getExecutorInfos()) - 1


def await_executors(session: SparkSession, master: str, seconds: float = EXECUTORS_S) -> None:
    """Wait until an executor is registered.

    Raises
    ------
    ClusterError
        If none is in time.
    """
    end_s = time.monotonic() + seconds
    while executor_count(session) < 1:
        if time.monotonic() > end_s:
            raise ClusterError(_no_executor(session, master, seconds))
        time.sleep(0.1)


def _no_executor(session: SparkSession, master: str, seconds: float) -> str:
    conf = session.sparkContext.getConf()
    where = f"{conf.get('spark.driver.host')}:{conf.get('spark.driver.port')}"
    return (
        f"no executor has registered with {master} in {seconds:.0f} s: either it has no worker with free "
        f"cores and {conf.get('spark.executor.memory', '1g')} of memory (spark.executor.memory), or "
        f"executors end because they do not reach this process at {where} (set spark.driver.host, or "
        "SPARK_LOCAL_IP, to an address that they reach), which the logs of its workers say"
    )
