"""The device's side of the protocol, without I/O.

The session sends messages through a callable and receives them in `receive`; a clock gives the time. So
the same session runs over a separate stream, over the stream of a fleet, and in tests without a stream.

Invariant: after every event, each subscription that may not be exact any more has exactly one report in
progress.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Collection

from nearcast.errors import (
    ClosedError,
    NearcastError,
    Reason,
    RefusedError,
    UnavailableError,
    invalid,
)
from nearcast.geofence import Geofence, ground_radius_m
from nearcast.limits import SPEED_MAX_MPS
from nearcast.model import ChangeReason, Counters, Spec
from nearcast.protocol.clock import Clock
from nearcast.protocol.converters import distance_setting, frame
from nearcast.protocol.delta_sequence import DeltaSequence
from nearcast.protocol.held_subscription import HeldSubscription
from nearcast.protocol.location import Location
from nearcast.protocol.motion import UNKNOWN_MOTION, Motion
from nearcast.protocol.names import LENGTH_MAX, checked_name
from nearcast.protocol.placement import Placement
from nearcast.protocol.request_sender import Request, RequestSender
from nearcast.protocol.shapes import number
from nearcast.protocol.specs import spec_from, spec_message
from nearcast.protocol.subscription_registry import Listed, SubscriptionRegistry
from nearcast.v1 import device_service_pb2, subscriptions_pb2
from nearcast.wire.errors import refusal_from
from safe_region.earth.frame import Frame, Point

_log = logging.getLogger(__name__)

_MS_PER_S = 1000.0

_EXACT = "with an exact position only: this mode requires the position of the device"

_ELSEWHERE = (Reason.ANOTHER_SERVER, Reason.RECOVERING, Reason.DRAINING)
"""Reasons for which a device says hello at another server, or later."""

Response = device_service_pb2.AttachResponse


class DeviceSession:
    """The state of one device.

    Parameters
    ----------
    device_id
        Name of the device on the server.
    nonce
        Random bytes of this instance of the app.
    clock
        Server time.
    send
        Queues a request for the stream. It is only called while online or by `connect`.
    location
        Position of the device, and the part of it that may be sent.
    prefetch_m
        Distance from the edge of a region at which the device already reports.
    take_over
        Whether to replace another attached instance at the first welcome of this one.
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
        """False while the server has left a request without a response for seconds."""
        self.lag_offset = 0
        """While the server lags behind the log of its cluster: the offset up to which it has applied the
        log; 0 otherwise."""
        self._postponed: set[int] = set()
        """Subscriptions that a server that lags has refused, and that are requested again later."""
        self.state_watchers: set[asyncio.Event] = set()
        self.retry_deadline_s = 0.0
        """Event loop time until which a device that was never online keeps trying to connect."""
        self.error: NearcastError | None = None
        self.offline_error: NearcastError | None = None
        """The latest reason for which there is no stream, or no response; None while there is one."""
        self.on_event: Callable[[], None] = lambda: None
        self.on_welcome: Callable[[DeviceSession], None] = lambda _: None
        self.on_moved: Callable[[RefusedError], None] = self.fail
        """Called when the device is to say hello at another server, or later; by default it ends."""
        self.lease_ms = 0
        """Time that the device may send nothing, in milliseconds; 0 for no limit."""
        self._fixed_ms = clock.steady_ms()
        self._is_fixed_virtually = clock.is_virtual
        self._nonce = nonce
        self._take_over = take_over
        self._sequence = DeltaSequence()
        self.sender = RequestSender(location, send, self.counters, clock, self._sequence)
        self._pongs: dict[int, Callable[[], None]] = {}

    @property
    def subscriptions(self) -> dict[int, HeldSubscription]:
        """Subscriptions by number."""
        return self.registry.subscriptions

    @property
    def frame(self) -> Frame:
        """Service area of the server and its projection; an empty area before the first welcome."""
        return self.sender.frame

    # -- the stream ------------------------------------------------------------------------------

    @property
    def is_caught_up(self) -> bool:
        """Whether all deltas that the last welcome announced have arrived."""
        return self.is_online and self._sequence.is_complete

    @property
    def is_waiting(self) -> bool:
        """Whether a response of the server is due."""
        return not self.is_caught_up or any(
            subscription.is_waiting for subscription in self.subscriptions.values()
        )

    @property
    def is_response_due(self) -> bool:
        """Whether any request, of any kind, has no response yet."""
        due = (one for number, one in self.subscriptions.items() if number not in self._postponed)
        is_waiting = not self.is_caught_up or any(one.is_waiting for one in due)
        return is_waiting or bool(self._pongs) or self.registry.is_ending

    def connect(self) -> None:
        """Send a hello on a new stream, unless this session has ended."""
        if self.error is None:
            take_over = self._take_over and not self.was_online
            self.sender.hello(self.device_id, self._nonce, take_over=take_over)

    def set_responsive(self, *, is_responsive: bool) -> None:
        """Record that the server has stopped responding, or responds again."""
        self.is_responsive = is_responsive
        self.offline_error = None if is_responsive else UnavailableError("the server does not respond")
        self._wake_state_watchers()

    def _wake_state_watchers(self) -> None:
        """Wake the callers that watch the states of subscriptions."""
        for changed in self.state_watchers:
            changed.set()

    def disconnect(self) -> None:
        """Record that the stream has ended."""
        self.is_online = False
        self.lag_offset = 0
        self._postponed.clear()
        self.is_responsive = True  # the default: without a stream there is no response to wait for
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
        """End the session with an error; it cannot be resumed."""
        self.error = self.offline_error = error
        self.disconnect()
        for subscription in list(self.subscriptions.values()):
            subscription.end(error)

    def receive(self, response: Response) -> None:
        """Process a message of the server."""
        self.counters.bytes_received += response.ByteSize()
        match response.WhichOneof("event"):
            case "delta":
                self._receive_delta(response.delta)
            case "welcome":
                self._receive_welcome(response.welcome)
            case "pong":
                self._receive_pong(response.pong.number)
            case "unsubscribed":
                self._receive_unsubscribed(response.unsubscribed.subscription_id)
            case "rejection":
                self._receive_rejection(response.rejection)
            case "lag":
                self._receive_lag(response.lag.offset)
            case "locate":
                self._receive_locate(response.locate)
            case "detached":
                self._receive_detached(refusal_from(response.detached.error))
            case None:
                _log.debug("ignored an event of a newer server")
        self._wake_state_watchers()
        self.on_event()

    def _receive_welcome(self, welcome: device_service_pb2.Welcome) -> None:
        self.clock.adjust(welcome.time_ms, is_virtual=welcome.virtual_time)
        self._forget_expired()
        self.sender.frame = frame(welcome.frame)
        self.point = self.location.project(self.frame)
        self.sender.margin_m_max = welcome.limits.margin_m_max
        self.matches_max = welcome.limits.matches_max
        self.name_length_max = welcome.limits.name_length_max
        self.is_online = self.was_online = True
        self.offline_error = None
        self.lag_offset = welcome.lag_offset
        is_empty = not welcome.subscriptions
        self._sequence.welcome(welcome.version, welcome.epoch, resumed=welcome.resumed, is_empty=is_empty)
        listed = {
            one.subscription_id: Listed(spec_from(one.spec), one.name) for one in welcome.subscriptions
        }
        difference = self.registry.reconcile(listed, resumed=welcome.resumed)
        for subscription_id in difference.ended:
            self.sender.unsubscribe(subscription_id)
        for subscription in difference.unknown:
            self._ask(subscription)
        for subscription in difference.changed:
            if subscription.is_changing:
                self._ping_for(subscription)  # the change was requested on the previous stream
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
        if self._sequence.is_ack_due:  # a report would have acknowledged it
            self.sender.ack()

    def _receive_pong(self, number: int) -> None:
        self._repeat_refused_ends()
        self._pongs.pop(number, lambda: None)()

    def _repeat_refused_ends(self) -> None:
        """Send the ends again that the server has refused."""
        for refused in self.registry.take_refused_ends():
            self.sender.unsubscribe(refused)

    def _receive_lag(self, offset: int) -> None:
        """Process that the server lags, or has caught up: then what it has refused is sent again.

        Ends are sent first: a name is free once the subscription that had it has ended.
        """
        self.lag_offset = offset
        if not offset:
            self._repeat_refused_ends()
            postponed = [self.subscriptions.get(number) for number in sorted(self._postponed)]
            self._postponed.clear()
            for subscription in postponed:
                if subscription is not None and not subscription.is_known:
                    self._ask(subscription)

    def _receive_unsubscribed(self, subscription_id: int) -> None:
        """Process the end of a subscription, also if this instance has not ended it."""
        self.registry.ended(subscription_id)
        subscription = self.subscriptions.pop(subscription_id, None)
        if subscription is not None:
            subscription.end(ClosedError(f"the server has ended subscription {subscription_id}"))

    def _receive_locate(self, locate: device_service_pb2.Locate) -> None:
        """Report the position, unless a report is in progress, which arrives after the request."""
        requested = [self.subscriptions.get(number) for number in locate.subscription_ids]
        found = [
            one
            for one in requested
            if one is not None and not one.waits_for_position and (one.is_changing or not one.is_waiting)
        ]
        if found:
            self.sender.report(found)

    def _receive_detached(self, error: RefusedError) -> None:
        if error.reason in (Reason.SILENT, Reason.LEASE_EXPIRED):
            self.offline_error = error
            self.disconnect()
            self.connect()
        elif error.reason in _ELSEWHERE:
            self.relocate(error)
        else:
            self.fail(error)

    def relocate(self, error: RefusedError) -> None:
        """Leave the stream: another server serves the device, or this one is starting or stopping."""
        self.offline_error = error
        self.disconnect()
        self.on_moved(error)

    def _receive_rejection(self, rejection: device_service_pb2.Rejection) -> None:
        error = refusal_from(rejection.error)
        if rejection.command == device_service_pb2.Rejection.COMMAND_HELLO:
            end = self.relocate if error.reason in _ELSEWHERE else self.fail
            end(error)
            return
        if error.reason is Reason.OUT_OF_ORDER:
            return  # the server had detached the device; the next welcome restores the state
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
        """Subscribe again for the subscriptions of a report; the server does not know all of them.

        Subscriptions with a change in progress are skipped: the response to the change shows the state
        of the server.
        """
        for subscription in self.subscriptions.values():
            if subscription.report_failed(number) and not subscription.is_changing:
                subscription.forgotten()
                self._ask(subscription)

    def _receive_refused_subscribe(self, number: int, error: RefusedError) -> None:
        """Continue a subscription with its old spec if it had one; end it otherwise.

        A new one waits for a server that lags, as it would for a stream.
        """
        subscription = self.subscriptions.get(number)
        if subscription is None:
            return
        is_new = not subscription.is_known and subscription.change is None
        if is_new and error.reason is Reason.LAGGING and self.lag_offset:
            self._postponed.add(number)
        elif subscription.refuse(error):
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
        """Set a new fix; report it if any region does not cover it."""
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
        self._fixed_ms, self._is_fixed_virtually = self.clock.steady_ms(), self.clock.is_virtual
        self.counters.moves += 1
        now_ms = self.clock.now_ms()
        for subscription in self.subscriptions.values():
            subscription.pass_time(now_ms)
            subscription.move(now_ms)
        self._check(self.subscriptions.values(), motion)
        if self.state_watchers:
            self._wake_state_watchers()

    def pass_time(self) -> None:
        """Drop expired objects; report if too few are left for an exact result."""
        now_ms = self.clock.now_ms()
        for subscription in self.subscriptions.values():
            if 0 < subscription.next_expiry_ms <= now_ms:
                subscription.pass_time(now_ms)
                self._check((subscription,))
        if self.clock.is_virtual:
            self.beat()
        self._wake_state_watchers()
        self.on_event()

    def process_due(self) -> None:
        """Process in real time what is due, if anything is; a timer may be late."""
        if not self.clock.is_virtual and 0 < self.next_expiry_ms() <= self.clock.now_ms():
            self.pass_time()

    def _forget_expired(self) -> None:
        now_ms = self.clock.now_ms()
        for subscription in self.subscriptions.values():
            subscription.pass_time(now_ms)

    def next_expiry_ms(self) -> int:
        """Return the server time at which the next object in any buffer expires; 0 for never."""
        times = [one.next_expiry_ms for one in self.subscriptions.values() if one.next_expiry_ms]
        return min(times, default=0)

    def geofence(self, subscriptions: Collection[HeldSubscription] | None = None) -> Geofence:
        """Return a circle about the device within which it has nothing to report.

        Parameters
        ----------
        subscriptions
            The subscriptions that count; None for all.
        """
        fenced = self.subscriptions.values() if subscriptions is None else subscriptions
        radius_m = min((one.fence_m() for one in fenced), default=math.inf)
        times = [one.next_expiry_ms for one in fenced if one.next_expiry_ms]
        location = self.location
        radius_m = ground_radius_m(self.frame, location.lon, location.lat, radius_m)
        return Geofence(location.lon, location.lat, radius_m, min(times, default=0))

    def next_fix_s(self, v_max_mps: float) -> float:
        """Return the seconds for which the device need not look where it is.

        It is 0 while a response is due, and if time has become virtual or real since the last fix.
        """
        limit = f"a number of metres a second, above 0, at most {SPEED_MAX_MPS:g}"
        if not 0.0 < number(v_max_mps, "v_max_mps", limit) <= SPEED_MAX_MPS:
            raise invalid("v_max_mps", v_max_mps, limit)
        if self.is_waiting or self.clock.is_virtual != self._is_fixed_virtually:
            return 0.0
        fence = self.geofence()
        age_s = (self.clock.steady_ms() - self._fixed_ms) / _MS_PER_S
        next_s = fence.radius_m / v_max_mps - age_s
        if fence.until_ms:
            next_s = min(next_s, (fence.until_ms - self.clock.now_ms()) / _MS_PER_S)
        return max(0.0, next_s)

    def subscribe(self, spec: Spec, name: str = "") -> HeldSubscription:
        """Start a subscription, or return the one of that name and start its change to the spec.

        The first delta follows later, unless the subscription exists with that spec.
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

    def _ask_for_change(self, subscription: HeldSubscription) -> None:
        """Request the new spec of a subscription, if its earlier requests have their responses.

        The responses of a subscription arrive one at a time, so their order identifies them.
        """
        if self.is_online and subscription.is_ready_to_ask:
            self._ask(subscription)

    def _ask(self, subscription: HeldSubscription) -> None:
        """Request a subscription, or its change."""
        self.sender.subscribe(subscription)
        if subscription.change is not None:
            self._ping_for(subscription)

    def _ping_for(self, subscription: HeldSubscription) -> None:
        """Send a ping after a change: with its pong, all messages about the change have arrived."""
        change = subscription.change

        def confirm() -> None:
            if self.is_online and change is not None:
                subscription.confirm(change)
                self._ask_for_change(subscription)
                self._check((subscription,))

        self.ping(confirm)

    def unsubscribe(
        self, subscription: HeldSubscription, on_ended: Callable[[], None] = lambda: None
    ) -> None:
        """End a subscription; call back when the server has confirmed it, or if there is no stream."""
        self._wake_state_watchers()
        if self.registry.end(subscription, on_ended if self.is_online else None):
            self.sender.unsubscribe(subscription.id)
        else:
            on_ended()

    @property
    def beat_due_ms(self) -> int:
        """Steady time at which a ping is due: a third of the lease after the last message."""
        return self.sender.sent_ms + max(1, self.lease_ms // 3)

    def beat(self) -> None:
        """Send a ping, if it is due."""
        if self.is_online and self.lease_ms and self.clock.steady_ms() >= self.beat_due_ms:
            self.ping(lambda: None)

    def ping(self, on_pong: Callable[[], None]) -> None:
        """Send a ping after all earlier messages. It calls back at the pong, or at disconnection."""
        self._pongs[self.sender.ping()] = on_pong

    def require_open(self) -> None:
        """Raise the error that ended this session, if it has ended."""
        if self.error is not None:
            raise self.error

    def _check(
        self,
        subscriptions: Collection[HeldSubscription],
        motion: Motion = UNKNOWN_MOTION,
    ) -> None:
        """Report for the subscriptions with a region that does not cover the device."""
        if not self.is_caught_up:
            return
        left = [one for one in subscriptions if one.must_report()]
        if left:
            self.sender.report(left, motion)
        for subscription in subscriptions:
            subscription.checked()
