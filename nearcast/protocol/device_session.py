"""One device's side of the protocol, without I/O.

Messages go out through a callable and come in through `receive`; time comes from a clock. So the same
session runs over a stream of its own, over a fleet's, and in tests without any.

What it keeps true: after every event, each subscription whose result is no longer certain has a report
under way, and only one.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Iterable

from nearcast.errors import ClosedError, NearcastError, Reason, RefusedError, invalid
from nearcast.geofence import Geofence, ground_radius_m
from nearcast.model import ChangeReason, Counters, Spec
from nearcast.protocol.clock import Clock
from nearcast.protocol.converters import distance_setting, frame
from nearcast.protocol.delta_sequence import DeltaSequence
from nearcast.protocol.location import Location
from nearcast.protocol.motion import UNKNOWN_MOTION, Motion
from nearcast.protocol.names import LENGTH_MAX, checked_name
from nearcast.protocol.placement import Placement
from nearcast.protocol.request_sender import Request, RequestSender
from nearcast.protocol.specs import spec_from, spec_message
from nearcast.protocol.subscription import Subscription
from nearcast.protocol.subscription_registry import Listed, SubscriptionRegistry
from nearcast.v1 import device_service_pb2, subscriptions_pb2
from safe_region.frame import Frame, Point

_log = logging.getLogger(__name__)

_EXACT = "with an exact position only: in this mode the server needs to know where the device is"

Response = device_service_pb2.AttachResponse


class DeviceSession:
    """The state of one device.

    Parameters
    ----------
    device_id
        The device's name on the server.
    nonce
        Random bytes of this instance of the app.
    clock
        Server time.
    send
        Takes a request for the stream. Only called while online or by `connect`.
    location
        The device's position, and what of it may be told.
    prefetch_m
        How far before the edge of a region the device reports already.
    take_over
        Whether to take the place of another instance that is attached when this one is welcomed first.
    """

    def __init__(
        self,
        device_id: str,
        nonce: bytes,
        clock: Clock,
        send: Callable[[Request], None],
        location: Location,
        prefetch_m: float = 0.0,
        *,
        take_over: bool = False,
    ) -> None:
        self.device_id = checked_name(device_id, "device_id")
        self.clock = clock
        self.counters = Counters()
        self.location = location
        self.point = Point(0.0, 0.0)
        self.prefetch_m = distance_setting(prefetch_m, "prefetch_m")
        self.matches_max = 0
        self.name_length_max = LENGTH_MAX
        self.registry = SubscriptionRegistry(self)
        self.placement = Placement(device_id)
        self.is_online = False
        self.was_online = False
        self.is_responsive = True
        """Whether the server has not left a request without a response for seconds."""
        self.state_watchers: set[asyncio.Event] = set()
        self.retry_deadline_s = 0.0
        """Event loop time until which a device that was never online keeps trying to connect."""
        self.error: NearcastError | None = None
        self.on_event: Callable[[], None] = lambda: None
        self.on_welcome: Callable[[DeviceSession], None] = lambda _: None
        self.lease_ms = 0
        """How long the server lets this device be silent; 0 for ever."""
        self._nonce = nonce
        self._take_over = take_over
        self._sequence = DeltaSequence()
        self._sender = RequestSender(location, send, self.counters, clock, self._sequence)
        self._pongs: dict[int, Callable[[], None]] = {}

    @property
    def subscriptions(self) -> dict[int, Subscription]:
        """The subscriptions, by their numbers."""
        return self.registry.subscriptions

    @property
    def frame(self) -> Frame:
        """The server's service area and its projection; without extent before the first welcome."""
        return self._sender.frame

    # -- the stream ------------------------------------------------------------------------------

    @property
    def is_caught_up(self) -> bool:
        """Whether all that the last welcome announced has arrived."""
        return self.is_online and self._sequence.is_complete

    @property
    def is_waiting(self) -> bool:
        """Whether an answer of the server is due."""
        return not self.is_caught_up or any(
            subscription.is_waiting for subscription in self.subscriptions.values()
        )

    @property
    def is_response_due(self) -> bool:
        """Whether the server has a request, of whatever kind, that it has not answered."""
        return self.is_waiting or bool(self._pongs) or self.registry.is_ending

    def connect(self) -> None:
        """Say hello on a new stream, unless this session has ended: nobody would answer for it."""
        if self.error is None:
            take_over = self._take_over and not self.was_online
            self._sender.hello(self.device_id, self._nonce, take_over=take_over)

    def set_responsive(self, *, is_responsive: bool) -> None:
        """Note that the server has stopped to respond, or does again."""
        self.is_responsive = is_responsive
        self._wake_state_watchers()

    def _wake_state_watchers(self) -> None:
        """Let those look who watch the states of subscriptions."""
        for changed in self.state_watchers:
            changed.set()

    def disconnect(self) -> None:
        """Note that the stream is gone."""
        self.is_online = False
        self.is_responsive = True  # as far as anybody knows; there is no stream to see it on
        for subscription in self.subscriptions.values():
            subscription.interrupted()
            subscription.notice(ChangeReason.RESUMED)
        for answered in self._pongs.values():
            answered()
        self._pongs.clear()
        self.registry.interrupted()
        self._wake_state_watchers()
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
                for number in self.registry.take_refused_ends():
                    self._sender.unsubscribe(number)
                self._pongs.pop(response.pong.number, lambda: None)()
            case "unsubscribed":
                self._receive_unsubscribed(response.unsubscribed.subscription_id)
            case "rejection":
                self._receive_rejection(response.rejection)
            case "locate":
                self._receive_locate(response.locate)
            case "detached":
                self._receive_detached(RefusedError.from_wire(response.detached.error))
            case None:
                _log.debug("an event of a newer server is ignored")
        self._wake_state_watchers()
        self.on_event()

    def _receive_welcome(self, welcome: device_service_pb2.Welcome) -> None:
        self.clock.adjust(welcome.time_ms, is_virtual=welcome.virtual_time)
        self._forget_expired()
        self._sender.frame = frame(welcome.frame)
        self.point = self.location.project(self.frame)
        self._sender.margin_m_max = welcome.limits.margin_m_max
        self.matches_max = welcome.limits.matches_max
        self.name_length_max = welcome.limits.name_length_max
        self.is_online = self.was_online = True
        is_empty = not welcome.subscriptions
        self._sequence.welcome(welcome.version, welcome.epoch, resumed=welcome.resumed, is_empty=is_empty)
        listed = {
            one.subscription_id: Listed(spec_from(one.spec), one.name) for one in welcome.subscriptions
        }
        difference = self.registry.reconcile(listed, resumed=welcome.resumed)
        for subscription_id in difference.ended:
            self._sender.unsubscribe(subscription_id)
        for subscription in difference.unknown:
            self._ask(subscription)
        for subscription in difference.changed:
            if subscription.is_changing:
                self._ping_for(subscription)  # it was asked for on the stream before
            self._ask_for_change(subscription)
        self._check(self.subscriptions.values())
        self.lease_ms = welcome.lease_ms
        self.on_welcome(self)

    def _receive_delta(self, delta: subscriptions_pb2.Delta) -> None:
        was_caught_up = self.is_caught_up
        if not self._sequence.take(delta.version, is_snapshot=delta.snapshot):
            return
        has_leaped = delta.time_ms > self.clock.now_ms()
        if has_leaped:
            self.clock.observe(delta.time_ms)
            self._forget_expired()
        self.counters.deltas += 1
        subscription = self.subscriptions.get(delta.subscription_id)
        if subscription is not None:
            self.counters.objects += subscription.receive(delta)
            self._ask_for_change(subscription)
        if has_leaped or (not was_caught_up and self.is_caught_up):
            self._check(self.subscriptions.values())
        elif subscription is not None:
            self._check((subscription,))
        if self._sequence.is_ack_due:  # a report would have said it
            self._sender.ack()

    def _receive_unsubscribed(self, subscription_id: int) -> None:
        """Take the end of a subscription; of one that nobody here has ended, too."""
        self.registry.ended(subscription_id)
        subscription = self.subscriptions.pop(subscription_id, None)
        if subscription is not None:
            subscription.end(ClosedError(f"the server has ended subscription {subscription_id}"))

    def _receive_locate(self, locate: device_service_pb2.Locate) -> None:
        """Say where the device is, unless that is under way: then it comes after the question."""
        requested = [self.subscriptions.get(number) for number in locate.subscription_ids]
        found = [
            one
            for one in requested
            if one is not None and not one.waits_for_position and (one.is_changing or not one.is_waiting)
        ]
        if found:
            self._sender.report(found)

    def _receive_detached(self, error: RefusedError) -> None:
        if error.reason in (Reason.SILENT, Reason.LEASE_EXPIRED):
            self.disconnect()
            self.connect()
        else:
            self.fail(error)

    def _receive_rejection(self, rejection: device_service_pb2.Rejection) -> None:
        error = RefusedError.from_wire(rejection.error)
        if rejection.command == device_service_pb2.Rejection.COMMAND_HELLO:
            self.fail(error)
            return
        if error.reason is Reason.OUT_OF_ORDER:
            return  # said when the server had detached the device; the next welcome mends all of it
        match rejection.command:
            case device_service_pb2.Rejection.COMMAND_SUBSCRIBE:
                self._receive_refused_subscribe(rejection.number, error)
            case device_service_pb2.Rejection.COMMAND_REPORT:
                self._receive_refused_report(rejection.number)
            case device_service_pb2.Rejection.COMMAND_UNSUBSCRIBE:
                if error.reason is Reason.UNKNOWN_SUBSCRIPTION:
                    self.registry.ended(rejection.number)
                else:
                    self.registry.end_refused(rejection.number)
            case _:
                _log.warning("device %s: refused, %s", self.device_id, error.reason.name)

    def _receive_refused_report(self, number: int) -> None:
        """Ask again for what was in a report, of which the server does not know some.

        Not for what is on its way to another spec: the response to that tells what the server has.
        """
        for subscription in self.subscriptions.values():
            if subscription.report_failed(number) and not subscription.is_changing:
                subscription.forgotten()
                self._ask(subscription)

    def _receive_refused_subscribe(self, number: int, error: RefusedError) -> None:
        """Let a subscription go on with what it had, if it had something; else it ends."""
        subscription = self.subscriptions.get(number)
        if subscription is None:
            return
        if subscription.refuse(error):
            self._ask_for_change(subscription)
            self._check((subscription,))
        else:
            self.registry.refused(number)
            subscription.end(error)

    # -- the device ------------------------------------------------------------------------------

    def move(
        self,
        lon: float,
        lat: float,
        heading_deg: float | None = None,
        speed_mps: float | None = None,
        accuracy_m: float = 0.0,
    ) -> None:
        """Take over a new fix; report it if some region does not cover it."""
        self.require_open()
        if (
            accuracy_m
            and self.location.is_exact
            and any(one.needs_exact_position for one in self.subscriptions.values())
        ):
            raise invalid("accuracy_m", accuracy_m, _EXACT)
        motion = Motion.checked(heading_deg, speed_mps)
        self.location.move(lon, lat, accuracy_m)
        self.point = self.location.project(self.frame)
        self.counters.moves += 1
        now_ms = self.clock.now_ms()
        for subscription in self.subscriptions.values():
            subscription.pass_time(now_ms)
            subscription.move(now_ms)
        self._check(self.subscriptions.values(), motion)
        if self.state_watchers:
            self._wake_state_watchers()

    def pass_time(self) -> None:
        """Forget what has expired; report if too little is left."""
        now_ms = self.clock.now_ms()
        for subscription in self.subscriptions.values():
            if 0 < subscription.next_expiry_ms <= now_ms:
                subscription.pass_time(now_ms)
                self._check((subscription,))
        if self.clock.is_virtual:
            self.beat()
        self._wake_state_watchers()
        self.on_event()

    def _forget_expired(self) -> None:
        now_ms = self.clock.now_ms()
        for subscription in self.subscriptions.values():
            subscription.pass_time(now_ms)

    def next_expiry_ms(self) -> int:
        """When the next object in any buffer expires; 0 for never."""
        times = [one.next_expiry_ms for one in self.subscriptions.values() if one.next_expiry_ms]
        return min(times, default=0)

    def geofence(self, subscriptions: Collection[Subscription] | None = None) -> Geofence:
        """Return a circle about the device within which these, or all, have nothing to say."""
        fenced = self.subscriptions.values() if subscriptions is None else subscriptions
        radius_m = min((one.fence_m() for one in fenced), default=math.inf)
        times = [one.next_expiry_ms for one in fenced if one.next_expiry_ms]
        location = self.location
        radius_m = ground_radius_m(self.frame, location.lon, location.lat, radius_m)
        return Geofence(location.lon, location.lat, radius_m, min(times, default=0))

    def subscribe(self, spec: Spec, name: str = "") -> Subscription:
        """Begin a subscription, or return the one of that name, on its way to the spec.

        Its first delta is to come, unless it is there with that spec.
        """
        self.require_open()
        spec_message(spec)  # raises before anything changes
        if spec.region.needs_exact_position and not self.location.is_exact:
            raise invalid("spec.region", spec.region, _EXACT)
        name = checked_name(name, "name", self.name_length_max, optional=True)
        subscription = self.registry.named(name) if name else None
        if subscription is not None:
            subscription.want(spec, is_online=self.is_online)
            self._ask_for_change(subscription)
            return subscription
        subscription = self.registry.begin(spec, name)
        if self.is_online:
            self._ask(subscription)
        return subscription

    def _ask_for_change(self, subscription: Subscription) -> None:
        """Ask for the spec that a subscription is on its way to, if it is its turn.

        The answers of a subscription come one after the other, so that each is known by its place.
        """
        if self.is_online and subscription.is_ready_to_ask:
            self._ask(subscription)

    def _ask(self, subscription: Subscription) -> None:
        """Ask for a subscription, or for its change."""
        self._sender.subscribe(subscription)
        if subscription.change is not None:
            self._ping_for(subscription)

    def _ping_for(self, subscription: Subscription) -> None:
        """Ask when all has come that the server had sent when it had dealt with a change."""
        change = subscription.change

        def confirm() -> None:
            if self.is_online and change is not None:
                subscription.confirm(change)
                self._ask_for_change(subscription)
                self._check((subscription,))

        self.ping(confirm)

    def unsubscribe(
        self, subscription: Subscription, on_ended: Callable[[], None] = lambda: None
    ) -> None:
        """End a subscription; call back when the server knows, or when there is no stream."""
        self._wake_state_watchers()
        if self.registry.end(subscription, on_ended if self.is_online else None):
            self._sender.unsubscribe(subscription.id)
        else:
            on_ended()

    @property
    def beat_due_ms(self) -> int:
        """When to give a sign of life, in steady time: a third of the lease after the last message."""
        return self._sender.sent_ms + max(1, self.lease_ms // 3)

    def beat(self) -> None:
        """Give a sign of life, if it is due."""
        if self.is_online and self.lease_ms and self.clock.steady_ms() >= self.beat_due_ms:
            self.ping(lambda: None)

    def ping(self, on_pong: Callable[[], None]) -> None:
        """Ask for a sign of life behind everything before it. Called back on disconnection too."""
        self._pongs[self._sender.ping()] = on_pong

    def require_open(self) -> None:
        """Raise what ended this session, if anything did."""
        if self.error is not None:
            raise self.error

    def _check(
        self,
        subscriptions: Iterable[Subscription],
        motion: Motion = UNKNOWN_MOTION,
    ) -> None:
        """Report for those whose region does not cover the device."""
        if not self.is_caught_up:
            return
        left = [one for one in subscriptions if one.must_report()]
        if left:
            self._sender.report(left, motion)
