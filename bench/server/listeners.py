"""Record the messages of a sample of devices, and compare their results with the oracle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence

import numpy as np

from bench.audits import Audit, sample
from bench.benchmark import Row
from bench.server.lines import Awaited, Line
from bench.server.workload import PUSHED_TTL_MS, RANGE_M, Workload, object_batch
from nearcast.v1.device_service_pb2 import AttachResponse
from nearcast.v1.subscriptions_pb2 import Delta
from safe_region.earth.frame import Point
from safe_region.regions.anchored import AnchoredRegion
from safe_region.regions.region import Buffered

AUDITED = 20
_ANSWER_S = 20.0


class Listeners:
    """A sample of lines whose messages are recorded.

    Parameters
    ----------
    workload
        The subscriptions of the devices.
    lines
        Lines of all devices.
    """

    def __init__(self, workload: Workload, lines: Sequence[Line]) -> None:
        self._workload = workload
        chosen = sample(len(lines), AUDITED, np.random.default_rng(3)) - 1
        self._lines = [lines[number] for number in chosen.tolist()]
        for line in self._lines:
            line.tape = []

    async def audit(self) -> Row:
        """Let the sample report, and compare it; all pushed objects must have expired."""
        received = Awaited()
        speakers = [line for line in self._lines if line.number < self._workload.reporting]

        def on_message(_number: int, _message: bytes) -> tuple[bytes, ...]:
            received.add(1)
            return ()

        for line in speakers:
            line.on_message = on_message
            await line.send(self._workload.report(line.number, 0).SerializeToString())
        await received.reach(len(speakers), _ANSWER_S)
        workload = self._workload
        audit = Audit(workload.subscribed, workload.frame.maxdist_m)
        audit.publish(object_batch(workload))
        for line in self._lines:
            lon_lat = workload.frame.unproject(*workload.place(line.number, 0))
            point = workload.frame.project(*lon_lat)
            if line.number < workload.reporting:
                shown = _shown(line.tape or [], int(workload.subscribed.k[line.number]), point)
                audit.compare_list(line.number + 1, shown, point.x_m, point.y_m)
            else:
                audit.compare_range(
                    line.number + 1, _held(line.tape or []), point.x_m, point.y_m, RANGE_M
                )
        return {"lists_audited": audit.lists, "mismatches": audit.mismatches}


async def expired() -> None:
    """Wait until all pushed objects, which the server has accepted, have expired."""
    await asyncio.sleep(PUSHED_TTL_MS / 1000.0 + 1.0)


def _deltas(tape: Sequence[bytes]) -> Iterator[tuple[Delta, dict[int, Buffered]]]:
    """Yield each delta, and the objects that the device then holds, including expired ones."""
    held: dict[int, Buffered] = {}
    version = 0
    for message in tape:
        response = AttachResponse.FromString(message)
        if response.WhichOneof("event") != "delta" or response.delta.version <= version:
            continue
        delta = response.delta
        version = delta.version
        if delta.snapshot:
            held.clear()
        for drop in delta.drop:
            held.pop(drop.object_id, None)
        for entry in delta.add:
            place = entry.object.point
            held[entry.object.id] = Buffered(
                entry.object.id, place.x_m, place.y_m, entry.r_m, entry.object.expiry_ms
            )
        yield delta, held


def _shown(tape: Sequence[bytes], k: int, point: Point) -> list[int] | None:
    """Return the top-k result that a device shows, None if it knows that it is not exact."""
    region = AnchoredRegion(k)
    now_ms = 0
    for delta, held in _deltas(tape):
        now_ms = delta.time_ms
        alive = [one for one in held.values() if one.expiry_ms > now_ms]
        region.update(
            Point(delta.anchor.x_m, delta.anchor.y_m), delta.reach.length_m, delta.reach.object_id, alive
        )
    evaluation = region.evaluate(point.x_m, point.y_m, now_ms)
    return [object_id for _, object_id in evaluation.best] if evaluation.exact else None


def _held(tape: Sequence[bytes]) -> set[int]:
    """Return the objects that a device holds for its boolean subscription and that have not expired."""
    held: dict[int, Buffered] = {}
    for _, held in _deltas(tape):  # noqa: B007 - the last value is used
        pass
    now_ms = 1000 * int(time.time())
    return {one.object_id for one in held.values() if one.expiry_ms > now_ms}
