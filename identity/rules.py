"""The table of rules: the roles that may perform an action. It makes every decision about rights."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from identity.principal import DEFAULT_TENANT, NODE, Principal, Role, tenant_of
from nearcast.errors import Reason, RefusedError


class Action(Enum):
    """The purpose of a call."""

    ATTACH = "attach"
    SEARCH = "search"
    FORGET = "forget"
    PUBLISH = "publish"
    RETRACT = "retract"
    SYNC = "sync"
    ADVANCE_CLOCK = "advance_clock"
    SET_IDF = "set_idf"
    STATUS = "status"
    INSPECT = "inspect"
    WATCH = "watch"
    COPY = "copy"
    """Read the store of a node of a cluster, with the objects of all tenants."""
    REFLECT = "reflect"
    """List the services, or watch health."""


class Rule(NamedTuple):
    """The callers that may perform an action."""

    roles: frozenset[Role]
    """One of these is needed."""
    concerns_all: bool = False
    """Whether it concerns all tenants, so that only callers of the default one may perform it."""
    permits_nodes: bool = False
    """Whether other nodes of a cluster may perform it, too."""


_EVERY = frozenset(Role)
_OPERATOR = frozenset({Role.OPERATOR})

RULES: dict[Action, Rule] = {
    Action.ATTACH: Rule(frozenset({Role.DEVICE, Role.GATEWAY})),
    Action.SEARCH: Rule(_EVERY),
    Action.FORGET: Rule(frozenset({Role.DEVICE, Role.GATEWAY, Role.OPERATOR})),
    Action.PUBLISH: Rule(frozenset({Role.PUBLISHER})),
    Action.RETRACT: Rule(frozenset({Role.PUBLISHER, Role.OPERATOR})),
    Action.SYNC: Rule(_OPERATOR, concerns_all=True),
    Action.ADVANCE_CLOCK: Rule(_OPERATOR, concerns_all=True),
    Action.SET_IDF: Rule(_OPERATOR, concerns_all=True),
    Action.STATUS: Rule(_OPERATOR),
    Action.INSPECT: Rule(_OPERATOR),
    Action.WATCH: Rule(_OPERATOR),
    Action.COPY: Rule(_OPERATOR, concerns_all=True, permits_nodes=True),
    Action.REFLECT: Rule(_EVERY),
}


def require_action(principal: Principal, action: Action) -> None:
    """Raise RefusedError (PERMISSION_DENIED) unless a caller may start a call."""
    rule = RULES[action]
    if principal is NODE and rule.permits_nodes:
        return
    if not principal.roles & rule.roles:
        shown = ", ".join(sorted(role.value for role in principal.roles)) or "none"
        limit = " or ".join(sorted(role.value for role in rule.roles))
        raise RefusedError(Reason.PERMISSION_DENIED, "token.roles", shown, f"{limit} for {action.value}")
    if rule.concerns_all and principal.tenant != DEFAULT_TENANT:
        raise RefusedError(
            Reason.PERMISSION_DENIED,
            "token.tenant",
            repr(principal.tenant),
            f"absent for {action.value}, which affects all tenants",
        )


def require_device(principal: Principal, device_id: str) -> None:
    """Raise RefusedError (PERMISSION_DENIED) unless a caller may act for a device of its tenant."""
    if Role.GATEWAY not in principal.roles:
        _require_own_id(principal, device_id, "hello.device_id")


def require_forgettable(principal: Principal, device_id: str) -> None:
    """Raise RefusedError (PERMISSION_DENIED) unless a caller may delete the data of a device."""
    if not principal.roles & {Role.GATEWAY, Role.OPERATOR}:
        _require_own_id(principal, device_id, "device_id")


def _require_own_id(principal: Principal, device_id: str, field: str) -> None:
    if device_id != principal.qualified(principal.id):
        shown, limit = repr(principal.local(device_id)), f"{principal.id!r}, the device of the token"
        raise RefusedError(Reason.PERMISSION_DENIED, field, shown, limit)


def is_own_device(principal: Principal, device_id: str) -> bool:
    """Return whether a caller has the token of this very device, which only the device has."""
    own_id = principal.qualified(principal.id)
    return Role.DEVICE in principal.roles and bool(principal.id) and device_id == own_id


def is_visible(principal: Principal, owner: str) -> bool:
    """Return whether a caller may learn from its id that an object of this owner exists."""
    return tenant_of(owner) == principal.tenant


def require_owner(principal: Principal, owner: str, field: str, shown: object) -> None:
    """Raise RefusedError (PERMISSION_DENIED) unless a caller may replace or retract an object."""
    if Role.OPERATOR not in principal.roles and owner != principal.owner:
        raise RefusedError(
            Reason.PERMISSION_DENIED, field, shown, "of an object that the publisher of the token owns"
        )


def require_room(field: str, count: int, count_max: int, whose: str) -> None:
    """Raise RefusedError (TOO_MANY) if a quota would be exceeded; 0 for no limit."""
    if 0 < count_max < count:
        limit = f"at most {count_max} of a {whose}"
        raise RefusedError(Reason.TOO_MANY, field, f"{count} of the {whose}", limit)
