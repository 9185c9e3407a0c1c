"""Builds and sends all requests of a device, with the position that `Location` shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nearcast.model import Counters
from nearcast.protocol.delta_sequence import DeltaSequence
from nearcast.protocol.motion import UNKNOWN_MOTION, Motion
from nearcast.protocol.specs import spec_message
from nearcast.v1 import device_service_pb2
from safe_region.earth.frame import Area, Frame

if TYPE_CHECKING:
    from nearcast.protocol.clock import Clock
    from nearcast.protocol.location import Location, SharedLocation
    from nearcast.protocol.subscription import Subscription

_UNKNOWN_FRAME = Frame(Area(0.0, 0.0, 0.0, 0.0), 0.0, 0.0, 0.0, 0.0, 1.0)

Request = device_service_pb2.AttachRequest


class RequestSender:
    """Sends the requests of one device.

    Parameters
    ----------
    location
        Position of the device, and the part of it that may be sent.
    send
        Queues a request for the stream.
    counters
        Counters of bytes and reports.
    clock
        Server time, for `sent_ms`.
    versions
        Applied deltas. Requests acknowledge them, so that the server need not keep them.
    """

    def __init__(
        self,
        location: Location,
        send: Callable[[Request], None],
        counters: Counters,
        clock: Clock,
        versions: DeltaSequence,
    ) -> None:
        self.frame = _UNKNOWN_FRAME
        self.margin_m_max = math.inf
        """Largest margin that the server accepts. The margin of a poorer fix is cut to it."""
        self._location = location
        self._send = send
        self._counters = counters
        self._report_sequence = 0
        self._ping_number = 0
        self._clock = clock
        self._sequence = versions
        self.sent_ms = 0
        """Steady time of the last request."""

    def hello(self, device_id: str, nonce: bytes, *, take_over: bool = False) -> None:
        """Send a hello with the device id and the applied version."""
        shared, margin_m = self._shown()
        hello = device_service_pb2.Hello(
            device_id=device_id,
            instance_nonce=nonce,
            version=self._sequence.acknowledged(),
            position=shared.position(),
            margin_m=margin_m,
            epoch=self._sequence.epoch,
            take_over=take_over,
        )
        self._send_request(Request(hello=hello))

    def subscribe(self, subscription: Subscription) -> None:
        """Request a subscription, or its change to another spec."""
        change = subscription.change
        spec = subscription.spec if change is None else change.spec
        if change is not None:
            change.sent()
        shared, margin_m = self._shown()
        subscription.mark_sent(shared)
        subscribe = device_service_pb2.Subscribe(
            subscription_id=subscription.id,
            spec=spec_message(spec),
            position=shared.position(),
            margin_m=margin_m,
            name=subscription.name,
        )
        self._send_request(Request(subscribe=subscribe))

    def unsubscribe(self, subscription_id: int) -> None:
        """Request the end of a subscription."""
        unsubscribe = device_service_pb2.Unsubscribe(subscription_id=subscription_id)
        self._send_request(Request(unsubscribe=unsubscribe))

    def report(
        self,
        subscriptions: Sequence[Subscription],
        motion: Motion = UNKNOWN_MOTION,
    ) -> None:
        """Report the position for these subscriptions. A private device sends no heading and speed."""
        self._report_sequence += 1
        self._counters.reports += 1
        shared, margin_m = self._shown()
        for subscription in subscriptions:
            subscription.mark_sent(shared, self._report_sequence)
        if self._location.is_private:
            motion = UNKNOWN_MOTION
        report = device_service_pb2.Report(
            sequence=self._report_sequence,
            position=shared.position(),
            subscription_ids=[subscription.id for subscription in subscriptions],
            heading_deg=motion.heading_deg,
            speed_mps=motion.speed_mps,
            margin_m=margin_m,
            version=self._sequence.acknowledged(),
        )
        self._send_request(Request(report=report))

    def ack(self) -> None:
        """Acknowledge the applied deltas."""
        self._send_request(Request(ack=device_service_pb2.Ack(version=self._sequence.acknowledged())))

    def ping(self) -> int:
        """Send a ping; return its number, which the pong repeats."""
        self._ping_number += 1
        ping = device_service_pb2.Ping(number=self._ping_number, version=self._sequence.acknowledged())
        self._send_request(Request(ping=ping))
        return self._ping_number

    def _shown(self) -> tuple[SharedLocation, float]:
        shared = self._location.shared(self.frame)
        return shared, min(shared.margin_m, self.margin_m_max)

    def _send_request(self, request: Request) -> None:
        self.sent_ms = self._clock.steady_ms()
        self._counters.bytes_sent += request.ByteSize()
        self._send(request)
