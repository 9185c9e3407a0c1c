"""Kinds of subscriptions on a device: their canonical forms, regions and results."""

from __future__ import annotations

from typing import Any

from nearcast import canonical
from nearcast.errors import invalid
from nearcast.model import Boolean, Spec, TopK
from nearcast.protocol.specs.boolean import BooleanKind
from nearcast.protocol.specs.contract import Kind
from nearcast.protocol.specs.top_k import TopKKind
from nearcast.v1 import subscriptions_pb2
from nearcast.wire import specs

__all__ = ["Kind", "kind_of", "spec_from", "spec_message"]

_KINDS: dict[type[Any], Kind[Any, Any]] = {
    TopK: TopKKind(),
    Boolean: BooleanKind(),
}
"""Kinds by the type of the spec."""

_BY_CANONICAL: dict[type[Any], Kind[Any, Any]] = {
    canonical.TopK: _KINDS[TopK],
    canonical.Boolean: _KINDS[Boolean],
}


def kind_of(spec: Spec) -> Kind[Any, Any]:
    """Return the kind of a spec.

    Raises
    ------
    RefusedError
        If the value is not a spec.
    """
    found = _KINDS.get(type(spec))
    if found is None:
        raise invalid("spec", spec, f"one of {', '.join(one.__name__ for one in _KINDS)}")
    return found


def spec_message(spec: Spec) -> subscriptions_pb2.SubscriptionSpec:
    """Convert a spec to a message."""
    return specs.spec_message(kind_of(spec).to_canonical(spec))


def spec_from(message: subscriptions_pb2.SubscriptionSpec) -> Spec | None:
    """Convert a message to a spec; None if this SDK does not know it.

    Another SDK may have made it: of another kind, or with a newer sort of window or mode.
    """
    found = specs.spec_from(message)
    return None if found is None else _BY_CANONICAL[type(found)].from_canonical(found)
