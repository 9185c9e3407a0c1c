"""Planning: the effects of a durable command, decided and validated before anything changes.

Every durable command goes through three steps, so that acknowledged changes are on disk first:

    plan       validates, decides, and returns the mutations that must be durable; changes nothing
               but the next object id
    commit     makes the mutations of a batch durable (the caller)
    apply      changes engine and sessions and returns the reply; cannot fail (`Plan.apply`)

Plans of one batch do not touch the same data (`Touches`): a command that does waits for the next batch,
and so do all later commands of its device, or of its publisher.
"""

from __future__ import annotations

from collections.abc import Sequence

from identity.principal import ANYBODY, Principal
from identity.rules import require_room
from nearcast.checks import checked_name, checked_place
from nearcast.errors import Reason, RefusedError
from server import command as c
from server.commands.acceptor import attached_session, checked_spec, require_covered
from server.commands.forgetting import plan_forget
from server.commands.plan import LATER, Later, Plan, Touched, Touches
from server.commands.planned import Planned
from server.commands.publication_planner import PublicationPlanner
from server.commands.retraction import keys_of, plan_retract
from server.commands.validation import checked_subscription_id, require_settable
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.core.specs import kind_of_spec
from server.errors import weights_pending
from server.model import NO_WINDOW, Boolean, Spec, Window
from server.session import Session
from server.store.mutations import (
    DeleteSent,
    DeleteSubscription,
    PutIdf,
    PutSubscription,
    SetTime,
)

Decision = Plan | RefusedError | None
"""None marks a command that needs no disk, which is accepted in its turn."""

_NOTHING = Touches()


_A_WINDOW = 0
"""Stands for a window that the device does not have yet, beside the numbers of its subscriptions."""


