"""Measure the sizes of the messages between a device and the server, from real ones.

A sample of messages is built as the server and the SDK build them, and measured: payloads are empty,
keywords are written as their numbers. The overhead of gRPC, HTTP/2 and TLS is not counted.
"""

from __future__ import annotations

import statistics
from typing import NamedTuple

import numpy as np

from bench.datasets import Dataset
from index.batches import ObjectBatch
from nearcast.v1 import device_service_pb2, geometry_pb2, objects_pb2, subscriptions_pb2

_SAMPLE = 300
_DEG_PER_M = 1e-5
"""Positions on Earth have the same size everywhere."""
_TIME_MS = 1_790_000_000_000
_ACK_EVERY = 32  # nearcast.protocol.delta_sequence: deltas between two acks


class WireSizes(NamedTuple):
    """Mean sizes in bytes: of whole messages, and of the part of a delta that an object adds."""

    report: float
    ack: float
    locate: float
    delta: float
    entry: float
    drop: float

    def up(self, reports: int, deltas: int) -> float:
        """Return the bytes that devices send."""
        return reports * self.report + deltas / _ACK_EVERY * self.ack

    def down(self, deltas: int, entries: int, drops: int, location_requests: int) -> float:
        """Return the bytes that devices receive."""
        objects = entries * self.entry + drops * self.drop
        return deltas * self.delta + objects + location_requests * self.locate


def wire_sizes(data: Dataset, objects: ObjectBatch, seed: int) -> WireSizes:
    """Build a sample of messages with objects and measure them."""
    chance = np.random.default_rng([seed, 31])
    rows = chance.integers(0, len(objects), _SAMPLE).tolist()
    sizes: list[tuple[int, ...]] = []
    for number, row in enumerate(rows):
        x_m, y_m = float(objects.x_m[row]), float(objects.y_m[row])
        object_id = int(objects.ids[row])
        bare = _delta(number, x_m, y_m, object_id)
        full = _delta(number, x_m, y_m, object_id)
        r_m = float(chance.random() * data.maxdist_m)
        full.add.append(subscriptions_pb2.Entry(object=_object(objects, row), r_m=r_m))
        dropping = _delta(number, x_m, y_m, object_id)
        dropping.drop.append(
            subscriptions_pb2.Drop(
                object_id=object_id, reason=subscriptions_pb2.DropReason.DROP_REASON_OUT_OF_REACH
            )
        )
        bytes_of = [_response(one) for one in (bare, full, dropping)]
        ack = device_service_pb2.AttachRequest(ack=device_service_pb2.Ack(version=32 * number + 32))
        sizes.append(
            (
                _report(number + 1, x_m, y_m).ByteSize(),
                ack.ByteSize(),
                _locate().ByteSize(),
                bytes_of[0],
                bytes_of[1] - bytes_of[0],
                bytes_of[2] - bytes_of[0],
            )
        )
    return WireSizes(*(statistics.fmean(column) for column in zip(*sizes, strict=True)))


def _position(x_m: float, y_m: float) -> geometry_pb2.Position:
    return geometry_pb2.Position(lon=x_m * _DEG_PER_M, lat=y_m * _DEG_PER_M)


def _report(sequence: int, x_m: float, y_m: float) -> device_service_pb2.AttachRequest:
    report = device_service_pb2.Report(
        sequence=sequence, position=_position(x_m, y_m), subscription_ids=[1]
    )
    return device_service_pb2.AttachRequest(report=report)


def _locate() -> device_service_pb2.AttachResponse:
    return device_service_pb2.AttachResponse(locate=device_service_pb2.Locate(subscription_ids=[1]))


def _object(objects: ObjectBatch, row: int) -> objects_pb2.Object:
    x_m, y_m = float(objects.x_m[row]), float(objects.y_m[row])
    return objects_pb2.Object(
        id=int(objects.ids[row]),
        position=_position(x_m, y_m),
        point=geometry_pb2.Point(x_m=x_m, y_m=y_m),
        keywords=[str(word) for word in objects.keywords.row(row).tolist()],
        created_ms=_TIME_MS,
        expiry_ms=2 * _TIME_MS,
    )


def _delta(version: int, x_m: float, y_m: float, reach_id: int) -> subscriptions_pb2.Delta:
    return subscriptions_pb2.Delta(
        version=version,
        subscription_id=1,
        anchor=geometry_pb2.Point(x_m=x_m, y_m=y_m),
        reach=subscriptions_pb2.Reach(length_m=abs(x_m) + 1.0, object_id=reach_id),
        cause=subscriptions_pb2.Cause.CAUSE_REPORTED,
        report_sequence=version,
        time_ms=_TIME_MS,
    )


def _response(delta: subscriptions_pb2.Delta) -> int:
    return int(device_service_pb2.AttachResponse(delta=delta).ByteSize())
