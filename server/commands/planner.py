"""Planning: what a durable command will do, decided and validated before anything changes.

Every durable command goes through three steps, so that what is acknowledged is on disk first:

    plan       validates, decides, and says which mutations must be durable; changes nothing but the
               next object id
    commit     makes the mutations of a batch durable (the caller)
    apply      changes engine and sessions and gives the reply; cannot fail (`Batch.apply`)

Plans of one batch do not touch the same things (`Touches`): a batch ends before the first that does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from server.commands import command as c
from server.commands.acceptor import attached_session, checked_spec, require_covered
from server.commands.forgetting import plan_forget
from server.commands.plan import Plan, Touched, Touches
from server.commands.publication_planner import PublicationPlanner
from server.commands.retraction import plan_retract
from server.commands.validation import checked_name, checked_place, checked_subscription_id
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.core.specs import kind_of_spec
from server.errors import Reason, RefusalError
from server.rules import require_room
from server.session import Session
from server.store.mutations import (
    DeleteSubscription,
    DeleteTold,
    PutIdf,
    PutSubscription,
    SetTime,
)

Decision = Plan | RefusalError | None
"""None stands for a command that needs no disk, which is accepted when it is its turn."""

_NOTHING = Touches()


class Planner:
    """Plans commands against a coordinator.

    Parameters
    ----------
    coordinator
        What is there now; only read, but for the next object id.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._planned: Counter[tuple[str, str]] = Counter()
        """Objects and subscriptions that the batch adds, by what and whose: quotas count them."""
        self._publications = PublicationPlanner(coordinator, self._planned)

    def plan_batch(self, commands: Sequence[c.Command]) -> list[Decision]:
        """Decide on as many commands as can be applied together, from the first on; at least one.

        A batch ends, too, where its mutations would keep those behind it waiting for long.
        """
        self._planned.clear()
        found: list[Decision] = []
        touched = Touched()
        mutation_count = 0
        for command in commands:
            if not isinstance(command, c.DurableCommand):
                if isinstance(command, c.DeviceCommand):
                    touched.add_device(command.device_id)
                found.append(None)
                continue
            if not touched.is_disjoint(_named(command)):
                break  # what comes before it may decide whether it is valid
            try:
                plan = self.plan(command)
            except RefusalError as error:
                found.append(error.with_traceback(None))  # which would hold `found`, a cycle
                continue
            if not touched.is_disjoint(plan.touches):
                self.give_back([plan])
                break
            found.append(plan)
            touched.add(plan.touches)
            mutation_count += len(plan.mutations)
            if touched.everything or mutation_count >= self._coordinator.limits.batch_rows_max:
                break
        return found

    def give_back(self, decisions: Sequence[Decision]) -> None:
        """Give back the ids of objects that are not published after all: ids are without gaps."""
        plans = (one for one in decisions if isinstance(one, Plan) and one.publication is not None)
        ids = [item.object_id for one in plans if one.publication for item in one.publication.fresh]
        if ids:
            self._coordinator.give_back_object_ids(min(ids))

    def plan(self, command: c.DurableCommand) -> Plan:  # noqa: PLR0911 - one branch a command
        """Decide what a command will do.

        Raises
        ------
        RefusalError
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
            case c.Told() | c.Sync():
                return self._plan_barrier(command)

    def _plan_advance(self, command: c.AdvanceClock) -> Plan:
        now_ms = self._coordinator.matching.now_ms
        if not self._coordinator.virtual_time:
            raise RefusalError(Reason.NOT_VIRTUAL, "clock", "real", "virtual (serve with --virtual-time)")
        if command.time_ms < now_ms:
            limit = f"at least {now_ms}, the present time"
            raise RefusalError(Reason.TIME_BACKWARDS, "time_ms", command.time_ms, limit)
        return Plan(
            lambda _: self._coordinator.advance(command.time_ms),
            (SetTime(command.time_ms),),
            Touches(everything=True),
        )

    def _plan_barrier(self, command: c.Told | c.Sync) -> Plan:
        """Plan what comes after all that was accepted before it; with Sync, everything is settled."""
        if isinstance(command, c.Told):
            return Plan(lambda _: self._coordinator.matching.now_ms, (DeleteTold(command.number),))

        def apply(_batch: EvaluationBatch) -> int:
            self._coordinator.settle()
            return self._coordinator.matching.now_ms

        return Plan(apply, (), Touches(everything=True))

    def _plan_idf(self, command: c.SetIdf) -> Plan:
        matching = self._coordinator.matching
        if matching.is_reweighing:
            raise RefusalError(
                Reason.TOO_MANY, "idf", f"{matching.generation} is coming into force", "one at a time"
            )
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
        if handle is None and len(session.handles) >= count_max:
            raise RefusalError(
                Reason.TOO_MANY,
                "subscription_id",
                f"subscription {len(session.handles) + 1} of the device",
                f"at most {count_max} subscriptions a device",
            )
        if handle is None:
            planned = "subscriptions", principal.tenant
            count = coordinator.subscription_counts[principal.tenant] + self._planned[planned] + 1
            require_room("subscriptions", count, limits.tenant_subscriptions_max, "tenant")
        brings_window = not coordinator.matching.knows_window(spec.window)
        if brings_window and coordinator.matching.window_count >= limits.windows_max:
            raise RefusalError(
                Reason.TOO_MANY,
                "spec.window",
                f"{limits.windows_max} different ones are in use",
                f"one of these, or at most {limits.windows_max}",
            )
        name = self._checked_name(command, session)
        self._planned["subscriptions", principal.tenant] += handle is None
        is_known = (
            handle is not None
            and coordinator.matching.spec(handle) == spec
            and coordinator.router.name_of(handle) == name
        )
        if handle is None or coordinator.matching.spec(handle) != spec:
            others = [one for other, one in session.handles.items() if other != number]
            coordinator.matching.require_clause_room(spec, others, limits.clause_keywords_per_device_max)
        row = PutSubscription(command.device_id, number, kind.number, kind.encoded(spec), name)

        def apply(batch: EvaluationBatch) -> None:
            coordinator.subscribe(session, number, spec, place, batch, name)

        touches = _device(command)._replace(new_window=brings_window)
        return Plan(apply, () if is_known else (row,), touches)

    def _checked_name(self, command: c.Subscribe, session: Session) -> str:
        """Return the name of a subscription, which no other one of the device has."""
        coordinator, field = self._coordinator, "subscribe.name"
        length_max = coordinator.limits.name_length_max
        name = checked_name(command.name, field, length_max, optional=True)
        other = coordinator.router.named(session, name) if name else None
        if other not in (None, command.subscription_id):
            limit = f"a name that no other subscription of the device has: it is that of {other}"
            raise RefusalError(Reason.SUBSCRIPTION_EXISTS, field, repr(name), limit)
        return name

    def _plan_unsubscribe(self, command: c.Unsubscribe) -> Plan:
        session = attached_session(command)
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
            raise RefusalError(
                Reason.UNKNOWN_SUBSCRIPTION,
                "subscription_id",
                subscription_id,
                "a subscription of the device",
            )


def _device(command: c.DeviceCommand) -> Touches:
    """Return what a command that changes a device's session or subscriptions touches."""
    return Touches(device_ids=frozenset({command.device_id}))


def _named(command: c.DurableCommand) -> Touches:
    """Return what a command names, of which the state when it is planned decides whether it is valid."""
    if isinstance(command, c.DeviceCommand):
        return _device(command)
    return Touches(keys=frozenset(command.keys)) if isinstance(command, c.Retract) else _NOTHING
