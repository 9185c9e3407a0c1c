"""Specs on the wire: the form of a message, which is checked before it is converted."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from identity.principal import local_name
from nearcast.canonical import Boolean, Spec, TopK
from nearcast.errors import Reason, RefusedError
from nearcast.v1 import subscriptions_pb2
from nearcast.wire import specs
from safe_region.scoring.formulas import Similarity, distance_scale, score_of
from server.core.specs import kind_of_spec
from server.transport.fields import choice, missing, unimplemented


def spec_from(message: subscriptions_pb2.SubscriptionSpec) -> Spec:
    """Return the spec of a subscription in a message.

    Raises
    ------
    RefusedError
        INVALID_FIELD or UNIMPLEMENTED, with the field.
    """
    kind = message.WhichOneof("kind")
    if kind is None:
        raise RefusedError(Reason.INVALID_FIELD, "spec.kind", "absent", f"one of {', '.join(_CHECKS)}")
    if kind not in _CHECKS:
        raise unimplemented(f"spec.{kind}", f"one of {', '.join(_CHECKS)}")
    _CHECKS[kind](message)
    _check_window(message)
    return cast("Spec", specs.spec_from(message))  # the checks have found nothing unknown


def spec_message(spec: Spec) -> subscriptions_pb2.SubscriptionSpec:
    """Return the message of a spec, with the names of the tenant."""
    return specs.spec_message(kind_of_spec(spec).renamed(spec, local_name))


def score(spec: Spec, length_m: float, maxdist_m: float) -> float:
    """Return the score of a length, for display; 0 for kinds that do not score."""
    if not isinstance(spec, TopK):
        return 0.0
    return score_of(length_m, spec.alpha, distance_scale(spec.distance_scale_m, maxdist_m))


def _check_top_k(message: subscriptions_pb2.SubscriptionSpec) -> None:
    choice(Similarity, message.top_k.similarity or Similarity.JACCARD, "spec.top_k.similarity")
    _check_region(message, TopK)


def _check_boolean(message: subscriptions_pb2.SubscriptionSpec) -> None:
    spec, field = message.boolean, "spec.boolean"
    if not spec.clauses:
        raise missing(f"{field}.clauses")
    _check_region(message, Boolean)
    if spec.WhichOneof("range") is None:
        raise missing(f"{field}.range")
    if spec.HasField("rectangle"):
        _check_rectangle(spec, f"{field}.rectangle")


def _check_rectangle(spec: subscriptions_pb2.Boolean, field: str) -> None:
    if not spec.rectangle.HasField("bounds"):
        if not spec.moving:
            raise missing(f"{field}.bounds")
        return
    for name in ("width_m", "height_m"):
        if value := getattr(spec.rectangle, name):
            limit = "absent: the rectangle has bounds"
            raise RefusedError(Reason.INVALID_FIELD, f"{field}.{name}", value, limit)


def _check_region(message: subscriptions_pb2.SubscriptionSpec, kind: type[Spec]) -> None:
    region = int(message.region)
    if region and region not in kind.region_modes:
        limit = ", ".join(f"{one.value} ({one.name})" for one in kind.region_modes)
        raise RefusedError(Reason.INVALID_FIELD, "spec.region", region, f"one of {limit}")


def _check_window(message: subscriptions_pb2.SubscriptionSpec) -> None:
    if not message.HasField("window"):
        return
    last = message.window.WhichOneof("last")
    if last is None:
        raise RefusedError(Reason.INVALID_FIELD, "spec.window.last", "absent", "duration_ms or count")
    value = getattr(message.window, last)
    if value <= 0:
        raise RefusedError(Reason.INVALID_FIELD, f"spec.window.{last}", value, "at least 1")


_CHECKS: dict[str, Callable[[subscriptions_pb2.SubscriptionSpec], None]] = {
    "top_k": _check_top_k,
    "boolean": _check_boolean,
}
"""By the name of the field in the oneof."""
