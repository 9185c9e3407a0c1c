"""Planning: what a command will do, decided and validated before anything changes.

Every command goes through two steps, so that what is acknowledged is on disk first:

    plan       validates, decides, and says which rows must be durable; changes nothing
    apply      changes engine and sessions and gives the reply; cannot fail (`server/commands/plan.py`)

Between the two the caller makes the rows durable. Plans of one batch do not touch the same things
(`Plan.touches`): `plan_batch` closes a batch before the first that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from safe_region.anchored import RegionMode
from server.commands import command as c
from server.commands.plan import Plan, Publication, Touched, Touches, left_to_others
from server.commands.validation import (
    checked_ids,
    checked_margin,
    checked_name,
    checked_nonce,
    checked_objects,
    checked_position,
    checked_report,
    checked_subscription_id,
    checked_top_k,
    checked_version,
    require_exact,
)
from server.core.coordinator import Coordinator
from server.errors import Reason, RefusalError
from server.model import LiveObject, NewObject, Place
from server.session import Session
from server.store.mutations import (
    DeleteObject,
    DeleteSubscription,
    PutObject,
    PutSubscription,
    Row,
    SetHeard,
    SetTime,
)


def _device(command: c.DeviceCommand) -> Touches:
    """Return what a command that changes a device's session or subscriptions touches."""
    return Touches(device_ids=frozenset({command.device_id}))


