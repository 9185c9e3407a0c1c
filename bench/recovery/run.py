"""Write a store in a process that then dies as if killed, and recover it in another process.

Memory is the growth of the second process, so it includes the reserve of arrays. Kernels are compiled
before, with a small store. The memory of a device that reconnects is measured in the same way: its
session, its buffer and its region.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from bench.audits import Audit, sample
from bench.benchmark import Benchmark, Progress, Row
from bench.errors import BenchError
from bench.recovery.experiments import RecoveryParameters
from bench.recovery.workload import RecoveryWorkload, options_of
from engine import Positions
from safe_region.earth.frame import Frame
from server.commands.acceptor import Accepted, Acceptor
from server.core.coordinator import Coordinator
from server.session import Outbox as Stream
from server.session import VersionedDelta
from server.store import SqliteStore
from server.store.mutations import Recovered

_TRIAL = 2_000
"""Objects and subscriptions of the run that compiles kernels."""
_DEVICES_A_STREAM = 1_000
_DEVICES_A_BATCH = 192
"""Devices that a server evaluates together."""

_TAKEN_MAX = 1_000
_MB = 1 << 20


def measure(parameters: RecoveryParameters, progress: Progress) -> Row:
    """Write a store and recover it."""
    with tempfile.TemporaryDirectory(dir=parameters.folder) as temporary:
        path = Path(temporary) / "store.db"
        written = in_process(fill, (parameters, path), progress)
        frame = written.pop("frame")
        size = sum(part.stat().st_size for part in path.parent.glob("store.db*"))
        found = in_process(_recover, (parameters, frame, path), progress)
    return {**written, "store_mb": round(size / _MB, 1), **found}


def in_process(work: Callable[..., None], arguments: tuple[Any, ...], progress: Progress) -> Row:
    """Run a function in its own process, which sends its progress and, at the end, its row."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(*arguments, there))
    process.start()
    there.close()
    try:
        while isinstance(message := here.recv(), tuple):
            progress(*message)
    except EOFError:
        process.join()
        raise BenchError(f"a process of the benchmark ended with {process.exitcode}") from None
    process.join()
    row: Row = message
    return row


# -- in the process that writes ------------------------------------------------------------------


def fill(parameters: RecoveryParameters, path: Path, report: Connection) -> None:
    """Write a store."""
    workload = RecoveryWorkload(parameters)
    spent = {"objects": 0.0, "subscriptions": 0.0}
    for stage, done, total, seconds in workload.fill(SqliteStore(path, workload.frame)):
        spent[stage] = seconds
        report.send((f"{stage} stored", done, total))
    report.send(
        {
            "frame": workload.frame,
            "objects_committed_per_s": round(parameters.objects / spent["objects"]),
            "subscriptions_committed_per_s": round(parameters.subscriptions / spent["subscriptions"]),
        }
    )
    report.close()
    os._exit(0)  # nothing is closed, the log stays as it is


# -- in the process that recovers ----------------------------------------------------------------


def _recover(parameters: RecoveryParameters, frame: Frame, path: Path, report: Connection) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as trial:
        _rehearse(parameters.changed(objects=_TRIAL, subscriptions=_TRIAL), Path(trial) / "store.db")
    gc.collect()
    before = _rss_bytes()
    began = time.perf_counter()
    store = SqliteStore(path, frame)
    opened_s = time.perf_counter() - began
    coordinator = Coordinator(frame, None, options_of(frame))
    watch = _Watch(store.recover(), parameters, report)
    coordinator.recover(watch.recovered)
    seconds = time.perf_counter() - began
    rss_bytes = _rss_bytes()
    began = time.perf_counter()
    store.commit([], coordinator.matching.now_ms)
    row = {
        "seconds": round(seconds, 2),
        "open_s": round(opened_s, 2),
        "objects_s": round(watch.objects_s, 2),
        "subscriptions_s": round(seconds - opened_s - watch.objects_s, 2),
        "first_commit_ms": round(1e3 * (time.perf_counter() - began), 1),
        "bytes_per_object": round((watch.objects_bytes - before) / parameters.objects),
        "bytes_per_subscription": round((rss_bytes - watch.objects_bytes) / parameters.subscriptions),
        "resident_mb": round(rss_bytes / _MB, 1),
    }
    workload = RecoveryWorkload(parameters)
    row |= _attached(coordinator, workload, report)
    report.send({**row, **_audited(coordinator, workload, report)})
    store.close()


