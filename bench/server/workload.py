"""The messages of the load: a city's objects, a subscription a device, a round of reports for each.

Messages are serialised before they are needed, so that sending one costs the load generator only the
call. A device's reports go round a polygon of `ROUND` corners, one `STEP_M` after the other: about the
distance for which devices stay in one region (`nearcast bench run silence`: 10 to 13 reports an hour at
car speed).
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Iterator

import numpy as np

from bench.datasets import Dataset, distinct_subscriptions, keyword_sets
from index.batches import ObjectBatch
from nearcast.v1 import device_service_pb2, geometry_pb2, objects_pb2, subscriptions_pb2
from nearcast.v1.publisher_service_pb2 import PublishRequest
from safe_region.earth.frame import Area, Frame
from safe_region.scoring.formulas import Similarity

ROUND = 16
STEP_M = 1_000.0
PUBLISHED_MAX = 1_000
"""Maximum objects of a request: the server's limit."""
PUSHED_TTL_MS = 5_000
_STAMP = struct.Struct("<q")
_PUBLISHED = (subscriptions_pb2.CAUSE_PUBLISHED, subscriptions_pb2.CAUSE_REPLACED)
_PUSHED_M = 500.0
RANGE_M = 600.0
"""Radius of ranges; objects published for a device are within it."""
_NEARER = 0.999
"""Each object published for a device is nearer than the last one, so that it changes the result."""
_FOREVER_MS = 24 * 3600 * 1000
_SPEED_MPS = 12.0
_LAT_DEG = 36.0
_WIDER = 1.001
_SUBSCRIPTION_ID = 1

VERSION = 2**40
"""Acknowledges all deltas of a device: the load generator does not decode their versions."""
SEQUENCE = 2**34 + 0x155_5555
"""Placeholder in reports for the number that the line assigns."""

AttachRequest = device_service_pb2.AttachRequest
FleetRequest = device_service_pb2.AttachFleetRequest


