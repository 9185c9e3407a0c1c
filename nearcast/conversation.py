"""One device's side of the protocol, without I/O.

Messages go out through a callable and come in through `receive`; time comes from a clock. So the same
conversation runs over a stream of its own, over a fleet's, and in tests without any.

What it keeps true: after every event, each subscription whose result is no longer certain has a report
under way, and only one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from nearcast.clock import Clock
from nearcast.errors import NearcastError, Reason, RefusedError, invalid
from nearcast.model import ChangeReason, Counters, TopK
from nearcast.subscription import Subscription
from nearcast.v1 import device_service_pb2, subscriptions_pb2
from nearcast.wire import frame, is_same_spec, number, position_message, spec_message, top_k
from safe_region.frame import Area, Frame, Point

_log = logging.getLogger(__name__)

_ACK_EVERY = 32
"""Deltas between acks: often enough for a short resume, rare enough to cost nothing."""

_UNKNOWN_FRAME = Frame(Area(0.0, 0.0, 0.0, 0.0), 0.0, 0.0, 0.0, 0.0, 1.0)

Request = device_service_pb2.AttachRequest
Response = device_service_pb2.AttachResponse


class Conversation:
    """The state of one device.

    Parameters
    ----------
    device_id
        The device's name on the server.
    nonce
        Random bytes of this instance of the app.
    token
        What the server asks for; may be empty.
    clock
        Server time.
    send
        Takes a request for the stream. Only called while online or by `connect`.
    lon, lat
        Where the device is, in degrees.
    """

    def __init__(
        self,
        device_id: str,
        nonce: bytes,
        token: str,
        clock: Clock,
        send: Callable[[Request], None],
        lon: float,
        lat: float,
    ) -> None:
        if not isinstance(device_id, str) or not device_id:
            raise invalid("device_id", device_id, "a text that is not empty")
        self.device_id = device_id
        self.clock = clock
        self.counters = Counters()
        self.frame = _UNKNOWN_FRAME
        self.point = Point(0.0, 0.0)
        self.subscriptions: dict[int, Subscription] = {}
        self.is_online = False
        self.was_online = False
        self.error: NearcastError | None = None
        self.on_event: Callable[[], None] = lambda: None
        self._nonce = nonce
        self._token = token
        self._send = send
        self._lon = number(lon, "position.lon")
        self._lat = number(lat, "position.lat")
        self._version = 0
        self._welcome_version = 0
        self._acked_version = 0
        self._report_sequence = 0
        self._next_subscription_id = 1
        # Ended here, but the server may not know yet; and whom to tell when it does.
        self._ended_ids: set[int] = set()
        self._on_ended: dict[int, Callable[[], None]] = {}
        self._pongs: dict[int, Callable[[], None]] = {}
        self._ping_number = 0

    # -- the stream ------------------------------------------------------------------------------

    @property
    def is_caught_up(self) -> bool:
        """Whether all that the last welcome announced has arrived."""
        return self.is_online and self._version >= self._welcome_version

    @property
    def is_waiting(self) -> bool:
        """Whether an answer of the server is due."""
        return not self.is_caught_up or any(
            subscription.is_waiting for subscription in self.subscriptions.values()
        )

    def connect(self) -> None:
        """Say hello on a new stream."""
        hello = device_service_pb2.Hello(
            device_id=self.device_id,
            token=self._token,
            instance_nonce=self._nonce,
            version=self._version,
            position=position_message(self._lon, self._lat),
        )
        self._out(Request(hello=hello))

    def disconnect(self) -> None:
        """Note that the stream is gone."""
        self.is_online = False
        for subscription in self.subscriptions.values():
            subscription.interrupted()
            subscription.notice(ChangeReason.RESUMED)
        for answered in [*self._pongs.values(), *self._on_ended.values()]:
            answered()
        self._pongs.clear()
        self._on_ended.clear()
        self.on_event()

    def fail(self, error: NearcastError) -> None:
        """End for good."""
        self.error = error
        self.disconnect()
        for subscription in list(self.subscriptions.values()):
            subscription.end(error)

    def receive(self, response: Response) -> None:
        """Take what the server says."""
        self.counters.bytes_received += response.ByteSize()
        match response.WhichOneof("event"):
            case "delta":
                self._receive_delta(response.delta)
            case "welcome":
                self._receive_welcome(response.welcome)
            case "pong":
                self._pongs.pop(response.pong.number, lambda: None)()
            case "unsubscribed":
                self._ended(response.unsubscribed.subscription_id)
            case "rejection":
                self._receive_rejection(response.rejection)
            case "locate":
                self._receive_locate(response.locate)
            case "detached":
                self._receive_detached(RefusedError.from_wire(response.detached.error))
            case None:
                _log.debug("an event of a newer server is ignored")
        self.on_event()

    def _receive_welcome(self, welcome: device_service_pb2.Welcome) -> None:
        self.clock.adjust(welcome.time_ms, is_virtual=welcome.virtual_time)
        self.frame = frame(welcome.frame)
        self.point = self.frame.project(self._lon, self._lat)
        self.is_online = self.was_online = True
        self._welcome_version = welcome.version
        if not welcome.resumed and not welcome.subscriptions:
            self._version = welcome.version
        listed = {one.subscription_id: one.spec for one in welcome.subscriptions}
        self._next_subscription_id = max([self._next_subscription_id, *(n + 1 for n in listed)])
        for subscription_id, spec in listed.items():
            self._reconcile(subscription_id, spec)
        self._ended_ids &= listed.keys()
        for subscription in self.subscriptions.values():
            if subscription.id not in listed:
                subscription.forgotten()
                self._send_subscribe(subscription)
        self._check(self.subscriptions.values())

    def _reconcile(self, subscription_id: int, spec: subscriptions_pb2.SubscriptionSpec) -> None:
        """Agree with the server on what one of its subscriptions is here."""
        if subscription_id in self._ended_ids:
            self._send_unsubscribe(subscription_id)
            return
        mine = self.subscriptions.get(subscription_id)
        if mine is not None:
            if is_same_spec(mine.spec, spec):
                return
            # Another instance took the number: mine goes on under the next free one.
            mine.id = self._next_subscription_id
            self._next_subscription_id += 1
            self.subscriptions[mine.id] = mine
        self.subscriptions[subscription_id] = Subscription(self, subscription_id, top_k(spec))

    def _receive_delta(self, delta: subscriptions_pb2.Delta) -> None:
        if delta.version <= self._version:
            return  # a duplicate
        if delta.version != self._version + 1 and not delta.snapshot:
            raise NearcastError(
                f"delta {delta.version} follows {self._version}: the stream has lost something"
            )
        was_caught_up = self.is_caught_up
        self._version = delta.version
        self.clock.observe(delta.time_ms)
        self.counters.deltas += 1
        subscription = self.subscriptions.get(delta.subscription_id)
        if subscription is not None:
            self.counters.objects += subscription.apply(delta)
        if self._version - self._acked_version >= _ACK_EVERY:
            self._acked_version = self._version
            self._out(Request(ack=device_service_pb2.Ack(version=self._version)))
        if not was_caught_up and self.is_caught_up:
            self._check(self.subscriptions.values())
        elif subscription is not None:
            self._check((subscription,))

    def _receive_locate(self, locate: device_service_pb2.Locate) -> None:
        """Say where the device is, unless that is under way: then it comes after the question."""
        asked = [self.subscriptions.get(number) for number in locate.subscription_ids]
        self._report([one for one in asked if one is not None and not one.is_waiting])

    def _receive_detached(self, error: RefusedError) -> None:
        if error.reason is Reason.SILENT:
            self.disconnect()
            self.connect()
        elif error.reason is not Reason.DRAINING:
            self.fail(error)

    def _receive_rejection(self, rejection: device_service_pb2.Rejection) -> None:
        error = RefusedError.from_wire(rejection.error)
        match rejection.command:
            case device_service_pb2.Rejection.COMMAND_HELLO:
                self.fail(error)
            case device_service_pb2.Rejection.COMMAND_SUBSCRIBE:
                refused = self.subscriptions.pop(rejection.number, None)
                if refused is not None:
                    refused.end(error)
            case device_service_pb2.Rejection.COMMAND_REPORT:
                for subscription in self.subscriptions.values():
                    if subscription.report_failed(rejection.number):
                        subscription.forgotten()
                        self._send_subscribe(subscription)
            case device_service_pb2.Rejection.COMMAND_UNSUBSCRIBE:
                self._ended(rejection.number)
            case _:
                _log.warning("device %s: %s", self.device_id, error)

    def _ended(self, subscription_id: int) -> None:
        self._ended_ids.discard(subscription_id)
        self._on_ended.pop(subscription_id, lambda: None)()

    # -- the device ------------------------------------------------------------------------------

    def move(
        self,
        lon: float,
        lat: float,
        heading_deg: float | None = None,
        speed_mps: float | None = None,
    ) -> None:
        """Take over a new position; report it if some region does not cover it."""
        self._require_open()
        position_message(lon, lat)
        self._lon = lon
        self._lat = lat
        self.point = self.frame.project(lon, lat)
        self.counters.moves += 1
        now_ms = self.clock.now_ms()
        for subscription in self.subscriptions.values():
            subscription.pass_time(now_ms)
            subscription.notice(ChangeReason.MOVED)
        self._check(self.subscriptions.values(), heading_deg, speed_mps)

    def pass_time(self) -> None:
        """Forget what has expired; report if too little is left."""
        now_ms = self.clock.now_ms()
        for subscription in self.subscriptions.values():
            if 0 < subscription.next_expiry_ms <= now_ms:
                subscription.pass_time(now_ms)
                self._check((subscription,))

    def next_expiry_ms(self) -> int:
        """When the next object in any buffer expires; 0 for never."""
        times = [one.next_expiry_ms for one in self.subscriptions.values() if one.next_expiry_ms]
        return min(times, default=0)

    def subscribe(self, spec: TopK) -> Subscription:
        """Begin a subscription. Its first delta is to come."""
        self._require_open()
        spec_message(spec)  # raises before anything changes
        subscription = Subscription(self, self._next_subscription_id, spec)
        self._next_subscription_id += 1
        self.subscriptions[subscription.id] = subscription
        if self.is_online:
            self._send_subscribe(subscription)
        return subscription

    def unsubscribe(
        self, subscription: Subscription, on_ended: Callable[[], None] = lambda: None
    ) -> None:
        """End a subscription; call back when the server knows, or when there is no stream."""
        if self.subscriptions.pop(subscription.id, None) is None:
            on_ended()
            return
        self._ended_ids.add(subscription.id)
        subscription.end()
        if self.is_online:
            self._on_ended[subscription.id] = on_ended
            self._send_unsubscribe(subscription.id)
        else:
            on_ended()

    def ping(self, on_pong: Callable[[], None]) -> None:
        """Ask for a sign of life behind everything before it. Called back on disconnection too."""
        self._ping_number += 1
        self._pongs[self._ping_number] = on_pong
        self._out(Request(ping=device_service_pb2.Ping(number=self._ping_number)))

    def _require_open(self) -> None:
        """Raise what ended this conversation, if anything did."""
        if self.error is not None:
            raise self.error

    def _check(
        self,
        subscriptions: Iterable[Subscription],
        heading_deg: float | None = None,
        speed_mps: float | None = None,
    ) -> None:
        """Report for those whose region does not cover the device."""
        if not self.is_caught_up:
            return
        point = self.point
        left = [one for one in subscriptions if one.must_report(point)]
        self._report(left, heading_deg, speed_mps)

    def _report(
        self,
        subscriptions: list[Subscription],
        heading_deg: float | None = None,
        speed_mps: float | None = None,
    ) -> None:
        """Tell the server where the device is, for these subscriptions, if any."""
        if not subscriptions:
            return
        self._report_sequence += 1
        for subscription in subscriptions:
            subscription.reported(self._report_sequence)
        self.counters.reports += 1
        report = device_service_pb2.Report(
            sequence=self._report_sequence,
            position=position_message(self._lon, self._lat),
            subscription_ids=[subscription.id for subscription in subscriptions],
            heading_deg=heading_deg,
            speed_mps=speed_mps,
        )
        self._out(Request(report=report))

    def _send_subscribe(self, subscription: Subscription) -> None:
        subscribe = device_service_pb2.Subscribe(
            subscription_id=subscription.id,
            spec=spec_message(subscription.spec),
            position=position_message(self._lon, self._lat),
        )
        self._out(Request(subscribe=subscribe))

    def _send_unsubscribe(self, subscription_id: int) -> None:
        unsubscribe = device_service_pb2.Unsubscribe(subscription_id=subscription_id)
        self._out(Request(unsubscribe=unsubscribe))

    def _out(self, request: Request) -> None:
        self.counters.bytes_sent += request.ByteSize()
        self._send(request)
