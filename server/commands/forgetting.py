"""Plans to forget devices: those that have not been seen for long, and one whose data is deleted."""

from __future__ import annotations

from identity.rules import require_forgettable
from nearcast.checks import checked_name
from server import command as c
from server.commands.plan import Plan, Touches
from server.core.coordinator import Coordinator
from server.session import Session
from server.store.mutations import DeleteDevice, Mutation, SetLastSeen


def plan_forget(coordinator: Coordinator, command: c.Forget | c.ForgetDevice) -> Plan:
    """Plan to forget devices.

    Raises
    ------
    RefusedError
        If it is refused; nothing has changed.
    """
    if isinstance(command, c.Forget):
        return _plan_overdue(coordinator, command)
    return _plan_device(coordinator, command)


def _plan_overdue(coordinator: Coordinator, command: c.Forget) -> Plan:
    """Plan to forget the devices that have not been seen for long.

    The store knows when a device was last seen some time after it has detached.
    """
    sessions, seen_ms = coordinator.sessions, coordinator.clock.lease_ms - command.unseen_ms
    known = [sessions[one] for one in command.device_ids if one in sessions]
    seen: list[Session] = []
    gone: list[Session] = []
    for one in known:
        is_seen = one.is_attached or (one.was_attached and one.last_seen_ms > seen_ms)
        (seen if is_seen else gone).append(one)
    mutations: list[Mutation] = [DeleteDevice(session.device_id) for session in gone]
    mutations += [SetLastSeen(session.device_id) for session in seen]
    touches = Touches(device_ids=frozenset(session.device_id for session in known))
    return Plan(lambda _: coordinator.forget_overdue(gone), tuple(mutations), touches)


def _plan_device(coordinator: Coordinator, command: c.ForgetDevice) -> Plan:
    """Plan to delete all data of a device. An unknown device is no error."""
    device_id, principal = command.device_id, command.principal
    checked_name(principal.local(device_id), "device_id", coordinator.limits.name_length_max)
    require_forgettable(principal, device_id)
    coordinator.require_here(device_id, for_certain=True)  # an unknown device may be known elsewhere
    if device_id in coordinator.sessions:
        coordinator.require_writable()
    mutations = (DeleteDevice(device_id),) if device_id in coordinator.sessions else ()
    touches = Touches(device_ids=frozenset({device_id}))
    return Plan(lambda _: coordinator.forget_device(device_id), mutations, touches)
