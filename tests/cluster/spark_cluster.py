"""Spark's own cluster manager on hosts: a master and workers, from the package that pip has installed."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from feeds.java import find_java
from safe_region.jit.cache import CACHE_FOLDER
from tests.cluster.hosts import Host, HostError, Hosts

_ROOT = Path(__file__).resolve().parents[2]
# Hosts that were set up alike have the kernels: to compile them takes longer than a job here.
_KERNELS = "NUMBA_CACHE_DIR", str(CACHE_FOLDER.parent)
_PORT = 7077
_READY_S = 60.0
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_OPTIONS = "-Dspark.worker.timeout=20"
"""Of the master: a worker that is not heard for so many seconds is lost."""


def variables(host: Host | None = None) -> dict[str, str]:
    """Return the environment of a command of nearcast, on a host or outside of all."""
    own = {} if host is None else {"SPARK_LOCAL_IP": host.address}
    return {"PYTHONPATH": str(_ROOT), **dict([_KERNELS]), **own}


class SparkCluster:
    """A master on the first host and a worker on each of the others, or on all.

    Parameters
    ----------
    hosts
        Where they run.
    logs
        Folder for what they write.
    cores, memory
        Of each worker.
    """

    def __init__(self, hosts: Hosts, logs: Path, cores: int = 1, memory: str = "2g") -> None:
        self._hosts, self._logs = hosts, logs
        self._cores, self._memory = cores, memory
        package = importlib.util.find_spec("pyspark")
        if package is None or package.origin is None:
            raise HostError("pyspark is not installed")
        self._home = Path(package.origin).parent
        self._java = find_java().home
        self._workers: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """Its address, as Spark writes it."""
        return f"spark://{self._hosts[0].name}:{_PORT}"

    def options(self, host: Host) -> list[str]:
        """Return the options of a command of nearcast whose driver runs on a host."""
        return [
            f"--master={self.url}",
            f"--driver-host={host.address}",
            "--driver-memory=1g",
            "--executor-memory=1g",
            "--conf=spark.executorEnv.{}={}".format(*_KERNELS),
        ]

    def __enter__(self) -> Self:
        self._logs.mkdir(parents=True, exist_ok=True)
        master = self._hosts[0]
        self._start(master, "master", _MASTER, "--host", master.name, "--port", str(_PORT))
        self._await_master(master)
        for number in range(len(self._hosts)):
            self.start_worker(number)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the processes to their hosts, which end them."""

    def start_worker(self, number: int) -> None:
        """Start the worker of a host."""
        host = self._hosts[number]
        limits = ["--cores", str(self._cores), "--memory", self._memory]
        self._workers[host.name] = self._start(
            host, f"worker-{host.name}", _WORKER, "--host", host.name, *limits, self.url
        )

    def ensure_worker(self, number: int) -> None:
        """Start the worker of a host, if it has ended."""
        if self._workers[self._hosts[number].name].poll() is not None:
            self.start_worker(number)

    def _start(self, host: Host, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self._logs / f"{name}.log").open("ab") as log:
            return host.start(
                [str(self._home / "bin" / "spark-class"), *command], log, self._environment(host)
            )

    def _environment(self, host: Host) -> Mapping[str, str]:
        own = host.folder / "spark"
        own.mkdir(exist_ok=True)
        return {
            "JAVA_HOME": str(self._java),
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": host.address,
            "SPARK_WORKER_DIR": str(own / "work"),
            "SPARK_LOCAL_DIRS": str(own / "local"),
            "SPARK_LOG_DIR": str(own / "logs"),
            "SPARK_CONF_DIR": str(own),
            "SPARK_MASTER_OPTS": _OPTIONS,
            "SPARK_DAEMON_MEMORY": "256m",
        }

    def _await_master(self, host: Host) -> None:
        end_s = time.monotonic() + _READY_S
        while True:
            with suppress(OSError), socket.create_connection((host.address, _PORT), timeout=1.0):
                return
            if time.monotonic() > end_s:
                raise HostError(f"the master on {host.name} does not listen")
            time.sleep(0.2)
