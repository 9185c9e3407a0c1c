"""Check the hosts of a cluster before work starts, for errors that would make every task fail or wait.

Each slot of the cluster runs one small task. It reports whether its host has the same Python, the same
libraries and the same program, free memory, and the shared folders.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from feeds.cluster import ClusterError
from feeds.hosts import probe as host_probe
from feeds.hosts.program import library_versions, source_digest
from feeds.hosts.slots import on_all_slots
from feeds.storage import Stored, Where

PROBED_S = 30.0
"""Time for the hosts to respond, before there is an error."""
MEMORY_BYTES_MIN = 64 << 20
"""Free memory that a host must have for any job."""
_PAUSE_S = 0.3
_SHOWN = 10


def check_hosts(
    spark: SparkSession,
    *,
    read: Sequence[Where] = (),
    written: Sequence[Where] = (),
    memory: Path | None = None,
) -> list[str]:
    """Require that all hosts of a cluster are ready for a job; return their names.

    Parameters
    ----------
    spark
        The session, of a cluster whose executors are registered.
    read, written
        Folders that all hosts must see: folders that are only read, and folders that are written to.
    memory
        A folder on a file system in memory that each host must have; None if not needed.

    Raises
    ------
    ClusterError
        If a host is not ready, or the hosts do not respond within half a minute.
    """
    with ExitStack() as stack:
        probe = host_probe.Probe(
            versions=library_versions(),
            program=source_digest(),
            memory="" if memory is None else str(memory),
            memory_bytes=MEMORY_BYTES_MIN,
            folders=tuple(path for where in read if (path := _local(Stored(spark, where)))),
            marks=dict(
                stack.enter_context(_marked(Stored(spark, where, is_shared=True))) for where in written
            ),
            pause_s=_PAUSE_S,
        )
        stack.enter_context(_by_value())
        reports = on_all_slots(spark, probe, PROBED_S)
    wrong = sorted({f"{host}: {line}" for host, errors in reports for line in errors})
    if wrong:
        raise ClusterError("; ".join(wrong[:_SHOWN]))
    return sorted({host for host, _ in reports})


@contextmanager
def _by_value() -> Iterator[None]:
    """Serialise the probe by value, not by name."""
    cloudpickle.register_pickle_by_value(host_probe)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(host_probe)  # type: ignore[no-untyped-call]


@contextmanager
def _marked(folder: Stored) -> Iterator[tuple[str, str]]:
    """Create a temporary file in a folder; yield its URI for tasks, and its contents."""
    file, text = folder / f".nearcast-{secrets.token_hex(8)}", secrets.token_hex(8)
    file.create(text.encode())
    try:
        yield file.resolved(), text
    finally:
        file.remove()


def _local(folder: Stored) -> str:
    """Return the path of a folder that hosts must have mounted; empty for another file system."""
    uri = urlparse(folder.resolved())
    return unquote(uri.path) if uri.scheme == "file" else ""
