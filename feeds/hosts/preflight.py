"""Hosts looked at before work begins: what would fail in every task, or wait, is said at once.

Each slot of the cluster runs one small task, which says whether its host has the same Python, the same
libraries and the same program, room in memory, and the folders that all share.
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
"""Hosts respond by then, or there is an error."""
MEMORY_BYTES_MIN = 64 << 20
"""Room in memory that a host must have, whatever the job."""
_PAUSE_S = 0.3
_SHOWN = 10


def check_hosts(
    spark: SparkSession,
    *,
    read: Sequence[Where] = (),
    written: Sequence[Where] = (),
    memory: Path | None = None,
) -> list[str]:
    """Require that all hosts of a cluster can do their part; return their names.

    Parameters
    ----------
    spark
        The session, of a cluster whose executors are registered.
    read, written
        Folders that all hosts must see: those that are only read, and those that are written to.
    memory
        A folder on a file system in memory that each host must have; None for none.

    Raises
    ------
    ClusterError
        If one cannot; or they do not say so in half a minute.
    """
    with ExitStack() as stack:
        probe = host_probe.Probe(
            versions=library_versions(),
            program=source_digest(),
            memory="" if memory is None else str(memory),
            memory_bytes=MEMORY_BYTES_MIN,
            folders=tuple(path for where in read if (path := _local(Stored(spark, where)))),
            marks=dict(stack.enter_context(_marked(Stored(spark, where))) for where in written),
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
    """Send the probe as it is, not by its name."""
    cloudpickle.register_pickle_by_value(host_probe)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(host_probe)  # type: ignore[no-untyped-call]


@contextmanager
def _marked(folder: Stored) -> Iterator[tuple[str, str]]:
    """Have a file in a folder for a while; yield its URI, as tasks read it, and what it has."""
    file, text = folder / f".nearcast-{secrets.token_hex(8)}", secrets.token_hex(8)
    file.create(text.encode())
    try:
        yield file.resolved(), text
    finally:
        file.remove()


def _local(folder: Stored) -> str:
    """Return the path of a folder that hosts must have mounted; nothing of one that lies elsewhere."""
    uri = urlparse(folder.resolved())
    return unquote(uri.path) if uri.scheme == "file" else ""
