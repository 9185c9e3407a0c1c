"""The switchboard: commands in, deltas out to the right sessions. Synchronous, pure, virtual time.

Every command goes through two steps, so that what is acknowledged is on disk first:

    plan(command)  validates, decides, and says which rows must be durable; changes nothing
    apply(plans)   changes engine and sessions and gives the replies; cannot fail

Between the two the caller makes the rows durable. Plans of one batch must not touch the same things
(`Plan.touches`); `plan_batch` closes a batch before the first that does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from safe_region.frame import Frame, Point
from server import commands as c
from server.engine import Engine, EngineOptions
from server.errors import Reason, RefusalError
from server.limits import Limits
from server.model import Cause, Delta, LiveObject, NewObject
from server.rows import (
    DeleteObject,
    DeleteSubscription,
    PutObject,
    PutSubscription,
    Recovered,
    Row,
    SetTime,
)
from server.session import (
    Connection,
    Event,
    Pong,
    Rejection,
    Session,
    State,
    Subscribed,
    Unsubscribed,
    Welcome,
)
from server.session.events import SnapshotDue
from server.validation import (
    checked_ids,
    checked_name,
    checked_nonce,
    checked_objects,
    checked_position,
    checked_subscription_id,
    checked_top_k,
    checked_version,
)


EVERYTHING = "everything"
"""What a plan touches that must be the last of its batch."""


def _device(command: c.DeviceCommand) -> Hashable:
    """Return what a command that changes a device's session or subscriptions touches."""
    return ("device", command.device_id)


@dataclass(frozen=True, slots=True)
class Plan:
    """A validated command: what must be durable, what it touches, and how to carry it out."""

    apply: Callable[[], object]
    rows: tuple[Row, ...] = ()
    touches: frozenset[Hashable] = frozenset()
    report: c.Report | None = None
    """Set instead of `apply` having an effect: adjacent reports are evaluated as one batch."""


