"""Who asks: made once when a call begins, carried by every command of it, looked at by every rule.

A tenant is part of the names that its callers use: device ids, keys, keywords. They are qualified where
commands are taken in and local again where something is told. So two tenants have no name in common, and
nothing in between, no index and no store, has to know of tenants: an object without a keyword of a
subscription never qualifies for it. Names of the default tenant are qualified by nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from server.quotas import UNLIMITED, Account

_SEPARATOR = "\x1f"
"""Behind a tenant in a name. It is not printable, so no caller's name has it."""

DEFAULT_TENANT = ""

NOBODY = ""
"""Owner of what a feed has brought, or who need not say who he is."""


class Role(Enum):
    """What a caller may be."""

    DEVICE = "device"
    """Speaks for the one device of its id."""
    GATEWAY = "gateway"
    """Speaks for any device of its tenant."""
    PUBLISHER = "publisher"
    """Publishes; takes back and replaces what it has published itself."""
    OPERATOR = "operator"
    """Sees what there is; takes back what anybody of its tenant has published. One of the default
    tenant runs the server."""


@dataclass(frozen=True, slots=True, eq=False)
class Principal:
    """A caller."""

    id: str
    """Of the device, gateway, publisher or operator; empty for who need not say it."""
    roles: frozenset[Role]
    tenant: str = DEFAULT_TENANT
    expires_s: float = math.inf
    """Seconds since 1970 from which its token is not good any more."""
    account: Account = UNLIMITED
    prefix: str = field(init=False)
    """Of the qualified names of its tenant."""

    def __post_init__(self) -> None:
        prefix = f"{self.tenant}{_SEPARATOR}" if self.tenant else ""
        object.__setattr__(self, "prefix", prefix)

    @property
    def owner(self) -> str:
        """The qualified name of who owns what it publishes."""
        return self.prefix + self.id if self.id else ""

    def qualified(self, name: str) -> str:
        """Return a name of this tenant as the server has it. Only what is known to be local may come."""
        return self.prefix + name

    def local(self, name: str) -> str:
        """Return a name as this caller says it; one of another tenant stays qualified."""
        return name.removeprefix(self.prefix)


ANYBODY = Principal("", frozenset(Role))
"""Who asks a server that asks nobody who he is, or shows a token of development."""


def local_name(name: str) -> str:
    """Return a qualified name as its tenant says it."""
    return name.rpartition(_SEPARATOR)[2]


def local_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return qualified names as their tenant says them."""
    return tuple(map(local_name, names))


def tenant_of(name: str) -> str:
    """Return the tenant of a qualified name."""
    return name.rpartition(_SEPARATOR)[0]
