"""The switchboard: what the server knows, and what commands do to it. Synchronous, pure.

Deltas of the ledger go to the sessions of the devices they are for. Commands arrive here planned: they
are valid, what had to be durable is, and nothing below can fail.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from engine import Choice, EngineOptions
from safe_region.frame import Frame
from server.commands import command as c
from server.core.delta_router import DeltaRouter
from server.core.location_requests import LocationRequests
from server.core.matching_service import MatchingService
from server.core.object_table import RemovedObject
from server.counters import ParkReason
from server.errors import Reason, RefusalError
from server.limits import Limits
from server.model import Cause, Delta, LiveObject, Place
from server.session import (
    Detached,
    Event,
    Locate,
    Outbox,
    Pong,
    Rejection,
    Session,
    Subscribed,
    Welcome,
)
from server.session.leases import Leases
from server.store.mutations import DeleteObject, PutSubscription, Recovered, Row, SetHeard


class Coordinator:
    """All devices, all objects, one ledger.

    Parameters
    ----------
    frame
        The service area.
    limits
        What is accepted.
    options
        How the engine works.
    virtual_time
        Whether the clock may be advanced by command.
    lease_ms
        How long a device may say nothing; 0 for ever.
    """

    def __init__(
        self,
        frame: Frame,
        limits: Limits | None = None,
        options: EngineOptions | None = None,
        *,
        virtual_time: bool = False,
        lease_ms: int = 0,
    ) -> None:
        self.frame = frame
        self.limits = limits or Limits()
        self.matching = MatchingService(frame, options)
        self.virtual_time = virtual_time
        self.router = DeltaRouter(self.matching, self.limits)
        self.sessions = self.router.sessions
        self.counters = self.router.counters
        self.late_rows: deque[Row] = deque()
        """What must be on disk some day: expired objects, and when devices were heard of last."""
        self.real_ms = 0
        """Real time, for those who wait for people: set by whoever drives this."""
        self.steady_ms = 0
        """The time of leases: monotonic, set by whoever drives this; virtual if time is."""
        self.leases = Leases(lease_ms)
        self.location_requests = LocationRequests()
        self.id_of_key: dict[str, int] = {}
        self._next_object_id = 1
        self._next_handle = 1

    # -- life ------------------------------------------------------------------------------------

    def recover(self, found: Recovered) -> None:
        """Take over what a store holds. Subscriptions come back parked."""
        self.matching.advance(found.time_ms)
        self._next_object_id = found.next_object_id
        for objects in found.objects:
            self.matching.restore_objects(objects)
            self.id_of_key.update(
                (key, object_id)
                for key, object_id in zip(objects.keys, objects.ids.tolist(), strict=True)
                if key
            )
            self.late_rows.extend(DeleteObject(object_id) for object_id in objects.expired)
        for subscriptions in found.subscriptions:
            first, self._next_handle = self._next_handle, self._next_handle + len(subscriptions)
            handles = np.arange(first, self._next_handle, dtype=np.int64)
            self.matching.restore_subscriptions(handles, subscriptions)
            self.sessions.park(subscriptions, handles)

    def advance(self, now_ms: int) -> int:
        """Set the time. What expires leaves rows to be deleted in `late_rows`."""
        for item in self.matching.advance(now_ms):
            self._forget_key(item)
            self.late_rows.append(DeleteObject(item.object_id))
        if self.virtual_time:
            self.steady_ms = now_ms
        self.end_leases()
        return now_ms

    def take_object_id(self) -> int:
        """Return the next id. It is never given again, even if its object is refused after all."""
        object_id = self._next_object_id
        self._next_object_id += 1
        return object_id

    # -- what commands do ------------------------------------------------------------------------

    def reject(self, command: c.DeviceCommand, error: RefusalError) -> None:
        """Tell a device that its command was refused."""
        number, kind = c.rejection_address(command)
        event = Rejection(number, kind, error)
        self.counters.rejected[error.reason] += 1
        command.outbox.put(None, command.device_id, event)

    def take(self, outbox: Outbox, count_max: int) -> list[tuple[str, Event]]:
        """Take what is to be sent on a connection, oldest first."""
        return self.router.take(outbox, count_max)

    def publish(self, fresh: Sequence[LiveObject], replaced: Sequence[int]) -> None:
        """Add objects in place of those replaced."""
        for old_id in replaced:
            self._forget_key(self.matching.objects[old_id])
        self.id_of_key.update({item.key: item.object_id for item in fresh if item.key})
        self._route(self.matching.publish(fresh, replaced))
        self._ask()

    def retract(self, ids: list[int]) -> None:
        """Remove live objects."""
        for object_id in ids:
            self._forget_key(self.matching.objects[object_id])
        self._route(self.matching.retract(ids))

    def _forget_key(self, item: LiveObject | RemovedObject) -> None:
        if item.key:
            self.id_of_key.pop(item.key, None)

    def hello(self, command: c.Hello) -> None:
        """Attach a device: welcome it, then send what it missed, or everything."""
        if command.outbox.closed:
            return  # it has gone already, and nobody would detach it
        session = self.router.session_of(command.device_id)
        resumed = session.attach(command.outbox, command.nonce, command.version, command.epoch)
        self.leases.begin(session, self.steady_ms)
        known = tuple(
            Subscribed(subscription_id, self.matching.spec(handle))
            for subscription_id, handle in session.handles.items()
        )
        version = session.version if resumed else session.version + len(session.handles)
        session.say(Welcome(self.matching.now_ms, known, version, resumed, session.epoch))
        place = Place(self.frame.project(command.lon, command.lat), command.margin_m)
        handles = session.handles.values()
        pending = {handle: place for handle in handles if handle in self.matching.pending}
        if resumed:
            session.resume(command.version)
            self._anchor(pending, Cause.RESUMED)
            return
        parked = {handle: place for handle in handles if self.matching.is_parked(handle)}
        self._anchor(parked, Cause.RESUMED)
        awake = [handle for handle in handles if handle not in parked]
        self._route([self.matching.snapshot(handle, Cause.RESUMED) for handle in awake])
        self._anchor(pending, Cause.RESUMED)

    def detach(self, command: c.Detach) -> None:
        """Note that a device is gone, unless another stream has it already."""
        session = self.sessions.get(command.device_id)
        if session is not None and session.outbox is command.outbox:
            self._leave(session)
            self.location_requests.answered(session.handles.values())
            self.router.forget_if_empty(session)

    def _leave(self, session: Session) -> None:
        session.detach()
        if session.handles:
            self.late_rows.append(SetHeard(session.device_id))

    def forget(self, gone: Sequence[Session]) -> None:
        """End the subscriptions of devices that nobody has heard of. There is nobody to tell."""
        for session in gone:
            for subscription_id in list(session.handles):
                self.unsubscribe(session, subscription_id)
            self.router.forget_if_empty(session)
        self.counters.devices_forgotten += len(gone)

    def subscribe(self, session: Session, row: PutSubscription, place: Place) -> None:
        """Begin a subscription, or evaluate it again."""
        handle = session.handles.get(row.subscription_id)
        if handle is None:
            handle = self._bind(session, row)
        self._anchor({handle: place}, Cause.SUBSCRIBED)

    def _bind(self, session: Session, row: PutSubscription) -> int:
        handle = self._next_handle
        self._next_handle += 1
        self.matching.subscribe(handle, row.spec)
        self.router.bind(session, row.subscription_id, handle)
        return handle

    def unsubscribe(self, session: Session, subscription_id: int) -> None:
        """End a subscription."""
        handle = self.router.unbind(session, subscription_id)
        self.location_requests.answered([handle])
        self.matching.unsubscribe(handle)
        session.unsubscribed(subscription_id)

    def hear(self, reports: Sequence[c.Report]) -> dict[int, Place]:
        """Take note of reports; return where subscriptions are to be evaluated anew.

        The latest position counts. A report that comes again, or after a later one, has been answered
        already.
        """
        found: dict[int, Place] = {}
        for report in reports:
            session = self.sessions[report.device_id]
            session.ack(report.version)
            if report.sequence <= session.report_sequence:
                self.counters.reports_repeated += 1
                continue
            session.report_sequence = report.sequence
            handles = session.handles
            point = self.frame.project(report.lon, report.lat)
            place = Place(point, report.margin_m, report.heading_deg, report.speed_mps)
            for subscription_id in report.subscription_ids:
                found[handles[subscription_id]] = place
        return found

    def anchor(self, places: dict[int, Place], seen: list[Choice] | None = None) -> None:
        """Give subscriptions whose devices have reported new anchors, in one batch.

        Parameters
        ----------
        places
            What `hear` has returned.
        seen
            What the ledger has retrieved there, if it has looked already.
        """
        self._anchor(places, Cause.REPORTED, seen)

    @staticmethod
    def ping(session: Session, command: c.Ping) -> None:
        """Answer a sign of life, behind everything before it."""
        session.ack(command.version)
        session.say(Pong(command.number))

    def _anchor(self, places: dict[int, Place], cause: Cause, seen: list[Choice] | None = None) -> None:
        self.location_requests.answered(places)
        self._route(self.matching.anchor(places, cause, seen))

    # -- questions to devices --------------------------------------------------------------------

    def _ask(self) -> None:
        """Ask the devices of subscriptions that have begun to pend where they are.

        Those that are away say it in their next hello.
        """
        asked: dict[str, list[int]] = {}
        for handle in self.matching.unasked:
            session, subscription_id = self.router.owner(handle)
            if session.is_attached:
                self.location_requests.ask(handle, self.real_ms)
                asked.setdefault(session.device_id, []).append(subscription_id)
        self.matching.unasked = []
        for device_id, numbers in asked.items():
            self.sessions[device_id].say(Locate(tuple(numbers)))

    def detach_silent(self) -> None:
        """Detach and park devices that have left a question unanswered for too long."""
        location_requests = self.location_requests
        while (handle := location_requests.late(self.real_ms - self.limits.answer_ms_max)) is not None:
            waited_ms = self.real_ms - location_requests.since_ms(handle)
            session, _ = self.router.owner(handle)
            limit = f"at most {self.limits.answer_ms_max} ms"
            error = RefusalError(Reason.SILENT, "answer", f"{waited_ms} ms late", limit)
            self._give_up(session, error, ParkReason.SILENT)

    # -- leases ----------------------------------------------------------------------------------

    def heard(self, outbox: Outbox, device_id: str) -> None:
        """Note that a device has said something, before that is looked at. O(1)."""
        session = outbox.devices.get(device_id)
        if session is not None:
            session.heard_ms = self.steady_ms

    def end_leases(self) -> None:
        """Detach and park devices that have said nothing for longer than their lease."""
        for session in self.leases.expired(self.steady_ms):
            silent_ms = self.steady_ms - session.heard_ms
            limit = f"less than {self.leases.lease_ms} ms"
            error = RefusalError(Reason.LEASE_EXPIRED, "silence", f"{silent_ms} ms", limit)
            self._give_up(session, error, ParkReason.LEASE_EXPIRED)

    def _give_up(self, session: Session, error: RefusalError, reason: ParkReason) -> None:
        """Detach and park a device; it may say hello again."""
        session.say(Detached(error))
        self._leave(session)
        self.router.park(session, reason)
        self.location_requests.answered(session.handles.values())
        self.router.forget_if_empty(session)

    def _route(self, deltas: Sequence[Delta]) -> None:
        for session in self.router.route(deltas):
            self.location_requests.answered(session.handles.values())

    def check(self) -> None:
        """Verify engine and bookkeeping. For tests."""
        self.matching.check()
        self.router.check()
        keys = {item.key: item.object_id for item in self.matching.objects.values() if item.key}
        if keys != self.id_of_key:
            raise AssertionError("keys and objects disagree")
