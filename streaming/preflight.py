"""Hosts looked at before a job begins: what would fail in every task, or wait, is said at once.

Each slot of the cluster runs one small task, which says whether its host has the same Python, the same
libraries and the same program, room in memory, and the folders that all share. Then kernels are compiled,
once a host.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from feeds.cluster import ClusterError
from feeds.storage import Stored, Where
from streaming import host_probe
from streaming.plan import Plan
from streaming.program import library_versions, program_digest
from streaming.slots import on_all_slots
from streaming.warmup import ready_kernels

PROBED_S = 30.0
"""Hosts respond by then, or there is an error."""
MEMORY_BYTES_MIN = 64 << 20
"""Room in memory that a host must have, whatever the job."""
_PAUSE_S = 0.3
_SHOWN = 10


def check_hosts(
    spark: SparkSession, memory: Path, read: Sequence[Where], written: Sequence[Where]
) -> list[str]:
    """Require that all hosts of a cluster can do their part; return their names.

    Parameters
    ----------
    spark
        The session, of a cluster whose executors are registered.
    memory
        The folder in memory where engines are to lie, on each host.
    read, written
        Folders that all hosts must see: those that the job only reads, and those that are its own.

    Raises
    ------
    ClusterError
        If one cannot; or they do not say so in half a minute.
    """
    with ExitStack() as stack:
        probe = host_probe.Probe(
            versions=library_versions(),
            program=program_digest(),
            memory=str(memory),
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


def compile_on_hosts(spark: SparkSession, plan: Plan) -> None:
    """Have all kernels compiled on each host: by one of its workers, while the others wait for it."""

    def compiled(_: Iterable[Any]) -> Iterator[int]:
        yield ready_kernels(plan, lambda _done, _total: None)

    on_all_slots(spark, compiled, None)


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
