"""Requests of publishers to entries of the log: all that may differ between machines is done here.

Keywords are normalised, objects and areas are validated, and the point of an area is chosen before an
entry is appended. What remains is the same on every node.
"""

from __future__ import annotations

from cluster.entries import Advance, Caller, Change, Publish, Retract, SetIdf, TakeIn
from identity.principal import Principal
from server import command as c
from server.commands.retraction import check_named
from server.commands.validation import checked_objects, require_settable
from server.core.coordinator import Coordinator

LoggedCommand = c.Publish | c.Retract | c.TakeIn | c.AdvanceClock | c.SetIdf
"""Commands that go through the log."""


def change_of(command: LoggedCommand, coordinator: Coordinator) -> Change:
    """Return the entry of a command.

    Raises
    ------
    RefusedError
        If it is refused whatever the state.
    """
    match command:
        case c.Publish(objects, principal):
            limits, frame = coordinator.limits, coordinator.frame
            return Publish(_caller(principal), tuple(checked_objects(objects, limits, frame, principal)))
        case c.Retract(ids, principal, keys):
            check_named(command, coordinator.limits)
            return Retract(_caller(principal), ids, keys)
        case c.TakeIn(objects, gone, stream, before, offset):
            return TakeIn(stream, before, offset, objects, gone)
        case c.AdvanceClock(time_ms):
            require_settable(time_ms, coordinator.clock)
            return Advance(time_ms)
        case c.SetIdf(table):
            return SetIdf(table)


def _caller(principal: Principal) -> Caller:
    roles = tuple(sorted(role.value for role in principal.roles))
    return Caller(principal.tenant, principal.id, roles)
