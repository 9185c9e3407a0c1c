"""`bench publish`: durable objects a second, through the store alone and through all of the server.

`store` commits rows, one batch after the other. `server` is the server without its transport: publishers
that each wait for their answer, planning, group commit, engine and sessions. Half of the objects are
there before, so that subscriptions reach no further than they would; nobody takes what devices are sent.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.audits import Audit, sample
from bench.datasets import keyword_sets
from bench.recovery.workload import RecoveryParameters, RecoveryWorkload, named, options_of
from bench.reports import Progress, Row
from bench.variants import chosen
from index.batches import Ints
from server.commands import command as c
from server.core.coordinator import Coordinator
from server.model import LiveObject, NewObject, Place, TopK
from server.runtime.command_loop import CommandLoop
from server.session import Outbox
from server.store import SqliteStore

VARIANTS = ("store", "server")

_TTL_MS = 24 * 3600 * 1000
_BEFORE = 1_000
"""Objects a request, of those that are there before."""
_AUDITED = 50


@dataclass(frozen=True, slots=True)
class PublishParameters:
    """Size and shape of a run.

    Parameters
    ----------
    objects
        How many are published while the clock runs; as many are there before.
    subscriptions
        How many devices listen, with one each.
    publishers
        Those that publish at once, each waiting for its answer before it goes on.
    """

    objects: int = 100_000
    subscriptions: int = 10_000
    publishers: int = 16
    data: str = "synthetic"
    payload_bytes: int = 64
    k_max: int = 10
    seed: int = 1

    def workload(self) -> RecoveryWorkload:
        """Draw objects and subscriptions."""
        return RecoveryWorkload(
            RecoveryParameters(
                2 * self.objects,
                self.subscriptions,
                data=self.data,
                payload_bytes=self.payload_bytes,
                k_max=self.k_max,
                seed=self.seed,
            )
        )


def measure(
    variant: str,
    batch: int,
    workload: RecoveryWorkload,
    parameters: PublishParameters,
    folder: Path | None,
    progress: Progress,
) -> Row:
    """Measure one way of publishing, with so many objects a request."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        store = SqliteStore(Path(temporary) / "store.db", workload.frame)
        try:
            if variant == "store":
                row = _through_store(store, batch, workload, parameters)
            else:
                row = asyncio.run(_Run(store, batch, workload, parameters, progress).run())
        finally:
            store.close()
    return row


def _through_store(
    store: SqliteStore, batch: int, workload: RecoveryWorkload, parameters: PublishParameters
) -> Row:
    chance = random.Random(parameters.seed)
    spent: list[float] = []
    for first in range(0, parameters.objects, batch):
        end = min(first + batch, parameters.objects)
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
        batch: int,
        workload: RecoveryWorkload,
        parameters: PublishParameters,
        progress: Progress,
    ) -> None:
        self._store = store
        self._batch = batch
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
        # What is compiled or loaded at the first use is not measured.
        await self._publish(self._requests(count, count + _BEFORE, self._batch))
        self._spent.clear()
        self._done = 0
        requests = self._requests(min(count + _BEFORE, 2 * count), 2 * count, self._batch)
        measured = 2 * count - min(count + _BEFORE, 2 * count)
        began = time.perf_counter()
        await asyncio.gather(*(self._publish(requests) for _ in range(self._parameters.publishers)))
        seconds = time.perf_counter() - began
        self._command_loop.stop()
        await pumping
        return {**_figures(measured, seconds, self._spent), **self._audited()}

    def _requests(self, first: int, end: int, size: int) -> Iterator[tuple[int, c.Publish]]:
        """Make requests, each when it is its turn: publishers share this."""
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
        """Compare buffers of some devices with the oracle; see that what was acknowledged is on disk."""
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


def run(
    progress: Progress,
    *,
    variants: Sequence[str],
    batches: Sequence[int],
    folder: Path | None,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Measure variants at each size of a request; `shape` are fields of PublishParameters.

    Raises
    ------
    BenchError
        If a variant is not known, or a file is not there.
    """
    parameters = PublishParameters(**shape)
    wanted = [(name, batch) for name in chosen(variants, VARIANTS) for batch in batches]
    workload = parameters.workload()
    rows: list[Row] = []
    for number, (name, batch) in enumerate(wanted):
        progress("runs", number, len(wanted))
        row = measure(name, batch, workload, parameters, folder, progress)
        is_server = name == "server"
        given = {
            "data": parameters.data,
            "objects": parameters.objects,
            "objects_per_request": batch,
            "subscriptions": parameters.subscriptions if is_server else 0,
            "publishers": parameters.publishers if is_server else 1,
        }
        rows.append({"experiment": "publish", "variant": name, **given, **row})
    progress("runs", len(wanted), len(wanted))
    return rows