class Planner:
    """Plans commands against a coordinator.

    Parameters
    ----------
    coordinator
        The present state; only read, except for the next object id.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._planned = Planned()
        """Objects and subscriptions that the batch adds."""
        self._publications = PublicationPlanner(coordinator, self._planned)

    def plan_batch(self, commands: Sequence[c.Command]) -> list[Decision | Later]:
        """Decide on commands that can be applied together, the first among them; `LATER` for the rest.

        A batch also ends where its mutations would delay the commands after it for long.
        """
        self._planned.clear()
        found: list[Decision | Later] = []
        touched, waiting = Touched(), _Waiting()
        mutation_count = 0
        rows_max = self._coordinator.limits.batch_rows_max
        for command in commands:
            is_full = touched.everything or mutation_count >= rows_max
            decision = LATER if is_full else self._decided(command, touched, waiting)
            found.append(decision)
            if isinstance(decision, Later):
                waiting.add(command)
            elif isinstance(decision, Plan):
                touched.add(decision.touches)
                mutation_count += len(decision.mutations)
        return found

    def _decided(self, command: c.Command, touched: Touched, waiting: _Waiting) -> Decision | Later:
        """Decide on a command in view of the commands before it."""
        if waiting.is_before(command):
            return LATER
        if not isinstance(command, c.DurableCommand):
            if isinstance(command, c.DeviceCommand):
                touched.add_device(command.device_id)
            return None
        if not touched.is_disjoint(_named(command)):
            return LATER  # commands before it may decide whether it is valid
        try:
            plan = self.plan(command)
        except RefusedError as error:
            self._planned.reject()
            return error.with_traceback(None)  # the traceback would hold its frames, a cycle
        if not touched.is_disjoint(plan.touches):
            self._planned.reject()
            self.give_back([plan])
            return LATER
        self._planned.accept()
        return plan

    def give_back(self, decisions: Sequence[Decision]) -> None:
        """Release the ids of objects that are not published, since ids have no gaps."""
        plans = (one for one in decisions if isinstance(one, Plan) and one.publication is not None)
        ids = [item.object_id for one in plans if one.publication for item in one.publication.created]
        if ids:
            self._coordinator.give_back_object_ids(min(ids))

    def plan(self, command: c.DurableCommand) -> Plan:  # noqa: PLR0911 - one branch a command
        """Plan a command.

        Raises
        ------
        RefusedError
            If it is refused; nothing has changed.
        """
        match command:
            case c.Publish():
                return self._publications.publish(command)
            case c.Retract():
                return plan_retract(self._coordinator, command)
            case c.TakeIn():
                return self._publications.take_in(command)
            case c.Subscribe():
                return self._plan_subscribe(command)
            case c.Unsubscribe():
                return self._plan_unsubscribe(command)
            case c.AdvanceClock():
                return self._plan_advance(command)
            case c.SetIdf():
                return self._plan_idf(command)
            case c.Forget() | c.ForgetDevice():
                return plan_forget(self._coordinator, command)
            case c.SinkSent() | c.Sync() | c.InTurn():
                return self._plan_barrier(command)

    def _plan_advance(self, command: c.AdvanceClock) -> Plan:
        now_ms = self._coordinator.matching.now_ms
        require_settable(command.time_ms, self._coordinator.clock)
        if command.time_ms < now_ms:
            limit = f"at least {now_ms}, the current time"
            raise RefusedError(Reason.TIME_BACKWARDS, "time_ms", command.time_ms, limit)
        return Plan(
            lambda _: self._coordinator.advance(command.time_ms),
            (SetTime(command.time_ms),),
            Touches(everything=True),
        )

    def _plan_barrier(self, command: c.SinkSent | c.Sync | c.InTurn) -> Plan:
        """Plan a command that follows all commands accepted before it; Sync also settles everything."""
        if isinstance(command, c.InTurn):
            return Plan(lambda _: command.apply(), (), Touches(everything=True))
        if isinstance(command, c.SinkSent):
            return Plan(lambda _: self._coordinator.matching.now_ms, (DeleteSent(command.number),))

        def apply(_batch: EvaluationBatch) -> int:
            self._coordinator.settle()
            return self._coordinator.matching.now_ms

        return Plan(apply, (), Touches(everything=True))

    def _plan_idf(self, command: c.SetIdf) -> Plan:
        matching = self._coordinator.matching
        if matching.is_reweighing:
            raise weights_pending(matching.generation)
        generation = matching.generation + 1

        def apply(_batch: EvaluationBatch) -> int:
            matching.begin_weights(generation, command.table)
            return generation

        return Plan(apply, (PutIdf(generation, command.table),), Touches(everything=True))

    def _plan_subscribe(self, command: c.Subscribe) -> Plan:
        coordinator, limits = self._coordinator, self._coordinator.limits
        session = attached_session(command)
        number = checked_subscription_id(command.subscription_id)
        kind = kind_of_spec(command.spec)
        principal = command.outbox.principal
        spec = checked_spec(command.spec, coordinator, principal)
        place = checked_place(command.place, limits)
        require_covered(kind.needs_exact_positions(spec), place.margin_m)
        count_max = limits.subscriptions_per_device_max
        handle = session.handles.get(number)
        of_device = "device", command.device_id
        count = len(session.handles) + self._planned[of_device]
        if handle is None and count >= count_max:
            raise RefusedError(
                Reason.TOO_MANY,
                "subscription_id",
                f"subscription {count + 1} of the device",
                f"at most {count_max} subscriptions a device; an app that restarts continues those "
                "with a name",
            )
        if handle is None:
            planned = "subscriptions", principal.tenant
            count = coordinator.subscription_counts[principal.tenant] + self._planned[planned] + 1
            require_room("subscriptions", count, limits.tenant_subscriptions_max, "tenant")
        is_new, is_new_here = self._require_window(session, spec.window, principal.tenant)
        name = self._checked_name(command, session)
        is_known = (
            handle is not None
            and coordinator.matching.spec(handle) == spec
            and coordinator.router.name_of(handle) == name
        )
        if not is_known:
            coordinator.require_writable()
        self._planned.add(("subscriptions", principal.tenant), handle is None)
        self._planned.add(of_device, handle is None)
        if handle is None or coordinator.matching.spec(handle) != spec:
            others = [one for other, one in session.handles.items() if other != number]
            self._require_clause_room(command.device_id, spec, others)
        row = PutSubscription(command.device_id, number, kind.number, kind.encoded(spec), name)

        def apply(batch: EvaluationBatch) -> None:
            coordinator.subscribe(session, number, spec, place, batch, name)

        touches = _named(command) if handle is None else _device(command)
        if is_new_here:
            touches = touches._replace(started=touches.started | {(command.device_id, _A_WINDOW)})
        return Plan(apply, () if is_known else (row,), touches._replace(new_window=is_new))

    def _require_window(self, session: Session, window: Window, tenant: str) -> tuple[bool, bool]:
        """Refuse a window if the server, the tenant or the device has too many others.

        Returns
        -------
        tuple of bool
            Whether the window is new to the server or the tenant, and whether it is to the device.
        """
        if window == NO_WINDOW:
            return False, False
        coordinator, limits = self._coordinator, self._coordinator.limits
        matching = coordinator.matching
        is_known = matching.knows_window(window)
        if not is_known:
            coordinator.require_window(window)
        of_tenant = coordinator.windows_of(tenant)
        if window not in of_tenant:
            require_room("spec.window", len(of_tenant) + 1, limits.tenant_windows_max, "tenant")
        of_device = {matching.spec(handle).window for handle in session.handles.values()} - {NO_WINDOW}
        if window not in of_device:
            require_room("spec.window", len(of_device) + 1, limits.device_windows_max, "device")
        return not (is_known and window in of_tenant), window not in of_device

    def _require_clause_room(self, device_id: str, spec: Spec, others: Sequence[int]) -> None:
        """Refuse a subscription if the clauses of its device would have too many keywords with it."""
        if not isinstance(spec, Boolean):
            return
        coordinator, of_device = self._coordinator, ("clause keywords", device_id)
        more = sum(len(words) for clause in spec.clauses for words in clause)
        count = coordinator.matching.clause_keyword_count(others) + self._planned[of_device] + more
        most = coordinator.limits.clause_keywords_per_device_max
        if count > most:
            raise RefusedError(
                Reason.TOO_MANY,
                "spec.boolean.clauses",
                f"{count} keywords in clauses of the device",
                f"at most {most}, including those of its other subscriptions",
            )
        self._planned.add(of_device, more)

    def _checked_name(self, command: c.Subscribe, session: Session) -> str:
        """Return the name of a subscription, which no other subscription of the device has."""
        coordinator, field = self._coordinator, "subscribe.name"
        length_max = coordinator.limits.name_length_max
        name = checked_name(command.name, field, length_max, optional=True)
        other = coordinator.router.named(session, name) if name else None
        if other not in (None, command.subscription_id):
            limit = f"a name that no other subscription of the device has: it is that of {other}"
            raise RefusedError(Reason.SUBSCRIPTION_EXISTS, field, repr(name), limit)
        return name

    def _plan_unsubscribe(self, command: c.Unsubscribe) -> Plan:
        session = attached_session(command)
        self._coordinator.require_writable()
        self._require_subscription(session, command.subscription_id)
        row = DeleteSubscription(command.device_id, command.subscription_id)
        return Plan(
            lambda _: self._coordinator.unsubscribe(session, command.subscription_id),
            (row,),
            _device(command),
        )

    @staticmethod
    def _require_subscription(session: Session, subscription_id: int) -> None:
        if subscription_id not in session.handles:
            raise RefusedError(
                Reason.UNKNOWN_SUBSCRIPTION,
                "subscription_id",
                subscription_id,
                "a subscription of the device",
            )


class _Waiting:
    """The devices and publishers with commands that wait for the next batch: later ones wait, too."""

    def __init__(self) -> None:
        self._owners: set[str] = set()
        self._device_ids: set[str] = set()
        self._any = False

    def add(self, command: c.Command) -> None:
        """Record a command that waits."""
        self._any = True
        if isinstance(command, c.Forget):
            self._device_ids.update(command.device_ids)
        elif isinstance(command, c.DeviceCommand | c.ForgetDevice):
            self._device_ids.add(command.device_id)
        else:
            self._owners.add(_owner(command))

    def is_before(self, command: c.Command) -> bool:
        """Return whether a command has to wait because of the recorded ones."""
        if not self._any:
            return False
        if isinstance(command, c.Forget):
            return not self._device_ids.isdisjoint(command.device_ids)
        if isinstance(command, c.DeviceCommand | c.ForgetDevice):
            return command.device_id in self._device_ids
        return isinstance(command, c.BARRIERS) or _owner(command) in self._owners


def _owner(command: c.Command) -> str:
    """Return the owner of a command; that of ANYBODY for commands of the server itself."""
    principal: Principal = getattr(command, "principal", ANYBODY)
    return principal.owner


def _device(command: c.DeviceCommand) -> Touches:
    """Return the data that a command for a device's session or subscriptions touches."""
    return Touches(device_ids=frozenset({command.device_id}))


def _named(command: c.DurableCommand) -> Touches:
    """Return the named data whose state at planning decides whether a command is valid."""
    if isinstance(command, c.Subscribe):
        device_id = command.device_id
        named = {(device_id, command.name)} if command.name else set()
        return Touches(started=frozenset({(device_id, command.subscription_id), *named}))
    if isinstance(command, c.DeviceCommand):
        return _device(command)
    return keys_of(command) if isinstance(command, c.Retract) else _NOTHING