class _Watch:
    """The contents of a store; measures time and memory between objects and subscriptions."""

    def __init__(self, recovered: Recovered, parameters: RecoveryParameters, report: Connection) -> None:
        self._began = time.perf_counter()
        self._report = report
        self.objects_s = 0.0
        self.objects_bytes = 0
        self.recovered = replace(
            recovered,
            objects=self._reported("objects", recovered.objects, parameters.objects),
            subscriptions=self._reported(
                "subscriptions", recovered.subscriptions, parameters.subscriptions
            ),
        )

    def _reported(self, stage: str, parts: Any, total: int) -> Any:  # noqa: ANN401
        done = 0
        for part in parts:
            yield part
            done += len(part)
            self._report.send((f"{stage} back", done, total))
        if stage == "objects":
            self.objects_s = time.perf_counter() - self._began
            self.objects_bytes = _rss_bytes()


def _rehearse(parameters: RecoveryParameters, path: Path) -> None:
    """Fill and recover a small store, so that all kernels are compiled."""
    workload = RecoveryWorkload(parameters)
    store = SqliteStore(path, workload.frame)
    for _ in workload.fill(store):
        pass
    coordinator = Coordinator(workload.frame, None, options_of(workload.frame))
    coordinator.recover(store.recover())
    store.close()


def _rss_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _attached(coordinator: Coordinator, workload: RecoveryWorkload, report: Connection) -> Row:
    """Let devices reconnect in batches: each sends hello, receives its result, and acknowledges it."""
    count = min(workload.parameters.attached, workload.parameters.subscriptions)
    streams = [Stream(counters=coordinator.counters) for _ in range(-(-count // _DEVICES_A_STREAM))]
    gc.collect()
    before = _rss_bytes()
    began = time.perf_counter()
    acceptor = Acceptor(coordinator)
    for first in range(0, count, _DEVICES_A_BATCH):
        accepted = Accepted()
        notified = set()
        for row in range(first, min(first + _DEVICES_A_BATCH, count)):
            stream = streams[row // _DEVICES_A_STREAM]
            acceptor.accept(workload.hello(row, stream), None, accepted)
            notified.add(stream)
        acceptor.finish(accepted)
        for stream in notified:
            for device_id, event in coordinator.router.take(stream, _TAKEN_MAX):
                if isinstance(event, VersionedDelta):
                    coordinator.sessions[device_id].ack(event.version)
            stream.wrote()
        report.send(("devices reconnected", first, count))
    report.send(("devices reconnected", count, count))
    seconds = time.perf_counter() - began
    return {
        "attached": count,
        "attached_per_s": round(count / seconds) if count else None,
        "bytes_more_attached": round((_rss_bytes() - before) / count) if count else None,
    }


def _audited(coordinator: Coordinator, workload: RecoveryWorkload, report: Connection) -> Row:
    """Evaluate some subscriptions and compare them with the oracle; count the missing rows."""
    parameters = workload.parameters
    audit = Audit(workload.subscriptions, workload.frame.maxdist_m)
    report.send(("audit", 0, parameters.audited))
    audit.publish(workload.objects)
    handles = sample(
        parameters.subscriptions, parameters.audited, np.random.default_rng([parameters.seed, 37])
    )
    x_m = workload.subscriptions.x_m[handles - 1]
    y_m = workload.subscriptions.y_m[handles - 1]
    engine = coordinator.matching.engine
    engine.evaluate(Positions(handles, x_m, y_m))
    audit.compare(engine, handles, x_m, y_m)
    report.send(("audit", len(handles), len(handles)))
    missing = parameters.objects - len(engine.objects)
    missing += parameters.subscriptions - engine.subscription_count
    return {"lists_audited": audit.lists, "missing": missing, "mismatches": audit.mismatches + missing}


class RecoveryBenchmark(Benchmark[RecoveryParameters]):
    """Measure the store of the server."""

    VARIANTS = ("sqlite",)

    def measure(self, variant: str, parameters: RecoveryParameters) -> list[Row]:
        """Write a store and recover it."""
        del variant
        sizes = {"subscriptions": parameters.subscriptions, "objects": parameters.objects}
        return [sizes | measure(parameters, self.progress)]