class Switchboard:
    """All devices, all objects, one engine.

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
    """

    def __init__(
        self,
        frame: Frame,
        limits: Limits | None = None,
        options: EngineOptions | None = None,
        *,
        virtual_time: bool = False,
    ) -> None:
        self.frame = frame
        self.limits = limits or Limits()
        self.engine = Engine(frame, options)
        self.virtual_time = virtual_time
        self.sessions: dict[str, Session] = {}
        self.expired_rows: list[Row] = []
        self._owners: dict[int, tuple[Session, int]] = {}  # handle -> session, subscription id
        self._id_of_key: dict[str, int] = {}
        self._next_object_id = 1
        self._next_handle = 1

    # -- life ------------------------------------------------------------------------------------

    def recover(self, found: Recovered) -> None:
        """Take over what a store holds. Subscriptions come back parked."""
        self.engine.advance(found.time_ms)
        self._next_object_id = found.next_object_id
        for row in found.subscriptions:
            session = self.sessions.get(row.device_id)
            if session is None:
                session = Session(row.device_id, self.limits, parked=True)
                self.sessions[row.device_id] = session
            self._own(session, row)
        self.engine.publish(found.objects)
        self._id_of_key.update({item.key: item.object_id for item in found.objects if item.key})

    def advance(self, now_ms: int) -> int:
        """Set the time. What expires leaves rows to be deleted in `expired_rows`."""
        for item in self.engine.advance(now_ms):
            self._forget_key(item)
            self.expired_rows.append(DeleteObject(item.object_id))
        return now_ms

    # -- plan ------------------------------------------------------------------------------------

    def plan_batch(self, commands: Sequence[c.Command]) -> list[Plan | RefusalError]:
        """Plan as many commands as can be applied together, from the first on; at least one."""
        found: list[Plan | RefusalError] = []
        touched: set[Hashable] = set()
        for command in commands:
            if isinstance(command, c.DeviceCommand) and _device(command) in touched:
                break
            try:
                plan = self.plan(command)
            except RefusalError as error:
                found.append(error)
                continue
            if not touched.isdisjoint(plan.touches):
                break
            found.append(plan)
            touched |= plan.touches
            if EVERYTHING in touched:
                break
        return found

    def plan(self, command: c.Command) -> Plan:
        """Decide what a command will do.

        Raises
        ------
        RefusalError
            If it is refused; nothing has changed.
        """
        match command:
            case c.Publish():
                return self._plan_publish(command)
            case c.Retract():
                return self._plan_retract(command)
            case c.Search():
                return self._plan_search(command)
            case c.AdvanceClock():
                return self._plan_advance(command)
            case c.Sync():
                return Plan(lambda: self.engine.now_ms)
            case c.Hello():
                return self._plan_hello(command)
            case c.Detach():
                return Plan(lambda: self._detach(command), touches=frozenset({_device(command)}))
            case c.Subscribe():
                return self._plan_subscribe(command)
            case c.Unsubscribe():
                return self._plan_unsubscribe(command)
            case c.Report():
                return self._plan_report(command)
            case c.Ack():
                session = self._speaker(command)
                return Plan(lambda: session.ack(command.version))
            case c.Ping():
                session = self._speaker(command)
                return Plan(lambda: session.say(Pong(command.number)))

    def _plan_publish(self, command: c.Publish) -> Plan:
        now_ms = self.engine.now_ms
        ids: list[int] = []
        fresh: list[LiveObject] = []
        replaced: list[int] = []
        touches: set[Hashable] = set()
        for new in checked_objects(command.objects, self.limits, self.frame):
            old_id = self._id_of_key.get(new.key) if new.key else None
            if new.key:
                touches.add(new.key)
            if old_id is not None:
                if self.engine.objects[old_id].equals(new):
                    ids.append(old_id)
                    continue
                replaced.append(old_id)
                touches.add(old_id)
            item = self._accepted(new, now_ms)
            fresh.append(item)
            ids.append(item.object_id)
        rows = [DeleteObject(old_id) for old_id in replaced] + [PutObject(item) for item in fresh]
        return Plan(
            lambda: self._publish(fresh, replaced, ids), tuple(rows), frozenset(touches)
        )

    def _accepted(self, new: NewObject, now_ms: int) -> LiveObject:
        object_id = self._next_object_id
        self._next_object_id += 1  # an id is never reused, even if the commit fails
        point = self.frame.project(new.lon, new.lat)
        return LiveObject(
            object_id,
            new.lon,
            new.lat,
            point,
            new.keywords,
            now_ms,
            now_ms + new.ttl_ms,
            new.payload,
            new.key,
        )

    def _plan_retract(self, command: c.Retract) -> Plan:
        ids = checked_ids(command.ids, self.limits)
        for i, object_id in enumerate(ids):
            if object_id not in self.engine.objects:
                raise RefusalError(
                    Reason.UNKNOWN_OBJECT, f"ids[{i}]", object_id, "the id of a live object"
                )
        rows = tuple(DeleteObject(object_id) for object_id in ids)
        return Plan(lambda: self._retract(ids), rows, frozenset(ids))

    def _plan_search(self, command: c.Search) -> Plan:
        spec = checked_top_k(command.spec, self.limits)
        checked_position(command.lon, command.lat)
        point = self.frame.project(command.lon, command.lat)
        return Plan(lambda: (self.engine.search(spec, point), self.engine.now_ms))

    def _plan_advance(self, command: c.AdvanceClock) -> Plan:
        if not self.virtual_time:
            raise RefusalError(
                Reason.NOT_VIRTUAL, "clock", "real", "virtual (serve with --virtual-time)"
            )
        if command.time_ms < self.engine.now_ms:
            raise RefusalError(
                Reason.TIME_BACKWARDS,
                "time_ms",
                command.time_ms,
                f"at least {self.engine.now_ms}, the present time",
            )
        return Plan(
            lambda: self.advance(command.time_ms),
            (SetTime(command.time_ms),),
            frozenset({EVERYTHING}),
        )

    def _plan_hello(self, command: c.Hello) -> Plan:
        checked_name(command.device_id, "hello.device_id", self.limits.name_length_max)
        checked_nonce(command.nonce)
        checked_version(command.version)
        checked_position(command.lon, command.lat, "hello.position")
        devices = command.connection.devices
        if len(devices) >= self.limits.devices_per_fleet_max and command.device_id not in devices:
            raise RefusalError(
                Reason.TOO_MANY,
                "hello.device_id",
                f"device {len(devices) + 1} of the stream",
                f"at most {self.limits.devices_per_fleet_max} devices a stream",
            )
        session = self.sessions.get(command.device_id)
        if session is not None:
            session.require_instance(command.nonce)
        return Plan(lambda: self._hello(command), touches=frozenset({_device(command)}))

    def _plan_subscribe(self, command: c.Subscribe) -> Plan:
        session = self._speaker(command)
        subscription_id = checked_subscription_id(command.subscription_id)
        spec = checked_top_k(command.spec, self.limits)
        checked_position(command.lon, command.lat)
        handle = session.handles.get(subscription_id)
        if handle is not None and self.engine.spec(handle) != spec:
            raise RefusalError(
                Reason.SUBSCRIPTION_EXISTS,
                "subscription_id",
                subscription_id,
                "a number without another subscription",
            )
        count_max = self.limits.subscriptions_per_device_max
        if handle is None and len(session.handles) >= count_max:
            raise RefusalError(
                Reason.TOO_MANY,
                "subscription_id",
                f"subscription {len(session.handles) + 1} of the device",
                f"at most {count_max} subscriptions a device",
            )
        row = PutSubscription(command.device_id, subscription_id, spec)
        point = self.frame.project(command.lon, command.lat)
        return Plan(
            lambda: self._subscribe(session, row, point),
            (row,) if handle is None else (),
            frozenset({_device(command)}),
        )

    def _plan_unsubscribe(self, command: c.Unsubscribe) -> Plan:
        session = self._speaker(command)
        self._require_subscription(session, command.subscription_id, "subscription_id")
        row = DeleteSubscription(command.device_id, command.subscription_id)
        return Plan(
            lambda: self._unsubscribe(session, command.subscription_id),
            (row,),
            frozenset({_device(command)}),
        )

    def _plan_report(self, command: c.Report) -> Plan:
        session = self._speaker(command)
        checked_position(command.lon, command.lat)
        for i, subscription_id in enumerate(command.subscription_ids):
            self._require_subscription(session, subscription_id, f"subscription_ids[{i}]")
        return Plan(lambda: None, report=command)

    def _speaker(self, command: c.DeviceCommand) -> Session:
        """Return the session of a command, if its connection is the one that carries the device."""
        session = self.sessions.get(command.device_id)
        if session is None or session.connection is not command.connection:
            raise RefusalError(
                Reason.OUT_OF_ORDER,
                "device_id",
                repr(command.device_id),
                "a device that has said hello on this stream",
            )
        return session

    def _require_subscription(self, session: Session, subscription_id: int, field: str) -> None:
        if subscription_id not in session.handles:
            raise RefusalError(
                Reason.UNKNOWN_SUBSCRIPTION, field, subscription_id, "a subscription of the device"
            )

    # -- apply -----------------------------------------------------------------------------------

    def apply(self, plans: Sequence[Plan]) -> list[object]:
        """Carry plans out in order; return a reply for each."""
        replies: list[object] = []
        reports: list[c.Report] = []
        for plan in plans:
            if plan.report is not None:
                reports.append(plan.report)
                replies.append(None)
                continue
            self._anchor(reports)
            reports = []
            replies.append(plan.apply())
        self._anchor(reports)
        return replies

    def reject(self, command: c.DeviceCommand, error: RefusalError) -> None:
        """Tell a device that its command was refused."""
        number, kind = c.rejection_address(command)
        event = Rejection(number, kind, error)
        command.connection.put(None, command.device_id, event)

    def take(self, connection: Connection, count_max: int) -> list[tuple[str, Event]]:
        """Take what is to be sent on a connection, oldest first."""
        taken: list[tuple[str, Event]] = []
        while len(connection) and len(taken) < count_max:
            item = connection.pop()
            event = item.event
            if event is None:
                continue
            if isinstance(event, SnapshotDue):
                if item.session is not None and item.session.connection is connection:
                    found = item.session.snapshots(self.engine.snapshot)
                    taken += [(item.device_id, snapshot) for snapshot in found]
                continue
            if item.session is not None:
                item.session.sent(item)
            taken.append((item.device_id, event))
        return taken

    def _publish(
        self, fresh: list[LiveObject], replaced: list[int], ids: list[int]
    ) -> list[int]:
        for old_id in replaced:
            self._forget_key(self.engine.objects[old_id])
        self._id_of_key.update({item.key: item.object_id for item in fresh if item.key})
        self._route(self.engine.publish(fresh, replaced))
        return ids

    def _retract(self, ids: list[int]) -> None:
        for object_id in ids:
            self._forget_key(self.engine.objects[object_id])
        self._route(self.engine.retract(ids))

    def _forget_key(self, item: LiveObject) -> None:
        if item.key:
            self._id_of_key.pop(item.key, None)

    def _hello(self, command: c.Hello) -> None:
        session = self.sessions.get(command.device_id)
        if session is None:
            session = Session(command.device_id, self.limits)
            self.sessions[command.device_id] = session
        resumed = session.attach(command.connection, command.nonce, command.version)
        known = tuple(
            Subscribed(subscription_id, self.engine.spec(handle))
            for subscription_id, handle in session.handles.items()
        )
        version = session.version if resumed else session.version + len(session.handles)
        session.say(Welcome(self.engine.now_ms, known, version, resumed))
        if resumed:
            session.resume(command.version)
            return
        point = self.frame.project(command.lon, command.lat)
        parked = {h: point for h in session.handles.values() if self.engine.is_parked(h)}
        self._route(self.engine.anchor(parked, Cause.RESUMED))
        awake = [handle for handle in session.handles.values() if handle not in parked]
        self._route([self.engine.snapshot(handle, Cause.RESUMED) for handle in awake])

    def _detach(self, command: c.Detach) -> None:
        session = self.sessions.get(command.device_id)
        if session is not None and session.connection is command.connection:
            session.detach()
            if not session.handles:
                del self.sessions[command.device_id]

    def _subscribe(self, session: Session, row: PutSubscription, point: Point) -> None:
        handle = session.handles.get(row.subscription_id)
        if handle is None:
            handle = self._own(session, row)
        self._route(self.engine.anchor({handle: point}, Cause.SUBSCRIBED))

    def _own(self, session: Session, row: PutSubscription) -> int:
        handle = self._next_handle
        self._next_handle += 1
        self.engine.subscribe(handle, row.spec)
        session.handles[row.subscription_id] = handle
        self._owners[handle] = (session, row.subscription_id)
        return handle

    def _unsubscribe(self, session: Session, subscription_id: int) -> None:
        handle = session.handles.pop(subscription_id)
        del self._owners[handle]
        self.engine.unsubscribe(handle)
        session.say(Unsubscribed(subscription_id))

    def _anchor(self, reports: Sequence[c.Report]) -> None:
        positions: dict[int, Point] = {}
        for report in reports:
            session = self.sessions[report.device_id]
            session.report_sequence = max(session.report_sequence, report.sequence)
            point = self.frame.project(report.lon, report.lat)
            for subscription_id in report.subscription_ids:
                positions[session.handles[subscription_id]] = point
        self._route(self.engine.anchor(positions, Cause.REPORTED))

    def _route(self, deltas: Sequence[Delta]) -> None:
        for delta in deltas:
            session, subscription_id = self._owners[delta.handle]
            if not session.push(subscription_id, delta):
                self._park(session)

    def _park(self, session: Session) -> None:
        session.park()
        for handle in session.handles.values():
            self.engine.park(handle)

    def check(self) -> None:
        """Verify engine and bookkeeping. For tests."""
        self.engine.check()
        owned = {
            handle: (session, subscription_id)
            for session in self.sessions.values()
            for subscription_id, handle in session.handles.items()
        }
        if owned != self._owners:
            raise AssertionError("handles and sessions disagree")
        keys = {item.key: item.object_id for item in self.engine.objects.values() if item.key}
        if keys != self._id_of_key:
            raise AssertionError("keys and objects disagree")
        for session in self.sessions.values():
            if (session.state is State.ATTACHED) != (session.connection is not None):
                raise AssertionError(f"session {session.device_id} has lost its connection")
