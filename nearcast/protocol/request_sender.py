"""What a device says to the server: all of it passes here, and where it is, as `Whereabouts` shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nearcast.model import Counters
from nearcast.protocol.converters import spec_message
from nearcast.protocol.delta_sequence import Versions
from nearcast.v1 import device_service_pb2
from safe_region.frame import Area, Frame

if TYPE_CHECKING:
    from nearcast.protocol.clock import Clock
    from nearcast.protocol.location import Shown, Whereabouts
    from nearcast.subscription import Subscription

_UNKNOWN_FRAME = Frame(Area(0.0, 0.0, 0.0, 0.0), 0.0, 0.0, 0.0, 0.0, 1.0)

Request = device_service_pb2.AttachRequest


class Voice:
    """One device's requests.

    Parameters
    ----------
    where
        The device's position, and what of it may be told.
    send
        Takes a request for the stream.
    counters
        Where bytes and reports are counted.
    clock
        Tells when something was said.
    versions
        What has been applied: told by the way, so that the server need not keep it.
    """

    def __init__(
        self,
        where: Whereabouts,
        send: Callable[[Request], None],
        counters: Counters,
        clock: Clock,
        versions: Versions,
    ) -> None:
        self.frame = _UNKNOWN_FRAME
        self.margin_m_max = math.inf
        """What the server takes; a fix poorer than that covers what it can."""
        self._where = where
        self._send = send
        self._counters = counters
        self._report_sequence = 0
        self._ping_number = 0
        self._clock = clock
        self._versions = versions
        self.said_ms = 0
        """When something was last said, in steady time."""

    def hello(self, device_id: str, token: str, nonce: bytes) -> None:
        """Say who this is, and which version it has."""
        shown, margin_m = self._shown()
        hello = device_service_pb2.Hello(
            device_id=device_id,
            token=token,
            instance_nonce=nonce,
            version=self._versions.acknowledged(),
            position=shown.position(),
            margin_m=margin_m,
            epoch=self._versions.epoch,
        )
        self._say(Request(hello=hello))

    def subscribe(self, subscription: Subscription) -> None:
        """Ask for a subscription."""
        shown, margin_m = self._shown()
        subscription.said(shown)
        subscribe = device_service_pb2.Subscribe(
            subscription_id=subscription.id,
            spec=spec_message(subscription.spec),
            position=shown.position(),
            margin_m=margin_m,
        )
        self._say(Request(subscribe=subscribe))

    def unsubscribe(self, subscription_id: int) -> None:
        """End a subscription."""
        unsubscribe = device_service_pb2.Unsubscribe(subscription_id=subscription_id)
        self._say(Request(unsubscribe=unsubscribe))

    def report(
        self,
        subscriptions: Sequence[Subscription],
        heading_deg: float | None = None,
        speed_mps: float | None = None,
    ) -> None:
        """Tell where the device is, for these subscriptions. A private one does not tell how it moves."""
        self._report_sequence += 1
        self._counters.reports += 1
        shown, margin_m = self._shown()
        for subscription in subscriptions:
            subscription.said(shown, self._report_sequence)
        is_private = self._where.is_private
        report = device_service_pb2.Report(
            sequence=self._report_sequence,
            position=shown.position(),
            subscription_ids=[subscription.id for subscription in subscriptions],
            heading_deg=None if is_private else heading_deg,
            speed_mps=None if is_private else speed_mps,
            margin_m=margin_m,
            version=self._versions.acknowledged(),
        )
        self._say(Request(report=report))

    def ack(self) -> None:
        """Tell what has been applied."""
        self._say(Request(ack=device_service_pb2.Ack(version=self._versions.acknowledged())))

    def ping(self) -> int:
        """Ask for a sign of life; return the number of the answer."""
        self._ping_number += 1
        ping = device_service_pb2.Ping(number=self._ping_number, version=self._versions.acknowledged())
        self._say(Request(ping=ping))
        return self._ping_number

    def _shown(self) -> tuple[Shown, float]:
        shown = self._where.shown(self.frame)
        return shown, min(shown.margin_m, self.margin_m_max)

    def _say(self, request: Request) -> None:
        self.said_ms = self._clock.steady_ms()
        self._counters.bytes_sent += request.ByteSize()
        self._send(request)
