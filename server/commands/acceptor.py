"""Acceptance of commands that need no disk: validated, applied to sessions, and evaluated together.

A batch of commands becomes an `Accepted`: effects that need no evaluation have been applied to the
sessions, and evaluations are rows in it. Before `finish`, no object may change, and no other command of
these devices may be executed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from engine.engine import Part
from identity.principal import Principal
from identity.rules import is_own_device, require_device
from nearcast.checks import checked_name, checked_place, checked_position, require
from nearcast.errors import Reason, RefusedError
from server import command as c
from server.commands.validation import checked_nonce, checked_version
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.core.inspection import Inspected, Inspector
from server.core.matching_service import SearchRequest
from server.core.specs import kind_of_spec
from server.model import Spec
from server.session import Pong, Session
from server.session.instances import require_instance

Answer = asyncio.Future[Any]


class Accepted:
    """The evaluations, searches and callbacks of a batch of commands."""

    __slots__ = ("evaluation", "later", "searches")

    def __init__(self) -> None:
        self.evaluation = EvaluationBatch()
        self.searches: list[tuple[SearchRequest, Answer | None]] = []
        self.later: list[Callable[[], object]] = []
        """Callbacks to run after the deltas of the evaluation are queued."""

    def divided(self, cost_us: Callable[[int], float], cost_max_us: float) -> list[Accepted]:
        """Return parts to be finished in order, each with evaluations of limited cost.

        The last part has everything else. See `EvaluationBatch.divided`.
        """
        found = []
        for batch in self.evaluation.divided(cost_us, cost_max_us):
            found.append(Accepted())
            found[-1].evaluation = batch
        found[-1].searches, found[-1].later = self.searches, self.later
        return found


class Acceptor:
    """Accepts commands that need no disk.

    Parameters
    ----------
    coordinator
        The present state, which commands change.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def accept(self, command: c.VolatileCommand, answer: Answer | None, accepted: Accepted) -> None:
        """Accept a command.

        Raises
        ------
        RefusedError
            If it is refused; nothing has changed.
        """
        match command:
            case c.Report():
                self._accept_report(command, accepted)
            case c.Ack():
                attached_session(command).ack(command.version)
            case c.Ping():
                session = attached_session(command)
                session.ack(command.version)
                accepted.later.append(lambda: _answer(command, session))
            case c.Hello():
                self._accept_hello(command, accepted)
            case c.Detach():
                self._coordinator.detach(command.outbox, command.device_id)
            case c.Search():
                spec = checked_spec(command.spec, self._coordinator, command.principal)
                checked_position(command.lon, command.lat)
                accepted.searches.append((SearchRequest(spec, command.lon, command.lat), answer))
            case c.Inspect():
                accepted.later.append(lambda: self._inspect(command, answer))

    def finish(self, accepted: Accepted, retrieved: list[Part] | None = None) -> None:
        """Evaluate the accepted commands, and respond.

        `retrieved` is the data that the matching service has looked up for the evaluation, if it has.
        """
        coordinator = self._coordinator
        coordinator.evaluate(accepted.evaluation, retrieved)
        if accepted.searches:
            now_ms = coordinator.matching.now_ms
            results = coordinator.matching.search([request for request, _ in accepted.searches])
            for (_, answer), found in zip(accepted.searches, results, strict=True):
                if answer is not None and not answer.done():
                    answer.set_result((found, now_ms))
        for send in accepted.later:
            send()

    def _inspect(self, command: c.Inspect, answer: Answer | None) -> None:
        """Respond to an inspection, after all commands before it."""
        if answer is None or answer.done():
            return
        inspector = Inspector(self._coordinator, command.principal)
        try:
            if command.device_id:
                self._coordinator.require_here(command.device_id)
            found: Inspected
            if not command.device_id:
                found = inspector.object(command.object_id, command.object_key)
            elif command.subscription_id is None:
                found = inspector.device(command.device_id)
            else:
                found = inspector.subscription(
                    command.device_id,
                    command.subscription_id,
                    command.object_id,
                    command.object_key,
                )
        except RefusedError as error:
            answer.set_exception(error.with_traceback(None))
        else:
            answer.set_result((found, self._coordinator.matching.now_ms))

    def _accept_report(self, report: c.Report, accepted: Accepted) -> None:
        session = report.session
        if session is None or session.outbox is not report.outbox:
            session = attached_session(report)
        try:
            handles = [session.handles[one] for one in report.subscription_ids]
        except KeyError:
            raise _unknown_subscription(report.subscription_ids, session) from None
        if report.place.margin_m:
            needs_exact = any(map(self._coordinator.matching.needs_exact_position, handles))
            require_covered(needs_exact, report.place.margin_m)
        self._coordinator.report(report, session, handles, accepted.evaluation)

    def _accept_hello(self, hello: c.Hello, accepted: Accepted) -> None:
        coordinator, outbox = self._coordinator, hello.outbox
        limits = coordinator.limits
        principal = outbox.principal
        checked_name(principal.local(hello.device_id), "hello.device_id", limits.name_length_max)
        require_device(principal, hello.device_id)
        session = coordinator.sessions.get(hello.device_id)
        is_known = session is not None and session.knows(hello.nonce, hello.epoch)
        coordinator.require_here(hello.device_id, for_certain=not is_known)
        checked_nonce(hello.nonce)
        checked_version(hello.version)
        checked_place(hello.place, limits, "hello.position", "hello.margin_m")
        if len(outbox.devices) >= limits.devices_per_fleet_max and hello.device_id not in outbox.devices:
            raise RefusedError(
                Reason.TOO_MANY,
                "hello.device_id",
                f"device {len(outbox.devices) + 1} of the stream",
                f"at most {limits.devices_per_fleet_max} devices a stream",
            )
        if session is not None:
            require_instance(
                session,
                hello.nonce,
                principal.local(hello.device_id),
                may_take_over=_may_take_over(hello),
                now_ms=coordinator.clock.lease_ms,
                limits=limits,
                lease_ms=coordinator.leases.lease_ms,
            )
            if session.outbox is outbox:
                raise RefusedError(
                    Reason.OUT_OF_ORDER, "hello", "second", "the first message of a device on a stream"
                )
        if outbox.closed:
            return  # the stream is closed already, and nothing would detach the device
        coordinator.hello(hello, accepted.evaluation)


