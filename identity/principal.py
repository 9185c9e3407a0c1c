"""The caller: created once when a call starts, part of every command of it, checked by every rule.

A tenant is part of the names that its callers use: device ids, keys, keywords. Names are qualified where
commands are received, and local again where data is sent. So two tenants have no name in common, and
neither indexes nor the store have to know of tenants: an object without a keyword of a subscription never
qualifies for it. Names of the default tenant have no qualifier.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from identity.quotas import UNLIMITED, Account

_SEPARATOR = "\x1f"
"""Separates the tenant from a name. It is not printable, so no name of a caller contains it."""

DEFAULT_TENANT = ""

NOBODY = ""
"""Owner of objects from a feed, or of callers without an identity."""


class Role(Enum):
    """A role of a caller."""

    DEVICE = "device"
    """Acts for the one device of its id."""
    GATEWAY = "gateway"
    """Acts for any device of its tenant."""
    PUBLISHER = "publisher"
    """Publishes; retracts and replaces the objects that it has published itself."""
    OPERATOR = "operator"
    """Reads the state; retracts any object of its tenant. One of the default tenant runs the server."""


@dataclass(frozen=True, slots=True, eq=False)
class Principal:
    """A caller."""

    id: str
    """The id of the device, gateway, publisher or operator; empty if none is needed."""
    roles: frozenset[Role]
    tenant: str = DEFAULT_TENANT
    expires_s: float = math.inf
    """Seconds since 1970 from which its token is invalid."""
    account: Account = UNLIMITED
    prefix: str = field(init=False)
    """The prefix of the qualified names of its tenant."""

    def __post_init__(self) -> None:
        prefix = f"{self.tenant}{_SEPARATOR}" if self.tenant else ""
        object.__setattr__(self, "prefix", prefix)

    @property
    def owner(self) -> str:
        """The qualified name of the owner of its objects."""
        return self.prefix + self.id if self.id else ""

    def qualified(self, name: str) -> str:
        """Return the qualified form of a name of this tenant. The name must be local."""
        return self.prefix + name

    def local(self, name: str) -> str:
        """Return a name in the form of this caller; a name of another tenant stays qualified."""
        return name.removeprefix(self.prefix)


ANYBODY = Principal("", frozenset(Role))
"""The caller of a server without authentication, or with a token for development."""

NODE = Principal("", frozenset())
"""Another node of a cluster. It has no role: it may only do what a rule permits to nodes."""


def local_name(name: str) -> str:
    """Return a qualified name in the form of its tenant."""
    return name.rpartition(_SEPARATOR)[2]


def local_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return qualified names in the form of their tenant."""
    return tuple(map(local_name, names))


def tenant_of(name: str) -> str:
    """Return the tenant of a qualified name."""
    return name.rpartition(_SEPARATOR)[0]