class Workload:
    """Messages of a number of devices.

    Parameters
    ----------
    data
        Data set of objects and subscriptions.
    objects, devices
        Their numbers.
    k_max
        k is uniform from 1 to this.
    seed
        Seed of all random draws.
    boolean_share
        Share of the devices, the last ones, that have a boolean subscription in place of a top-k one: for
        objects with all of its keywords, in a circle around their first positions. They never report.
    """

    def __init__(
        self,
        data: Dataset,
        objects: int,
        devices: int,
        k_max: int,
        seed: int,
        boolean_share: float = 0.0,
    ) -> None:
        chance = np.random.default_rng([seed, 31])
        self.devices = devices
        self.reporting = devices - round(devices * boolean_share)
        """Number of devices, the first ones, that have a top-k subscription."""
        centre_x, centre_y, half = data.square()
        self._centre = (centre_x, centre_y)
        self.area = _area(half * _WIDER)
        self.frame = Frame.of(self.area)
        self.objects = data.objects(objects, 1, chance)
        self.subscribed = distinct_subscriptions(data, devices, k_max, Similarity.JACCARD, chance)
        self._words = keyword_sets(self.subscribed.interests.keywords)
        self._turn = chance.uniform(0.0, math.tau, devices)
        self._half = half
        self._pushed = _in_turn(devices, chance)
        self._pushed_count = [0] * devices

    def device_id(self, device: int) -> str:
        """Return a device's name."""
        return f"device-{device:06d}"

    def place(self, device: int, corner: int) -> tuple[float, float]:
        """Return the plane position of a device at a corner of its round."""
        radius_m = STEP_M / (2.0 * math.sin(math.pi / ROUND))
        angle = float(self._turn[device]) + math.tau * corner / ROUND
        x_m = float(self.subscribed.x_m[device]) - self._centre[0] + radius_m * math.cos(angle)
        y_m = float(self.subscribed.y_m[device]) - self._centre[1] + radius_m * math.sin(angle)
        return min(max(x_m, -self._half), self._half), min(max(y_m, -self._half), self._half)

    def keywords(self, device: int) -> list[str]:
        """Return the keywords of a device's subscription."""
        return [f"word{number}" for number in self._words[device].tolist()]

    def _position(self, x_m: float, y_m: float) -> geometry_pb2.Position:
        lon, lat = self.frame.unproject(x_m, y_m)
        return geometry_pb2.Position(lon=lon, lat=lat)

    def hello(self, device: int) -> AttachRequest:
        """Return a device's first message."""
        return AttachRequest(
            hello=device_service_pb2.Hello(
                device_id=self.device_id(device),
                instance_nonce=b"load",
                position=self._position(*self.place(device, 0)),
            )
        )

    def subscribe(self, device: int) -> AttachRequest:
        """Return a device's second message."""
        place = self._position(*self.place(device, 0))
        if device >= self.reporting:
            clause = subscriptions_pb2.Clause(required=self.keywords(device))
            circle = geometry_pb2.Circle(center=place, radius_m=RANGE_M)
            spec = subscriptions_pb2.SubscriptionSpec(
                boolean=subscriptions_pb2.Boolean(clauses=[clause], circle=circle)
            )
        else:
            spec = subscriptions_pb2.SubscriptionSpec(
                top_k=subscriptions_pb2.TopK(
                    keywords=self.keywords(device),
                    k=int(self.subscribed.k[device]),
                    alpha=float(self.subscribed.alpha[device]),
                    similarity=subscriptions_pb2.SIMILARITY_JACCARD,
                )
            )
        return AttachRequest(
            subscribe=device_service_pb2.Subscribe(
                subscription_id=_SUBSCRIPTION_ID, spec=spec, position=place
            )
        )

    def report(self, device: int, corner: int) -> AttachRequest:
        """Return the report of a device at a corner."""
        angle = float(self._turn[device]) + math.tau * (corner + 0.5) / ROUND
        return AttachRequest(
            report=device_service_pb2.Report(
                sequence=SEQUENCE,
                position=self._position(*self.place(device, corner)),
                subscription_ids=[_SUBSCRIPTION_ID],
                heading_deg=math.degrees(-angle) % 360.0,
                speed_mps=_SPEED_MPS,
                version=VERSION,
            )
        )

    def rounds(self) -> list[list[bytes]]:
        """Return the reports of a round, for each device that reports."""
        return [
            [self.report(device, corner).SerializeToString() for corner in range(ROUND)]
            for device in range(self.reporting)
        ]

    def _near(self, device: int) -> geometry_pb2.Position:
        """Return a position nearer to a device's first one than the last returned one."""
        self._pushed_count[device] += 1
        x_m, y_m = self.place(device, 0)
        away_m = _PUSHED_M * _NEARER ** self._pushed_count[device]
        return self._position(x_m - math.copysign(away_m, x_m), y_m)

    # -- objects ---------------------------------------------------------------------------------

    def requests(self) -> Iterator[PublishRequest]:
        """Yield requests, of maximum size, that publish all initial objects."""
        words = keyword_sets(self.objects.keywords)
        for start in range(0, len(self.objects), PUBLISHED_MAX):
            stop = min(start + PUBLISHED_MAX, len(self.objects))
            columns = (self.objects.x_m, self.objects.y_m, words)
            yield PublishRequest(
                sequence=start,
                objects=[
                    objects_pb2.NewObject(
                        position=self._position(*self.inside(float(x_m), float(y_m))),
                        keywords=[f"word{number}" for number in row.tolist()],
                        ttl_ms=_FOREVER_MS,
                    )
                    for x_m, y_m, row in zip(*(column[start:stop] for column in columns), strict=True)
                ],
            )

    def inside(self, x_m: float, y_m: float) -> tuple[float, float]:
        """Return a position of the data as one of the frame, within the area."""
        x_m, y_m = x_m - self._centre[0], y_m - self._centre[1]
        return min(max(x_m, -self._half), self._half), min(max(y_m, -self._half), self._half)

    def pushed(self, count: int, device: int | None = None, payload: int = 0) -> PublishRequest:
        """Return a request with objects that match devices, stamped with the time.

        Parameters
        ----------
        count
            Number of objects, each for one device.
        device
            The device that they match; by default the devices in turn.
        payload
            Bytes in addition to the stamp.
        """
        stamp = _STAMP.pack(time.perf_counter_ns()) + bytes(payload)
        objects = []
        for _ in range(count):
            receiver = next(self._pushed) if device is None else device
            objects.append(
                objects_pb2.NewObject(
                    position=self._near(receiver),
                    keywords=self.keywords(receiver),
                    ttl_ms=PUSHED_TTL_MS,
                    payload=stamp,
                )
            )
        return PublishRequest(objects=objects)


def sent_ns(message: bytes) -> int:
    """Return the send time of the oldest newly published object in a message; 0 if there is none."""
    delta = device_service_pb2.AttachResponse.FromString(message).delta
    if delta.cause not in _PUBLISHED:
        return 0
    payloads = [entry.object.payload for entry in delta.add]
    return min((_STAMP.unpack_from(one)[0] for one in payloads if one), default=0)


def version_of(message: bytes) -> int:
    """Return the version of a delta, 0 for other messages."""
    return device_service_pb2.AttachResponse.FromString(message).delta.version


def _in_turn(devices: int, chance: np.random.Generator) -> Iterator[int]:
    """Yield devices in random order, repeatedly."""
    order = chance.permutation(devices).tolist()
    while True:
        yield from order


def _area(half_m: float) -> Area:
    """Return an area whose sides are `half_m` from its centre."""
    unit = Frame.of(Area(0.0, _LAT_DEG - 1.0, 1.0, _LAT_DEG + 1.0))
    lon, lat = half_m / unit.x_m_per_deg, half_m / unit.y_m_per_deg
    return Area(-lon, _LAT_DEG - lat, lon, _LAT_DEG + lat)


def object_batch(workload: Workload) -> ObjectBatch:
    """Return the objects at their positions in the frame; the server assigns ids in this order."""
    objects = workload.objects
    places = [
        workload.inside(x, y) for x, y in zip(objects.x_m.tolist(), objects.y_m.tolist(), strict=True)
    ]
    # The positions that the server computes, through degrees and back.
    points = [workload.frame.project(*workload.frame.unproject(*place)) for place in places]
    return ObjectBatch(
        objects.ids,
        np.array([point.x_m for point in points]),
        np.array([point.y_m for point in points]),
        objects.keywords,
    )
