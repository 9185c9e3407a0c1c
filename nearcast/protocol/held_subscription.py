"""The objects that a device holds for a subscription, and the result that it computes from them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection
from typing import Protocol

from nearcast.errors import ClosedError, NearcastError
from nearcast.geofence import Geofence, OsRegions
from nearcast.model import ChangeReason, LiveObject, Spec, SubscriptionState
from nearcast.protocol.changing_spec import ChangingSpec
from nearcast.protocol.clock import Clock
from nearcast.protocol.location import SharedLocation
from nearcast.protocol.os_regions import UNKNOWN, check_request, os_regions
from nearcast.protocol.report_policy import ReportPolicy
from nearcast.protocol.specs import kind_of
from nearcast.protocol.specs.windows import duration_ms
from nearcast.protocol.subscription import Subscription, View
from nearcast.v1 import geometry_pb2, subscriptions_pb2
from nearcast.wire.objects import object_from
from safe_region.earth.frame import Point
from safe_region.geometry.areas import plane_area
from safe_region.regions.region import Buffered, Evaluation, RegionMode

_REASONS = {
    subscriptions_pb2.CAUSE_SUBSCRIBED: ChangeReason.SUBSCRIBED,
    subscriptions_pb2.CAUSE_REPORTED: ChangeReason.MOVED,
    subscriptions_pb2.CAUSE_PUBLISHED: ChangeReason.PUBLISHED,
    subscriptions_pb2.CAUSE_RETRACTED: ChangeReason.RETRACTED,
    subscriptions_pb2.CAUSE_REPLACED: ChangeReason.REPLACED,
    subscriptions_pb2.CAUSE_RESUMED: ChangeReason.RESUMED,
    subscriptions_pb2.CAUSE_REWEIGHED: ChangeReason.REWEIGHED,
    subscriptions_pb2.CAUSE_REFILLED: ChangeReason.REFILLED,
}
_RETRY_MS_MAX = 1_000
"""Longest time before a report is repeated to a server whose time stands still."""
_ANSWERS = (subscriptions_pb2.CAUSE_SUBSCRIBED, subscriptions_pb2.CAUSE_REPORTED)
_REMOVALS = {
    subscriptions_pb2.DROP_REASON_RETRACTED: ChangeReason.RETRACTED,
    subscriptions_pb2.DROP_REASON_REPLACED: ChangeReason.REPLACED,
    subscriptions_pb2.DROP_REASON_OUT_OF_WINDOW: ChangeReason.OUT_OF_WINDOW,
}


_DUE = (SubscriptionState.STALE, SubscriptionState.CATCHING_UP)
"""States in which a response will bring the result."""
_NOTHING = Evaluation([], -math.inf, exact=False, is_lacking=True)


class Host(View, Protocol):
    """Interface of the device session that a subscription uses."""

    clock: Clock
    point: Point
    """Position of the device on the plane."""
    prefetch_m: float
    matches_max: int
    """Largest number of objects that the server sends for a result without a k."""
    is_online: bool
    """Whether there is a stream."""
    is_responsive: bool
    """False while the server has left a request without a response for seconds."""
    lag_offset: int
    """How far the server has applied the log of its cluster while it lags behind; else 0."""

    @property
    def is_caught_up(self) -> bool:
        """Whether all deltas that the last welcome announced have arrived."""

    def geofence(self, subscriptions: Collection[HeldSubscription] | None = None) -> Geofence:
        """Return a circle about the device within which these subscriptions need no report."""

    def unsubscribe(self, subscription: HeldSubscription, on_ended: Callable[[], None]) -> None:
        """End a subscription; call back when the server has confirmed it, or if there is no stream."""


class HeldSubscription(Subscription, ChangingSpec):
    """A subscription with what the device session needs of it. Apps see `Subscription`.

    Parameters
    ----------
    host
        Session of the device.
    subscription_id
        Number of the subscription.
    spec
        Its spec.
    name
        Its name.
    """

    _host: Host

    def __init__(self, host: Host, subscription_id: int, spec: Spec, name: str = "") -> None:
        super().__init__(host, subscription_id, name)
        self.change = None
        self._answer: asyncio.Future[None] | None = None
        self._sent: SharedLocation | None = None
        self._begin(spec)

    def _begin(self, spec: Spec) -> None:
        self.spec = spec
        self._kind = kind_of(spec)
        self.region = self._kind.region(spec)
        self._dwell = self._kind.dwell_timers(spec, self.region)
        self.idf_generation = 0
        self._duration_ms = duration_ms(spec.window)
        self._objects: dict[int, LiveObject] = {}
        self._known = False  # the first delta has arrived
        self._is_unplaced = False  # the server does not evaluate it: the device's position was too vague
        self._pending_report = 0  # sequence of a report that waits for its delta
        self._next_expiry_ms = 0
        self._dropped_ms = 0  # until then the server counted an object that the device has dropped itself
        self._retry_ms = 0  # before then a report would get the same response again; 0 for no such time
        self._policy = ReportPolicy(self.region, self._host.prefetch_m, self._sent)

    @property
    def state(self) -> SubscriptionState:
        """State of the result: whether `results` is exact now, or the reason why not."""
        host = self._host
        if self.error is not None:
            return SubscriptionState.ENDED
        if host.is_responsive and host.is_caught_up:
            return self._state_in_sync()
        if host.is_responsive and host.is_online:
            return SubscriptionState.CATCHING_UP
        window = self.spec.window
        is_refilled = window is not None and window.count is not None
        is_refilled |= self.spec.region is RegionMode.STATIONARY
        is_covered = self._known and not is_refilled and self._evaluate().exact
        return SubscriptionState.OFFLINE if is_covered else SubscriptionState.OFFLINE_STALE

    def _state_in_sync(self) -> SubscriptionState:
        host = self._host
        evaluation = self._evaluate()
        if not self._known or self.is_changing:
            return SubscriptionState.STALE
        if self._pending_report and not (evaluation.exact and self.spec.region is RegionMode.ANCHORED):
            return SubscriptionState.STALE
        if evaluation.exact and not self.waits_for_position:
            return SubscriptionState.LAGGING if host.lag_offset else SubscriptionState.EXACT
        if evaluation.is_capped:
            return SubscriptionState.TOO_MANY
        is_too_vague = self._policy.is_too_vague(host.frame, host.location, evaluation)
        if is_too_vague or self.waits_for_position:
            return SubscriptionState.TOO_VAGUE
        return SubscriptionState.STALE

    def _found(self) -> list[tuple[float, LiveObject]]:
        """Return lengths and objects of the result, best first."""
        return [
            (length_m, self._objects[one])
            for length_m, one in self._evaluate().best
            if self._dwell is None or self._dwell.is_over(one, self._host.clock.now_ms())
        ]

    def geofence(self) -> Geofence:
        """See `Subscription.geofence`."""
        if self.error is not None:
            raise self.error
        return self._host.geofence((self,))

    def os_regions(self, radius_m: float, limit: int = 19) -> OsRegions:
        """See `Subscription.os_regions`."""
        if self.error is not None:
            raise self.error
        check_request(self.spec, radius_m, limit)
        if not self._known or self.is_changing or self._is_unplaced:
            return UNKNOWN
        return os_regions(self._host, self.region, self._objects, radius_m, limit)

    async def unsubscribe(self) -> None:
        """See `Subscription.unsubscribe`."""
        loop = asyncio.get_running_loop()
        known: asyncio.Future[None] = loop.create_future()
        self._host.unsubscribe(self, lambda: None if known.done() else known.set_result(None))
        await known

    @property
    def is_waiting(self) -> bool:
        """Whether a response of the server is due."""
        is_due = not self._known or self._pending_report > 0 or self.is_changing
        return is_due or not self._host.is_caught_up

    @property
    def is_known(self) -> bool:
        """Whether the first delta has arrived."""
        return self._known

    def apply(self, delta: subscriptions_pb2.Delta) -> int:
        """Apply a delta; return the number of objects that it added."""
        if delta.snapshot:
            self.region.buffer.clear()
        removals = {
            drop.object_id: _REMOVALS[drop.reason] for drop in delta.drop if drop.reason in _REMOVALS
        }
        added = []
        for entry in delta.add:
            item = entry.object  # each access to a field of a message creates a Python object
            found = object_from(item)
            self._keep(found)
            added.append(self._buffered(found, item.point, entry.r_m))
        self._kind.update(self.region, delta, added, self._host.matches_max)
        self.idf_generation = delta.reach.idf_generation
        buffer = self.region.buffer
        self._objects = {key: one for key, one in self._objects.items() if key in buffer}
        self._known = True
        self._is_unplaced = self.spec.region.needs_exact_position and delta.WhichOneof("bound") is None
        if self._dwell is not None:
            ids = [one.object_id for one in added]
            self._dwell.hold(self._host.clock.now_ms(), self._host.point, self._objects, ids)
        is_awaited = delta.cause == subscriptions_pb2.CAUSE_SUBSCRIBED
        if delta.report_sequence >= self._pending_report:
            is_awaited |= self._pending_report > 0
            self._pending_report = 0
        self._next_expiry_ms = min((one.expiry_ms for one in buffer.values()), default=0)
        self._policy.changed()
        is_answer, is_behind = delta.cause in _ANSWERS, delta.time_ms < self._dropped_ms
        if is_answer and not is_behind:
            self._policy.answered(self._host.frame, self._evaluate, delta.time_ms)
        elif is_answer or delta.snapshot:
            self._policy.anchored(self._evaluate)
        if is_answer or not is_behind:
            self._retry_ms = self._later(delta.time_ms) if is_behind else 0
        if is_awaited:
            self._wake_callers()
        self.notice(_REASONS.get(delta.cause, ChangeReason.RESUMED), removals)
        return len(added)

    def _later(self, server_ms: int) -> int:
        """Return when to report again to a server whose time is behind: after as long as it is behind.

        Its time stands still while it waits for its disk, and may differ from that of another node. 0 in
        virtual time, which does not pass by itself: at once.
        """
        clock = self._host.clock
        now_ms = clock.now_ms()
        return 0 if clock.is_virtual else now_ms + min(max(1, now_ms - server_ms), _RETRY_MS_MAX)

    def _keep(self, item: LiveObject) -> None:
        """Store an object. If another object had its id, the dwell time starts again.

        A server that is restored from a backup reuses the ids of the objects that it lost.
        """
        before = self._objects.get(item.id)
        if before is not None and before != item and self._dwell is not None:
            self._dwell.forget([item.id])
        if before != item:
            self._objects[item.id] = item

    @property
    def next_expiry_ms(self) -> int:
        """Server time of the next expiry, end of a dwell time, or report; 0 for never."""
        dwell_ms = 0 if self._dwell is None else self._dwell.next_ms()
        next_ms = self._next_expiry_ms, dwell_ms, self._retry_ms
        return min(filter(None, next_ms), default=0)

    def move(self, now_ms: int) -> None:
        """Record that the device has moved."""
        if self._dwell is not None and self._known:
            self._dwell.move(now_ms, self._host.point, self._objects)
        self.notice(ChangeReason.MOVED)

    def pass_time(self, now_ms: int) -> None:
        """Drop expired objects, and let objects enter that have matched for the dwell time."""
        if self._retry_ms <= now_ms:
            self._retry_ms = 0
        if 0 < self._next_expiry_ms <= now_ms:
            self._forget_expired(now_ms)
        if self._dwell is not None and self._dwell.pass_time(now_ms):
            self.notice(ChangeReason.DWELLED)

    def _forget_expired(self, now_ms: int) -> None:
        ends_ms = (one.expiry_ms for one in self.region.buffer.values() if one.expiry_ms <= now_ms)
        self._dropped_ms = max(self._dropped_ms, *ends_ms, 0)
        gone = self.region.forget_expired(now_ms)
        reasons = {one: _reason_to_forget(self._objects.pop(one), now_ms) for one in gone}
        if self._dwell is not None:
            self._dwell.forget(gone)
        buffer = self.region.buffer
        self._next_expiry_ms = min((one.expiry_ms for one in buffer.values()), default=0)
        self._policy.changed()
        self.notice(ChangeReason.EXPIRED, reasons)

    def must_report(self) -> bool:
        """Return whether the device must report its position. Usually O(1)."""
        host = self._host
        location, point = host.location, host.point
        if self.is_waiting or self.waits_for_position:
            return False
        if self._retry_ms and self._sent is not None and location.is_still(host.frame, self._sent):
            return False
        if self._policy.is_quiet(point, location.accuracy_m):
            return False
        return self._policy.must_report(host.frame, location, point, self._evaluate())

    def fence_m(self) -> float:
        """Return the radius on the plane within which the device need not report."""
        if not self._known or self.is_changing:
            return 0.0
        if self.waits_for_position:
            return math.inf
        host = self._host
        return self._policy.fence_m(host.frame, host.location, self._evaluate())

    def mark_sent(self, shared: SharedLocation, sequence: int = 0) -> None:
        """Record a position that the device sends in this report, or in a subscribe."""
        self._sent = shared
        self._policy.mark_sent(shared)
        self._pending_report = sequence

    def report_failed(self, sequence: int) -> bool:
        """Record that a report was refused; return whether it was for this subscription."""
        mine = self._pending_report == sequence
        if mine:
            self._pending_report = 0
        return mine

    def interrupted(self) -> None:
        """Record that the stream broke: no response to a report will arrive."""
        self._pending_report = 0

    async def answered(self) -> None:
        """Wait for a result of the latest spec at the present place; raise the error of a refusal.

        It waits for one response to a report at most, also if the device moves meanwhile. If there is a
        result and the device is offline, it does not wait.
        """
        if self.change is not None:
            await self.change.latest.done()
        if self.error is not None:
            raise self.error
        if not self._known or self.state in _DUE:
            if self._answer is None:
                self._answer = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._answer)

    def checked(self) -> None:
        """Record that a report for the present place is in progress, unless none is necessary."""
        if self._answer is not None and self._state_in_sync() is not SubscriptionState.STALE:
            self._wake_callers()

    def _wake_callers(self, error: NearcastError | None = None) -> None:
        """Wake the callers that wait for a result."""
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            if error is None:
                answer.set_result(None)
            else:
                answer.set_exception(error)
                answer.exception()  # all waiting tasks may have been cancelled: asyncio need not log it

    def notice(self, reason: ChangeReason, removals: dict[int, ChangeReason] | None = None) -> None:
        """Wake the watchers of the result."""
        for watcher in self._watchers:
            watcher.notice(reason, removals or {})

    def end(self, error: NearcastError | None = None) -> None:
        """End the subscription on the device only."""
        self.error = error or ClosedError(f"subscription {self.id} has ended")
        while self.change is not None:
            self._end_change(self.error)
        self._wake_callers(self.error)
        self.notice(ChangeReason.RESUMED)

    def _buffered(self, item: LiveObject, place: geometry_pb2.Point, r_m: float) -> Buffered:
        area = None if item.area is None else plane_area(item.area, self._host.frame)
        end_ms = item.expiry_ms
        if self._duration_ms:
            end_ms = min(end_ms, item.created_ms + self._duration_ms)
        return Buffered(item.id, place.x_m, place.y_m, r_m, end_ms, area)

    @property
    def waits_for_position(self) -> bool:
        """Whether the device must not report until it knows its exact position.

        The server may still have evaluated the subscription at an exact position. This happens if another
        instance started it, and this instance got a vague fix between its hello and its welcome.
        """
        return self.spec.region.needs_exact_position and not self._host.location.is_exact

    def _evaluate(self) -> Evaluation:
        if self._is_unplaced:
            return _NOTHING
        host = self._host
        point = host.point
        now_ms = host.clock.now_ms()
        found: Evaluation = self.region.evaluate(point.x_m, point.y_m, now_ms, host.location.accuracy_m)
        return found


def _reason_to_forget(item: LiveObject, now_ms: int) -> ChangeReason:
    return ChangeReason.EXPIRED if item.expiry_ms <= now_ms else ChangeReason.OUT_OF_WINDOW