def _unknown_subscription(numbers: Sequence[int], session: Session) -> RefusedError:
    """Return the refusal of a report with a subscription that its device does not have."""
    i, number = next((i, one) for i, one in enumerate(numbers) if one not in session.handles)
    limit = "a subscription of the device"
    return RefusedError(Reason.UNKNOWN_SUBSCRIPTION, f"subscription_ids[{i}]", number, limit)


def checked_spec(spec: Spec, coordinator: Coordinator, principal: Principal) -> Spec:
    """Return a normalised spec, with the keywords qualified by the tenant.

    Raises
    ------
    RefusedError
        Naming the field that is out of its limits.
    """
    kind = kind_of_spec(spec)
    checked: Spec = kind.checked(spec, coordinator.limits, coordinator.matching.frame)
    if checked.window.count and not coordinator.counts_windows:
        limit = "a window of time: with several tenants, servers do not count objects"
        raise RefusedError(Reason.UNIMPLEMENTED, "spec.window.count", checked.window.count, limit)
    return kind.renamed(checked, principal.qualified) if principal.prefix else checked


def _may_take_over(hello: c.Hello) -> bool:
    """Return whether an instance may take the place of another one.

    It may if its hello requests it, or if it is a new instance with the device's own token. An instance
    that reconnects has an epoch: if another one is attached now, that one has replaced it, and it has to
    request the take-over.
    """
    is_new = hello.epoch == 0
    return hello.take_over or (is_new and is_own_device(hello.outbox.principal, hello.device_id))


def _answer(ping: c.Ping, session: Session) -> None:
    """Respond to a ping, unless its device has left the stream since."""
    if session.outbox is ping.outbox:
        session.enqueue(Pong(ping.number))


def attached_session(command: c.DeviceCommand) -> Session:
    """Return the session of a command, if its stream carries the device.

    Raises
    ------
    RefusedError
        OUT_OF_ORDER, if it does not.
    """
    session = command.outbox.devices.get(command.device_id)
    if session is None:
        raise RefusedError(
            Reason.OUT_OF_ORDER,
            "device_id",
            repr(command.device_id),
            "a device that has sent a hello on this stream",
        )
    return session


def require_covered(needs_exact: bool, margin_m: float) -> None:  # noqa: FBT001
    """Refuse a margin where the server needs the exact position of the device."""
    require(
        margin_m == 0.0 or not needs_exact,
        "margin_m",
        margin_m,
        "0 for a subscription in the mode ELLIPSE, NEAREST or STATIONARY",
    )
