"""Planning retractions: which live objects ids and keys stand for, and whether the caller may."""

from __future__ import annotations

from server.commands import command as c
from server.commands.plan import Plan, Touches
from server.commands.validation import check_named_count, checked_name
from server.core.coordinator import Coordinator
from server.errors import Reason, RefusalError
from server.rules import is_visible, require_owner
from server.store.mutations import DeleteObject


def plan_retract(coordinator: Coordinator, command: c.Retract) -> Plan:
    """Decide what a retract command will do. An object that is named twice is taken once.

    Raises
    ------
    RefusalError
        If it is refused; nothing has changed.
    """
    check_named_count(command.ids, command.keys, coordinator.limits)
    objects, principal = coordinator.matching.objects, command.principal
    found: dict[int, None] = {}
    for i, object_id in enumerate(command.ids):
        field = f"ids[{i}]"
        (owner,) = objects.owners([object_id]) if object_id in objects else (None,)
        if owner is None or not is_visible(principal, owner):
            raise RefusalError(Reason.UNKNOWN_OBJECT, field, object_id, "the id of a live object")
        require_owner(principal, owner, field, object_id)
        found[object_id] = None
    for i, key in enumerate(command.keys):
        field = f"keys[{i}]"
        local = checked_name(principal.local(key), field, coordinator.limits.name_length_max)
        known_id = coordinator.id_of_key.get(key)
        if known_id is None:
            raise RefusalError(Reason.UNKNOWN_OBJECT, field, repr(local), "the key of a live object")
        require_owner(principal, objects.owners([known_id])[0], field, repr(local))
        found[known_id] = None
    ids = list(found)
    mutations = tuple(DeleteObject(object_id) for object_id in ids)
    touches = Touches(frozenset(command.keys), frozenset(ids))
    return Plan(lambda _: coordinator.retract(ids), mutations, touches)
