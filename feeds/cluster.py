"""A cluster of Spark: settings for it, and clear errors in place of silent waits."""

from __future__ import annotations

import re
import socket
import time
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

CLUSTER_SETTINGS = {
    # An executor that sends nothing for this time is lost, and its tasks go to other executors.
    "spark.executor.heartbeatInterval": "4s",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "20s",
    # A partition stays on the host that has its indexes: rebuilding them takes longer than waiting.
    "spark.locality.wait.process": "1s",
    "spark.locality.wait.node": "60s",
    # Tasks start when all executors are registered, so that partitions are spread.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "20s",
    # Memory beside the heap, if the cluster's manager counts it: Python, and indexes in memory.
    "spark.executor.memoryOverheadFactor": "1.0",
    # Workers of Python are reused with the indexes and kernels that they have loaded.
    "spark.python.worker.reuse": "true",
}
"""Default settings of a session on a cluster."""

EXECUTORS_S = 30.0
"""Time for an executor to register, before there is an error."""
_CONNECT_S = 5.0
_PORT = 7077
_LOCAL = re.compile(r"local(-cluster)?(\[.*\])?")


class ClusterError(Exception):
    """A cluster does not work as required; the message names the likely cause."""


def is_local(master: str) -> bool:
    """Return whether all processes of a session run on this machine."""
    return _LOCAL.fullmatch(master) is not None


def require_master(master: str) -> None:
    """Require that a process listens at the address of a standalone master; skip other masters.

    Raises
    ------
    ClusterError
        If no process listens at any of the addresses.
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
    raise ClusterError(f"no Spark master responds at {master} ({'; '.join(failed)})")


def executor_count(session: SparkSession) -> int:
    """Return the number of registered executors, without the driver."""
    context = session.sparkContext._jsc.sc()  # noqa: SLF001 - Spark's status from Python
    return len(context.statusTracker().getExecutorInfos()) - 1


def await_executors(session: SparkSession, master: str, seconds: float = EXECUTORS_S) -> None:
    """Wait until an executor is registered.

    Raises
    ------
    ClusterError
        If no executor registers in time.
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
        f"no executor has registered with {master} in {seconds:.0f} s: either it has no worker with "
        f"free cores and {conf.get('spark.executor.memory', '1g')} of memory (spark.executor.memory), "
        f"or executors terminate because they cannot reach this process at {where} (set "
        "spark.driver.host, or SPARK_LOCAL_IP, to an address that they can reach); see the logs of its "
        "workers"
    )
