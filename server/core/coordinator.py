"""The coordinator: devices, keys and leases, and the effects of commands on them. Synchronous, no I/O.

The matching service (`matching`) holds objects and subscriptions. Commands that change them for devices
come to the coordinator, which passes the deltas to the sessions of the devices. Commands have been
validated, and those that have to be durable are, so nothing below can fail. A command that needs an
evaluation adds a row to a batch; `evaluate` evaluates the rows of a batch together.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from itertools import islice

from engine import EngineOptions
from engine.engine import Part
from engine.expiries import ALL
from identity.principal import tenant_of
from nearcast.errors import Reason, RefusedError
from safe_region.earth.frame import Frame
from server import command as c
from server.clock import Clock
from server.core.dear_subscriptions import DearSubscriptions
from server.core.delta_router import DeltaRouter
from server.core.evaluation_batch import EvaluationBatch
from server.core.location_requests import LocationRequests
from server.core.matching_service import MatchingService
from server.core.object_keys import ObjectKeys
from server.core.object_table import RemovedObject
from server.core.placement import Placement
from server.core.specs.windows import stored_window
from server.counters import ParkReason
from server.errors import too_many_windows
from server.limits import Limits
from server.measures import now_us
from server.model import NO_WINDOW, Cause, Delta, LiveObject, Place, Spec, Window
from server.session import (
    Detached,
    Locate,
    Outbox,
    RefusedCommand,
    Rejection,
    Session,
    Subscribed,
    Welcome,
)
from server.session.last_place import packed
from server.session.leases import Leases
from server.session.session_table import Sessions
from server.store.mutations import (
    DeleteObject,
    Mutation,
    Recovered,
    SetLastSeen,
    SubscriptionColumns,
)

_REWEIGHED = 500
"""Objects or subscriptions that `reweigh` processes at a time: some ten milliseconds."""


class Coordinator:
    """All devices and all objects.

    Parameters
    ----------
    frame
        The service area.
    limits
        Limits of commands.
    options
        Options of the engine.
    clock
        The source of the time.
    lease_ms
        How long a device may send nothing; 0 for no limit.
    serves_tenants
        Whether there are tenants beside the default one.
    """

    sessions_type: type[Sessions] = Sessions

    def __init__(
        self,
        frame: Frame,
        limits: Limits | None = None,
        options: EngineOptions | None = None,
        *,
        clock: Clock | None = None,
        lease_ms: int = 0,
        serves_tenants: bool = False,
    ) -> None:
        self.serves_tenants = serves_tenants
        self.counts_windows = not serves_tenants
        """Whether windows may be of a number of objects."""
        self.frame = frame
        self.limits = limits or Limits()
        self.matching = MatchingService(frame, options)
        self.objects = self.matching.objects
        self.clock = clock or Clock()
        self.router = DeltaRouter(self.matching, self.limits, self.sessions_type)
        self.sessions = self.router.sessions
        self.counters = self.router.counters
        self.placement: Placement | None = None
        """Where devices are served, in a cluster."""
        self.late_mutations: deque[Mutation] = deque()
        """Mutations that no command waits for: of expired objects."""
        self.late_seen: dict[str, None] = {}
        """Devices that have detached, in order: when they were last seen is to be written, too."""
        self.leases = Leases(lease_ms)
        self.outboxes: set[Outbox] = set()
        """The outboxes of all streams."""
        self.location_requests = LocationRequests()
        self.dear = DearSubscriptions()
        self.keys = ObjectKeys()
        self.subscription_counts: Counter[str] = Counter()
        """Number of subscriptions, by tenant."""
        self._windows: dict[str, Counter[Window]] = {}
        """By tenant: the windows of its subscriptions, and how many subscriptions have each."""
        self._next_object_id = 1

    # -- life ------------------------------------------------------------------------------------

    def recover(self, found: Recovered) -> None:
        """Restore the content of a store. Its subscriptions are parked."""
        self.matching.advance(found.time_ms)
        self._next_object_id = found.next_object_id
        if found.idf is not None:
            self.matching.restore_weights(found.idf.generation, found.idf.table)
        for objects in found.objects:
            self.matching.restore_objects(objects)
            for owner, key, object_id in zip(
                objects.owners, objects.keys, objects.ids.tolist(), strict=True
            ):
                if key:
                    self.keys.put(owner, key, object_id)
            expired = (DeleteObject(object_id, has_expired=True) for object_id in objects.expired)
            self.late_mutations.extend(expired)
        self.matching.begin_ids(found.next_object_id)
        for subscriptions in found.subscriptions:
            self.restore_subscriptions(subscriptions)

    def restore_subscriptions(self, subscriptions: SubscriptionColumns) -> None:
        """Add subscriptions of devices that have none, parked; those of a device are adjacent."""
        handles = self.matching.restore_subscriptions(subscriptions)
        self.sessions.park(subscriptions, handles)
        for handle, name in zip(handles.tolist(), subscriptions.names, strict=True):
            if name:
                self.router.name(handle, name)
        self.subscription_counts.update(map(tenant_of, subscriptions.device_ids))
        if self.matching.window_count:
            for device_id, spec in zip(subscriptions.device_ids, subscriptions.specs, strict=True):
                self._count_window(tenant_of(device_id), stored_window(spec), 1)

    def advance(self, now_ms: int) -> int:
        """Set the time. Objects that expire leave mutations in `late_mutations`.

        Nothing is done while nothing is due. Subscriptions that are due are settled; in virtual time,
        where no one waits for a response, all subscriptions that can be settled are.
        """
        self.advance_some(now_ms, ALL)
        return now_ms

    def skip_to(self, now_ms: int) -> bool:
        """Set the real time if nothing is due until then; return whether it was set. O(1)."""
        is_quiet = self.clock.lease_ms < self.leases.due_ms
        return is_quiet and self.matching.engine.skip_to(now_ms)

    def advance_some(self, now_ms: int, count_max: int) -> bool:
        """Set the time, but remove at most `count_max` expired objects; return whether more have expired.

        Until they are removed, they are in the results of searches, and count for quotas and keys.
        Evaluations may send them: to a device that is as if they had expired on the way.
        """
        clock = self.clock
        if clock.is_virtual or not self.matching.engine.skip_to(now_ms):
            self._pass_time(now_ms, count_max)
        if clock.is_virtual:
            clock.lease_ms = now_ms
        if clock.lease_ms >= self.leases.due_ms:
            self.end_leases()
        return self.matching.engine.objects.has_due

    def _pass_time(self, now_ms: int, count_max: int) -> None:
        expired, deltas = self.matching.advance(now_ms, count_max)
        self._route(deltas)
        self.counters.objects_gone += len(expired)
        for item in expired:
            self._forget_key(item)
        self._delete_expired(expired)
        self.settle(everything=self.clock.is_virtual)

    def _delete_expired(self, expired: Sequence[RemovedObject]) -> None:
        self.late_mutations.extend(DeleteObject(one.object_id, has_expired=True) for one in expired)

    def settle(self, *, everything: bool = True) -> None:
        """Settle subscriptions with too many matches (`MatchingService.settle`)."""
        self._route(self.matching.settle(everything=everything))

    @property
    def now_ms(self) -> int:
        """The current time in milliseconds."""
        return self.matching.now_ms

    def take_object_id(self) -> int:
        """Return the next id. Ids have no gaps: the ids of objects that are refused are released."""
        object_id = self._next_object_id
        self._next_object_id += 1
        return object_id

    @property
    def latest_object_id(self) -> int:
        """The latest id."""
        return self._next_object_id - 1

    def give_back_object_ids(self, first_id: int) -> None:
        """Release all ids from `first_id` on. They have not been sent to any client."""
        self._next_object_id = first_id

    # -- objects ---------------------------------------------------------------------------------

    def publish(
        self,
        created: Sequence[LiveObject],
        replaced: Sequence[int],
        next_id: int = 0,
        retracted: Sequence[int] = (),
    ) -> None:
        """Add objects and remove others; see `MatchingService.publish`."""
        for old_id in (*replaced, *retracted):
            self._forget_key(self.matching.objects[old_id])
        self.counters.objects_published += len(created)
        self.counters.objects_gone += len(replaced) + len(retracted)
        for item in created:
            if item.key:
                self.keys.put(item.owner, item.key, item.object_id)
        self._route(self.matching.publish(created, replaced, next_id, retracted))
        if self.matching.located:
            self._ask_for_locations()

    def retract(self, ids: list[int]) -> None:
        """Remove live objects."""
        for object_id in ids:
            self._forget_key(self.matching.objects[object_id])
        self.counters.objects_gone += len(ids)
        self._route(self.matching.retract(ids))

    def _forget_key(self, item: LiveObject | RemovedObject) -> None:
        if item.key:
            self.keys.remove(item.owner, item.key)

    # -- devices ---------------------------------------------------------------------------------

    def renew_lease(self, outbox: Outbox, device_id: str) -> Session | None:
        """Record that a device has sent a message; return its session if it is attached there. O(1)."""
        session = outbox.devices.get(device_id)
        if session is not None:
            session.last_seen_ms = self.clock.lease_ms
        return session

    def reject(
        self, outbox: Outbox, device_id: str, number: int, command: RefusedCommand, error: RefusedError
    ) -> None:
        """Notify a device that its command was refused."""
        self.counters.rejected[error.reason] += 1
        outbox.timed_report = None  # the refused command may be this report, which then gets no response
        outbox.put(None, device_id, Rejection(number, command, error))

    def hello(self, hello: c.Hello, batch: EvaluationBatch) -> None:
        """Attach a device: welcome it, then send the deltas that it missed, or snapshots."""
        place, now_ms, lag_offset = hello.place, self.clock.lease_ms, self.lag_offset
        session = self.router.session_of(hello.device_id)
        resumed = session.attach(hello.outbox, hello.nonce, hello.version, hello.epoch, now_ms)
        self.leases.begin(session, now_ms)
        session.last_place = packed(place, now_ms)
        known = tuple(
            Subscribed(subscription_id, self.matching.spec(handle), self.router.name_of(handle))
            for subscription_id, handle in session.handles.items()
        )
        unplaced = self._unplaced(session, place)
        target = session.version + len(unplaced if resumed else session.handles)
        session.enqueue(Welcome(self.matching.now_ms, known, target, resumed, session.epoch, lag_offset))
        handles = [one for one in session.handles.values() if one not in unplaced]
        if resumed:
            session.resume(hello.version)
        else:
            batch.snapshots.update(dict.fromkeys(handles, Cause.RESUMED))
            for handle in handles:
                batch.unplaced.discard(handle)
        batch.arrivals.update(dict.fromkeys(handles, place))
        batch.set_aside(unplaced)
        self.location_requests.answered(unplaced)

    def _unplaced(self, session: Session, place: Place) -> set[int]:
        """Return the handles that cannot be evaluated at a place because it has a margin."""
        if not place.margin_m:
            return set()
        return {one for one in session.handles.values() if self.matching.needs_exact_position(one)}

    def detach(self, outbox: Outbox, device_id: str) -> None:
        """Record that a device has detached, unless another stream has attached it since."""
        session = self.sessions.get(device_id)
        if session is not None and session.outbox is outbox:
            self._leave(session)
            self.location_requests.answered(session.handles.values())
            self.router.forget_if_empty(session)

    def _leave(self, session: Session) -> None:
        session.detach()
        if session.handles:
            self._note_seen(session.device_id)

    def _note_seen(self, device_id: str) -> None:
        """Record that a device with subscriptions was attached until now."""
        self.late_seen[device_id] = None

    @property
    def late_count(self) -> int:
        """The number of mutations that no command waits for."""
        return len(self.late_mutations) + len(self.late_seen)

    def take_late(self, count_max: int) -> list[Mutation]:
        """Take some of the mutations that no command waits for, oldest first."""
        waiting = self.late_mutations
        taken = [waiting.popleft() for _ in range(min(len(waiting), count_max))]
        seen = list(islice(self.late_seen, count_max - len(taken)))
        for device_id in seen:
            del self.late_seen[device_id]
        return taken + [SetLastSeen(device_id) for device_id in seen]

    def put_back_late(self, taken: Sequence[Mutation]) -> None:
        """Put back what was taken: the store cannot be written now."""
        seen = {one.device_id: None for one in taken if isinstance(one, SetLastSeen)}
        self.late_mutations.extendleft(one for one in reversed(taken) if not isinstance(one, SetLastSeen))
        self.late_seen = seen | self.late_seen

    def forget_overdue(self, gone: Sequence[Session]) -> None:
        """Remove devices that have not been seen for long, also those that have attached since."""
        for session in gone:
            self._forget(session)
        self.counters.devices_forgotten += len(gone)

    def forget_device(self, device_id: str) -> int:
        """Remove all data of a device; return the number of its subscriptions.

        A device that is attached is detached: its pending events are dropped, then it gets the reason.
        """
        session = self.sessions.get(device_id)
        if session is None:
            return 0
        self.counters.devices_deleted += 1
        return self._forget(session)

    def _forget(self, session: Session) -> int:
        """End all subscriptions of a device, and its session; detach it if it is attached."""
        if session.is_attached:
            error = RefusedError(Reason.FORGOTTEN, "device", "forgotten", "attached again, as a new one")
            session.enqueue(Detached(error))
        session.detach()
        numbers = list(session.handles)
        for subscription_id in numbers:
            self._end(session, subscription_id)
        self.router.forget_if_empty(session)
        return len(numbers)

    def subscribe(
        self,
        session: Session,
        subscription_id: int,
        spec: Spec,
        place: Place,
        batch: EvaluationBatch,
        name: str = "",
    ) -> None:
        """Start a subscription, change it in place, or evaluate it again."""
        session.last_place = packed(place, self.clock.lease_ms)
        handle = session.handles.get(subscription_id)
        if handle is not None and self.matching.spec(handle) != spec:
            self._end(session, subscription_id)
            batch.forget(handle)
            handle = None
        if handle is None:
            handle = self.matching.subscribe(spec)
            self._count_window(tenant_of(session.device_id), spec.window, 1)
            self.router.bind(session, subscription_id, handle)
            self.subscription_counts[tenant_of(session.device_id)] += 1
        self.router.name(handle, name)
        batch.place(handle, place)
        batch.causes[handle] = Cause.SUBSCRIBED

    def require_window(self, window: Window) -> None:  # noqa: ARG002 - which one matters in a cluster
        """Refuse a further window if there are too many."""
        if self.matching.window_count >= self.limits.windows_max:
            raise too_many_windows(self.limits.windows_max)

    def windows_in_use(self) -> set[Window]:
        """Return the different windows of all subscriptions."""
        return set().union(*self._windows.values())

    def windows_of(self, tenant: str) -> Collection[Window]:
        """Return the different windows of the subscriptions of a tenant."""
        return self._windows.get(tenant, Counter())

    def _count_window(self, tenant: str, window: Window, change: int) -> None:
        if window == NO_WINDOW:
            return
        counts = self._windows.setdefault(tenant, Counter())
        counts[window] += change
        if not counts[window]:
            del counts[window]

    def unsubscribe(self, session: Session, subscription_id: int) -> None:
        """End a subscription."""
        self._end(session, subscription_id)
        session.unsubscribed(subscription_id)

    def _end(self, session: Session, subscription_id: int) -> None:
        handle = self.router.unbind(session, subscription_id)
        self.subscription_counts[tenant_of(session.device_id)] -= 1
        self.location_requests.answered([handle])
        self.dear.forget(handle)
        if self.matching.window_count:
            window = self.matching.spec(handle).window
            self._count_window(tenant_of(session.device_id), window, -1)
        self.matching.unsubscribe(handle)

    def report(
        self, report: c.Report, session: Session, handles: Sequence[int], batch: EvaluationBatch
    ) -> None:
        """Record a report for subscriptions of a session; the latest position counts.

        A report that comes again, or after a later one, is ignored, since the server has responded
        already.
        """
        session.ack(report.version)
        if report.sequence <= session.report_sequence:
            self.counters.reports_repeated += 1
            return
        session.report_sequence = report.sequence
        self.counters.reports_accepted += 1
        session.last_place = packed(report.place, self.clock.lease_ms)
        for handle in handles:
            batch.place(handle, report.place)

    def require_here(self, device_id: str, *, for_certain: bool = False) -> None:
        """Raise RefusedError if another server serves a device, or may; see `Placement.require`."""
        if self.placement is not None:
            self.placement.require(device_id, for_certain=for_certain)

    @property
    def lag_offset(self) -> int:
        """How far the log of the cluster is applied while the server lags behind it; else 0."""
        return 0

    def require_writable(self) -> None:
        """Raise RefusedError if subscriptions cannot be stored now."""

    # -- evaluation ------------------------------------------------------------------------------

    def evaluate(self, batch: EvaluationBatch, retrieved: list[Part] | None = None) -> None:
        """Evaluate all subscriptions in a batch, and route the deltas to their devices.

        `retrieved` is the data that the matching service has retrieved for the batch, if it has.
        """
        if batch.arrivals:  # a batch that was retrieved has the rows of its arrivals already
            self.matching.resume(batch)
        if batch:
            began_us = now_us()
            if self.matching.pending:
                self.location_requests.answered(batch.places)
            deltas = self.matching.evaluate(batch, retrieved)
            self.dear.note(deltas)
            self._route(deltas)
            measures = self.counters.measures
            measures.evaluation_subscriptions.note(len(batch))
            measures.evaluation_us.note(now_us() - began_us)

    def reweigh(self) -> bool:
        """Continue to bring a table of weights into force; return whether more work is left."""
        if self.matching.is_reweighing:
            self._route(self.matching.reweigh(_REWEIGHED))
        return self.matching.is_reweighing

    def _route(self, deltas: Sequence[Delta]) -> None:
        for session in self.router.route(deltas):
            self.location_requests.answered(session.handles.values())

    # -- questions to devices where they are -----------------------------------------------------

    def _ask_for_locations(self) -> None:
        """Request the positions of devices whose subscriptions have new pending objects.

        A device that is disconnected sends its position in its next hello.
        """
        requested: dict[str, list[int]] = {}
        for handle in self.matching.located:
            session, subscription_id = self.router.owner(handle)
            if session.is_attached:
                self.location_requests.ask(handle, self.clock.real_ms)
                requested.setdefault(session.device_id, []).append(subscription_id)
        self.matching.located = []
        for device_id, numbers in requested.items():
            self.sessions[device_id].enqueue(Locate(tuple(numbers)))

    def detach_silent(self) -> None:
        """Detach and park devices that have not responded to a location request in time."""
        requests = self.location_requests
        while (handle := requests.late(self.clock.real_ms - self.limits.answer_ms_max)) is not None:
            waited_ms = self.clock.real_ms - requests.since_ms(handle)
            session, _ = self.router.owner(handle)
            limit = f"at most {self.limits.answer_ms_max} ms"
            error = RefusedError(Reason.SILENT, "answer", f"{waited_ms} ms late", limit)
            self._give_up(session, error, ParkReason.SILENT)

    # -- leases ----------------------------------------------------------------------------------

    def end_leases(self) -> None:
        """Detach and park devices that have sent nothing for longer than their lease."""
        for session in self.leases.expired(self.clock.lease_ms):
            silent_ms = self.clock.lease_ms - session.last_seen_ms
            limit = f"less than {self.leases.lease_ms} ms"
            error = RefusedError(Reason.LEASE_EXPIRED, "silence", f"{silent_ms} ms", limit)
            self._give_up(session, error, ParkReason.LEASE_EXPIRED)

    def _give_up(self, session: Session, error: RefusedError, reason: ParkReason) -> None:
        """Detach and park a device; it may send hello again."""
        session.enqueue(Detached(error))
        self._leave(session)
        self.router.park(session, reason)
        self.location_requests.answered(session.handles.values())
        self.router.forget_if_empty(session)

    def gauges_of(self, tenant: str) -> dict[str, int]:
        """Return the gauges of a tenant for its operators."""
        return {
            "objects": self.matching.objects.count_of_tenant(tenant),
            "subscriptions": self.subscription_counts[tenant],
        }

    def check(self) -> None:
        """Verify engine and bookkeeping. For tests."""
        self.matching.check()
        self.router.check()
        items = self.matching.objects.values()
        keys = {(item.owner, item.key, item.object_id) for item in items if item.key}
        if keys != set(self.keys) or len(keys) != len(self.keys):
            raise AssertionError("keys and objects disagree")
