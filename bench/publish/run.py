"""Measure durable objects a second, through the store alone and through the whole server.

`store` commits rows, one batch after the other. `server` is the server without its transport: planning,
group commit, engine and sessions, with publishers that each wait for their response. Half of the objects
are published before, so that subscriptions reach no farther than usual; no stream takes the deltas of
devices.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.audits import Audit, sample
from bench.benchmark import Benchmark, Progress, Row
from bench.datasets import keyword_sets
from bench.publish.experiments import PublishParameters
from bench.recovery.experiments import RecoveryParameters
from bench.recovery.workload import RecoveryWorkload, named, options_of
from index.batches import Ints
from server import command as c
from server.core.coordinator import Coordinator
from server.model import LiveObject, NewObject, Place, TopK
from server.runtime.command_loop import CommandLoop
from server.session import Outbox
from server.store import SqliteStore

_TTL_MS = 24 * 3600 * 1000
_BEFORE = 1_000
"""Objects a request, for those published before the measurement."""
_AUDITED = 50


def workload_of(parameters: PublishParameters) -> RecoveryWorkload:
    """Draw objects and subscriptions."""
    drawn = RecoveryParameters(
        objects=2 * parameters.objects,
        subscriptions=parameters.subscriptions,
        data=parameters.data,
        payload_bytes=parameters.payload_bytes,
        k_max=parameters.k_max,
        seed=parameters.seed,
    )
    return RecoveryWorkload(drawn)


class PublishBenchmark(Benchmark[PublishParameters]):
    """Measure a store alone, and a whole server without its transport."""

    VARIANTS = ("store", "server")

    def measure(self, variant: str, parameters: PublishParameters) -> list[Row]:
        """Measure one way of publishing, with a given number of objects a request."""
        any_batch = parameters.changed(batch=1)
        workload = self.kept("workload", any_batch, lambda: workload_of(any_batch))
        is_server = variant == "server"
        with tempfile.TemporaryDirectory(dir=parameters.folder) as temporary:
            store = SqliteStore(Path(temporary) / "store.db", workload.frame)
            try:
                if is_server:
                    figures = asyncio.run(_Run(store, workload, parameters, self.progress).run())
                else:
                    figures = _through_store(store, workload, parameters)
            finally:
                store.close()
        return [
            {
                "objects": parameters.objects,
                "subscriptions": parameters.subscriptions if is_server else 0,
                "publishers": parameters.publishers if is_server else 1,
                **figures,
            }
        ]


def _through_store(store: SqliteStore, workload: RecoveryWorkload, parameters: PublishParameters) -> Row:
    chance = random.Random(parameters.seed)
    spent: list[float] = []
    for first in range(0, parameters.objects, parameters.batch):
        end = min(first + parameters.batch, parameters.objects)
        rows = workload.object_rows(first, end, chance)
        began = time.perf_counter()
        store.commit(rows, 1)
        spent.append(time.perf_counter() - began)
    missing = parameters.objects - len(_ids_on_disk(store))
    return {**_figures(parameters.objects, sum(spent), spent), "lists_audited": 0, "mismatches": missing}


class _Run:
    """A server without a transport, and its publishers."""

    def __init__(
        self,
        store: SqliteStore,
        workload: RecoveryWorkload,
        parameters: PublishParameters,
        progress: Progress,
    ) -> None:
        self._store = store
        self._workload = workload
        self._parameters = parameters
        self._progress = progress
        self._board = Coordinator(workload.frame, None, options_of(workload.frame))
        self._command_loop = CommandLoop(self._board, store)
        self._ids: Ints = np.zeros(2 * parameters.objects, dtype=np.int64)
        self._spent: list[float] = []
        self._done = 0

    async def run(self) -> Row:
        """Publish, subscribe, publish against the clock, audit."""
        pumping = asyncio.create_task(self._command_loop.run())
        count = self._parameters.objects
        await self._publish(self._requests(0, count, _BEFORE))
        await self._subscribe()
        # This compiles and loads all code that is compiled or loaded at its first use, before the
        # clock runs.
        await self._publish(self._requests(count, count + _BEFORE, self._parameters.batch))
        self._spent.clear()
        self._done = 0
        requests = self._requests(min(count + _BEFORE, 2 * count), 2 * count, self._parameters.batch)
        measured = 2 * count - min(count + _BEFORE, 2 * count)
        began = time.perf_counter()
        await asyncio.gather(*(self._publish(requests) for _ in range(self._parameters.publishers)))
        seconds = time.perf_counter() - began
        self._command_loop.stop()
        await pumping
        return {**_figures(measured, seconds, self._spent), **self._audited()}

    def _requests(self, first: int, end: int, size: int) -> Iterator[tuple[int, c.Publish]]:
        """Yield requests, each created when it is requested: publishers share this iterator."""
        chance = random.Random(first)
        for start in range(first, min(end, len(self._ids)), size):
            rows = self._workload.object_rows(start, min(start + size, end), chance)
            yield start, c.Publish(tuple(_new(row.item) for row in rows))

    async def _publish(self, requests: Iterator[tuple[int, c.Publish]]) -> None:
        total = self._parameters.objects
        for start, command in requests:
            began = time.perf_counter()
            ids: Sequence[int] = await self._command_loop.execute(command)
            self._spent.append(time.perf_counter() - began)
            self._ids[start : start + len(ids)] = ids
            self._done += len(ids)
            if self._done % _BEFORE < len(ids):
                self._progress("published", min(self._done, total), total)

    async def _subscribe(self) -> None:
        drawn = self._workload.subscriptions
        words = keyword_sets(drawn.interests.keywords)
        for row, numbers in enumerate(words):
            x_m, y_m = float(drawn.x_m[row]), float(drawn.y_m[row])
            lon, lat = self._workload.frame.unproject(x_m, y_m)
            spec = TopK(named(numbers.tolist()), int(drawn.k[row]), float(drawn.alpha[row]))
            line, device = Outbox(), f"device-{row:08d}"
            place = Place(lon, lat)
            await self._command_loop.enqueue(c.Hello(line, device, b"n", 0, place))
            await self._command_loop.enqueue(c.Subscribe(line, device, 1, spec, place))
        await self._command_loop.execute(c.Sync())

    def _audited(self) -> Row:
        """Compare buffers of some devices with the oracle; check that published objects are on disk."""
        missing = len(np.setdiff1d(self._ids, _ids_on_disk(self._store)))
        drawn = self._workload.subscriptions
        audit = Audit(drawn, self._workload.frame.maxdist_m)
        audit.publish(replace(self._workload.objects, ids=self._ids))
        handles = sample(len(drawn.handles), _AUDITED, np.random.default_rng(5))
        engine = self._board.matching.engine
        anchors = engine.bounds(handles)
        audit.compare(engine, handles, anchors.x_m, anchors.y_m)
        return {"lists_audited": audit.lists, "mismatches": audit.mismatches + missing}


def _new(item: LiveObject) -> NewObject:
    return NewObject(item.lon, item.lat, item.keywords, _TTL_MS, item.payload)


def _ids_on_disk(store: SqliteStore) -> Ints:
    parts = [part.ids for part in store.recover().objects]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _figures(objects: int, seconds: float, spent: Sequence[float]) -> Row:
    return {
        "objects_per_s": round(objects / seconds),
        "request_ms_median": round(1e3 * float(np.median(spent)), 2),
        "request_ms_p99": round(1e3 * float(np.quantile(spent, 0.99)), 2),
        "request_ms_max": round(1e3 * max(spent), 2),
    }
