"""Plans of retractions: the live objects of ids and keys, and whether the caller may retract them."""

from __future__ import annotations

from identity.principal import Principal, Role
from identity.rules import is_visible, require_owner
from nearcast.checks import checked_name
from nearcast.errors import Reason, RefusedError
from server import command as c
from server.commands.plan import Plan, Touches
from server.commands.publication_planner import ObjectState
from server.commands.validation import check_named_count
from server.core.coordinator import Coordinator
from server.limits import Limits
from server.store.mutations import DeleteObject

_IDS_SHOWN = 5
"""Ids in the refusal of a key that several publishers use."""


def plan_retract(coordinator: Coordinator, command: c.Retract) -> Plan:
    """Plan a retract command. An object that is named twice is retracted once.

    Raises
    ------
    RefusedError
        If it is refused; nothing has changed.
    """
    check_named(command, coordinator.limits)
    ids = retracted_ids(coordinator, command)
    mutations = tuple(DeleteObject(object_id) for object_id in ids)
    touches = keys_of(command)._replace(object_ids=frozenset(ids))
    return Plan(lambda _: coordinator.retract(ids), mutations, touches)


def keys_of(command: c.Retract) -> Touches:
    """Return the keys of its caller that a command names.

    An operator's command may be about the object of another publisher. It touches this object, not its
    key: a publication of another one with that key counts as later than the command.
    """
    return Touches(command.principal.owner, frozenset(command.keys))


def check_named(command: c.Retract, limits: Limits) -> None:
    """Require that the ids and keys of a command may be looked up.

    Raises
    ------
    RefusedError
        If there are too many, none, or a key that no object can have.
    """
    check_named_count(command.ids, command.keys, limits)
    for i, key in enumerate(command.keys):
        checked_name(command.principal.local(key), f"keys[{i}]", limits.name_length_max)


def retracted_ids(state: ObjectState, command: c.Retract) -> list[int]:
    """Return the ids of the live objects that a command names, each once.

    It is the same on all nodes: what `check_named` verifies depends on the Unicode table of Python.

    Raises
    ------
    RefusedError
        If one is not alive, or the caller may not retract it.
    """
    objects, principal = state.objects, command.principal
    found: dict[int, None] = {}
    for i, object_id in enumerate(command.ids):
        field = f"ids[{i}]"
        (owner,) = objects.owners([object_id]) if object_id in objects else (None,)
        if owner is None or not is_visible(principal, owner):
            raise RefusedError(Reason.UNKNOWN_OBJECT, field, object_id, "the id of a live object")
        require_owner(principal, owner, field, object_id)
        found[object_id] = None
    for i, key in enumerate(command.keys):
        field = f"keys[{i}]"
        found[_known_id(state, principal, key, field)] = None
    return list(found)


def _known_id(state: ObjectState, principal: Principal, key: str, field: str) -> int:
    """Return the id of an object by its key: the caller's own, or any publisher's for an operator.

    Raises
    ------
    RefusedError
        If there is none, or if several publishers have the key.
    """
    known_id = state.keys.get(principal.owner, key)
    if known_id is not None:
        return known_id
    is_operator = Role.OPERATOR in principal.roles
    found = state.keys.find(principal.tenant, key) if is_operator else []
    shown = f"'{principal.local(key)}'"
    if not found:
        limit = "the key of a live object" + ("" if is_operator else " that the caller has published")
        raise RefusedError(Reason.UNKNOWN_OBJECT, field, shown, limit)
    if len(found) > 1:
        shown_ids = ", ".join(map(str, sorted(found)[:_IDS_SHOWN]))
        limit = f"the key of one object; {len(found)} publishers use it: give ids, such as {shown_ids}"
        raise RefusedError(Reason.INVALID_FIELD, field, shown, limit)
    return found[0]
