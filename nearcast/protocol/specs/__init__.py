"""Kinds of subscriptions on a device: their messages, regions and results."""

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
"""Kinds by the type of the spec."""


def kind_of(spec: Spec) -> Kind[Any]:
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
    return kind_of(spec).message(spec)


def spec_from(message: subscriptions_pb2.SubscriptionSpec) -> Spec | None:
    """Convert a message to a spec; None if this SDK does not know it.

    Another SDK may have made it: of another kind, or with a newer sort of window or mode.
    """
    if not is_known(message):
        return None
    name = message.WhichOneof("kind")
    return next((kind.read(message) for kind in _KINDS.values() if kind.name == name), None)