class Planner:
    """Plans commands against a switchboard.

    Parameters
    ----------
    board
        What is there now; only read, but for the next object id.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def plan_batch(self, commands: Sequence[c.Command]) -> list[Plan | RefusalError]:
        """Plan as many commands as can be applied together, from the first on; at least one.

        A batch ends, too, where its rows would keep those behind it waiting for long.
        """
        found: list[Plan | RefusalError] = []
        touched = Touched()
        row_count = 0
        for command in commands:
            if isinstance(command, c.DeviceCommand) and touched.has_device(command.device_id):
                break
            try:
                plan = self.plan(command)
            except RefusalError as error:
                found.append(error.with_traceback(None))  # which would hold `found`, a cycle
                continue
            if isinstance(plan.joint, c.Report) or plan.is_aside:
                found.append(plan)
                continue
            if not touched.is_disjoint(plan.touches):
                break
            found.append(plan)
            touched.add(plan.touches)
            row_count += len(plan.rows)
            if touched.everything or row_count >= self._coordinator.limits.batch_rows_max:
                break
        return found

    def plan(self, command: c.Command) -> Plan:  # noqa: C901, PLR0911, PLR0912 - one branch a command
        """Decide what a command will do.

        Raises
        ------
        RefusalError
            If it is refused; nothing has changed.
        """
        match command:
            case c.Report():
                return self._plan_report(command)
            case c.Publish():
                return self._plan_publish(command)
            case c.Retract():
                return self._plan_retract(command)
            case c.Search():
                return self._plan_search(command)
            case c.AdvanceClock():
                return self._plan_advance(command)
            case c.Forget():
                return self._plan_forget(command)
            case c.Sync():
                return Plan(lambda: self._coordinator.matching.now_ms)
            case c.Hello():
                return self._plan_hello(command)
            case c.Detach():
                return Plan(lambda: self._coordinator.detach(command), touches=_device(command))
            case c.Subscribe():
                return self._plan_subscribe(command)
            case c.Unsubscribe():
                return self._plan_unsubscribe(command)
            case c.Ack():
                session = self._speaker(command)
                return Plan(lambda: session.ack(command.version), is_aside=True)
            case c.Ping():
                session = self._speaker(command)
                return Plan(lambda: self._coordinator.ping(session, command), is_aside=True)

    def _plan_publish(self, command: c.Publish) -> Plan:
        now_ms = self._coordinator.matching.now_ms
        ids: list[int] = []
        fresh: list[LiveObject] = []
        replaced: list[int] = []
        known_ids: list[int] = []
        checked = checked_objects(command.objects, self._coordinator.limits, self._coordinator.frame)
        for new in checked:
            old_id = self._coordinator.id_of_key.get(new.key) if new.key else None
            if old_id is not None:
                known_ids.append(old_id)
                if self._coordinator.matching.objects[old_id].equals(new):
                    ids.append(old_id)
                    continue
                replaced.append(old_id)
            item = self._accepted(new, now_ms)
            fresh.append(item)
            ids.append(item.object_id)
        rows = [DeleteObject(old_id) for old_id in replaced] + [PutObject(item) for item in fresh]
        joint = Publication(fresh, replaced, ids)
        keys = frozenset(new.key for new in checked if new.key)
        return Plan(left_to_others, tuple(rows), Touches(keys, frozenset(known_ids)), joint)

    def _accepted(self, new: NewObject, now_ms: int) -> LiveObject:
        object_id = self._coordinator.take_object_id()
        point = self._coordinator.frame.project(new.lon, new.lat)
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
        ids = checked_ids(command.ids, self._coordinator.limits)
        for i, object_id in enumerate(ids):
            if object_id not in self._coordinator.matching.objects:
                raise RefusalError(
                    Reason.UNKNOWN_OBJECT, f"ids[{i}]", object_id, "the id of a live object"
                )
        rows = tuple(DeleteObject(object_id) for object_id in ids)
        return Plan(lambda: self._coordinator.retract(ids), rows, Touches(object_ids=frozenset(ids)))

    def _plan_search(self, command: c.Search) -> Plan:
        spec = checked_top_k(command.spec, self._coordinator.limits)
        checked_position(command.lon, command.lat)
        point = self._coordinator.frame.project(command.lon, command.lat)
        return Plan(
            lambda: (self._coordinator.matching.search(spec, point), self._coordinator.matching.now_ms)
        )

    def _plan_advance(self, command: c.AdvanceClock) -> Plan:
        if not self._coordinator.virtual_time:
            raise RefusalError(Reason.NOT_VIRTUAL, "clock", "real", "virtual (serve with --virtual-time)")
        if command.time_ms < self._coordinator.matching.now_ms:
            raise RefusalError(
                Reason.TIME_BACKWARDS,
                "time_ms",
                command.time_ms,
                f"at least {self._coordinator.matching.now_ms}, the present time",
            )
        return Plan(
            lambda: self._coordinator.advance(command.time_ms),
            (SetTime(command.time_ms),),
            Touches(everything=True),
        )

    def _plan_forget(self, command: c.Forget) -> Plan:
        known = [
            self._coordinator.sessions[one]
            for one in command.device_ids
            if one in self._coordinator.sessions
        ]
        rows: list[Row] = []
        for session in known:
            if session.outbox is None:
                rows += [DeleteSubscription(session.device_id, number) for number in session.handles]
            else:
                rows.append(SetHeard(session.device_id))
        gone = [session for session in known if session.outbox is None]
        touches = Touches(device_ids=frozenset(session.device_id for session in known))
        return Plan(lambda: self._coordinator.forget(gone), tuple(rows), touches)

    def _plan_hello(self, command: c.Hello) -> Plan:
        checked_name(command.device_id, "hello.device_id", self._coordinator.limits.name_length_max)
        checked_nonce(command.nonce)
        checked_version(command.version)
        checked_position(command.lon, command.lat, "hello.position")
        checked_margin(command.margin_m, self._coordinator.limits, "hello.margin_m")
        devices = command.outbox.devices
        if (
            len(devices) >= self._coordinator.limits.devices_per_fleet_max
            and command.device_id not in devices
        ):
            raise RefusalError(
                Reason.TOO_MANY,
                "hello.device_id",
                f"device {len(devices) + 1} of the stream",
                f"at most {self._coordinator.limits.devices_per_fleet_max} devices a stream",
            )
        session = self._coordinator.sessions.get(command.device_id)
        if session is not None:
            session.require_instance(command.nonce)
            require_exact(self._regions(session, session.handles), command.margin_m, "hello.margin_m")
            if session.outbox is command.outbox:
                raise RefusalError(
                    Reason.OUT_OF_ORDER, "hello", "second", "the first message of a device on a stream"
                )
        return Plan(lambda: self._coordinator.hello(command), touches=_device(command))

    def _plan_subscribe(self, command: c.Subscribe) -> Plan:
        session = self._speaker(command)
        subscription_id = checked_subscription_id(command.subscription_id)
        spec = checked_top_k(command.spec, self._coordinator.limits)
        checked_position(command.lon, command.lat)
        checked_margin(command.margin_m, self._coordinator.limits)
        require_exact((spec.region,), command.margin_m)
        handle = session.handles.get(subscription_id)
        if handle is not None and self._coordinator.matching.spec(handle) != spec:
            raise RefusalError(
                Reason.SUBSCRIPTION_EXISTS,
                "subscription_id",
                subscription_id,
                "a number without another subscription",
            )
        count_max = self._coordinator.limits.subscriptions_per_device_max
        if handle is None and len(session.handles) >= count_max:
            raise RefusalError(
                Reason.TOO_MANY,
                "subscription_id",
                f"subscription {len(session.handles) + 1} of the device",
                f"at most {count_max} subscriptions a device",
            )
        row = PutSubscription(command.device_id, subscription_id, spec)
        place = Place(self._coordinator.frame.project(command.lon, command.lat), command.margin_m)
        return Plan(
            lambda: self._coordinator.subscribe(session, row, place),
            (row,) if handle is None else (),
            _device(command),
        )

    def _plan_unsubscribe(self, command: c.Unsubscribe) -> Plan:
        session = self._speaker(command)
        self._require_subscription(session, command.subscription_id, "subscription_id")
        row = DeleteSubscription(command.device_id, command.subscription_id)
        return Plan(
            lambda: self._coordinator.unsubscribe(session, command.subscription_id),
            (row,),
            _device(command),
        )

    def _plan_report(self, command: c.Report) -> Plan:
        session = self._speaker(command)
        checked_report(command, self._coordinator.limits)
        for i, subscription_id in enumerate(command.subscription_ids):
            if subscription_id not in session.handles:
                self._require_subscription(session, subscription_id, f"subscription_ids[{i}]")
        if command.margin_m:
            require_exact(self._regions(session, command.subscription_ids), command.margin_m)
        return Plan(left_to_others, joint=command)

    def _speaker(self, command: c.DeviceCommand) -> Session:
        """Return the session of a command, if its connection is the one that carries the device."""
        session = self._coordinator.sessions.get(command.device_id)
        if session is None or session.outbox is not command.outbox:
            raise RefusalError(
                Reason.OUT_OF_ORDER,
                "device_id",
                repr(command.device_id),
                "a device that has said hello on this stream",
            )
        return session

    def _regions(self, session: Session, subscription_ids: Iterable[int]) -> Iterator[RegionMode]:
        return (self._coordinator.matching.region(session.handles[number]) for number in subscription_ids)

    def _require_subscription(self, session: Session, subscription_id: int, field: str) -> None:
        if subscription_id not in session.handles:
            raise RefusalError(
                Reason.UNKNOWN_SUBSCRIPTION, field, subscription_id, "a subscription of the device"
            )
