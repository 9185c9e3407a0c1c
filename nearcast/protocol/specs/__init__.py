"""Specs of each kind of subscription on a device: on the wire, as regions, as results."""

from __future__ import annotations

from typing import Any

from nearcast.errors import invalid
from nearcast.model import Boolean, Spec, TopK
from nearcast.protocol.specs.boolean import BooleanKind
from nearcast.protocol.specs.contract import Kind
from nearcast.protocol.specs.top_k import TopKKind
from nearcast.protocol.specs.windows import is_known
from nearcast.v1 import subscriptions_pb2

__all__ = ["Kind", "kind_of", "spec_from", "spec_message"]

_KINDS: dict[type[Any], Kind[Any]] = {
    TopK: TopKKind(),
    Boolean: BooleanKind(),
}
"""By the type of the spec."""


def kind_of(spec: Spec) -> Kind[Any]:
    """Return the kind that a spec is of.

    Raises
    ------
    RefusedError
        If it is none.
    """
    found = _KINDS.get(type(spec))
    if found is None:
        raise invalid("spec", spec, f"one of {', '.join(one.__name__ for one in _KINDS)}")
    return found


def spec_message(spec: Spec) -> subscriptions_pb2.SubscriptionSpec:
    """Write what a subscription asks for."""
    return kind_of(spec).message(spec)


def spec_from(message: subscriptions_pb2.SubscriptionSpec) -> Spec | None:
    """Read what a subscription asks for; None if this SDK does not know it.

    Another SDK may have made it: of another kind, or with a window or a mode that came later.
    """
    if not is_known(message):
        return None
    name = message.WhichOneof("kind")
    return next((kind.read(message) for kind in _KINDS.values() if kind.name == name), None)
