"""The publisher of a replay: retracts and publishes the objects of a tick."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence

from nearcast import Client
from nearcast.limits import DEFAULT_LIMITS
from simulator.replay.lockstep import TickChanges
from simulator.replay.published_objects import Published, PublishedObjects
from simulator.replay.recording import Recording
from simulator.replay.schedule import Schedule
from simulator.workload.rows import ObjectRow

STAMP = struct.Struct("<q")
"""The payload of every replayed object: the time at which the SDK received it, monotonic nanoseconds."""

DOUBT_MS = 250
"""The error of an instant in real time, with a busy event loop on either side."""

_REQUEST_MAX = DEFAULT_LIMITS.objects_per_request_max


class Publishing:
    """Publishes the objects of a simulation in their order, and records them.

    Parameters
    ----------
    recording
        The tables to replay.
    client
        The connection to the server.
    published
        Records the live objects.
    now_ms
        The server's time; in real time as the SDK knows it.
    doubt_ms
        The time by which an object must outlive an instant to be certainly alive then.
    """

    def __init__(
        self,
        recording: Recording,
        client: Client,
        published: PublishedObjects,
        now_ms: Callable[[], int],
        doubt_ms: int,
    ) -> None:
        self._client = client
        self._publisher = client.publisher()
        self._schedule = Schedule(recording.objects(), recording.world.period_ms)
        self._weights = recording.idf_table() if recording.is_weighed() else None
        self._published = published
        self._now_ms = now_ms
        self._doubt_ms = doubt_ms

    async def tick(self, tick: int) -> TickChanges:
        """Retract and publish the objects that are due.

        Raises
        ------
        nearcast.NearcastError
            If the server cannot be reached or refuses something.
        """
        due = self._schedule.due(tick)
        retracted = await self._retract(due.retractions)
        published = [await self._publish(chunk) for chunk in _distinct_chunks(due.publications)]
        generation = None
        if self._weights is not None:
            generation = await self._client.set_idf(self._weights)
            self._weights = None
        return TickChanges(retracted, published, generation)

    async def _retract(self, rows: Sequence[ObjectRow]) -> list[int]:
        until_ms = self._now_ms() + self._doubt_ms
        found = (self._published.live_id(row, until_ms) for row in rows)
        ids = [object_id for object_id in found if object_id is not None]
        if ids:
            await self._publisher.retract(*ids)
            self._published.retracted(ids)
        return ids

    async def _publish(self, rows: Sequence[ObjectRow]) -> Published:
        payload = STAMP.pack(time.perf_counter_ns())
        since_ms = self._now_ms()
        ids = await self._publisher.publish([row.geo_object(payload) for row in rows])
        batch = Published(rows, ids, since_ms, self._now_ms() + self._doubt_ms)
        self._published.published(batch)
        return batch


def _distinct_chunks(rows: Sequence[ObjectRow]) -> list[list[ObjectRow]]:
    """Split into requests of at most 1,000 objects, none with the same key twice."""
    chunks: list[list[ObjectRow]] = []
    keys: set[str] = set()
    for row in rows:
        if not chunks or len(chunks[-1]) == _REQUEST_MAX or row.object_key in keys:
            chunks.append([])
            keys = set()
        chunks[-1].append(row)
        keys.add(row.object_key)
    return chunks
