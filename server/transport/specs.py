"""Specs and bounds of each kind on the wire. A new kind is a line in each table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from identity.principal import local_names
from nearcast.v1 import subscriptions_pb2
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity, distance_scale, score_of
from server.errors import Reason, RefusalError
from server.model import NO_WINDOW, Boolean, Bound, Clause, Reach, Spec, TopK, Window
from server.transport.fields import choice, missing, unimplemented
from server.transport.ranges import range_from, write_range


def spec_from(message: subscriptions_pb2.SubscriptionSpec) -> Spec:
    """Return the spec of a subscription in a message.

    Raises
    ------
    RefusalError
        INVALID_FIELD or UNIMPLEMENTED, with the field.
    """
    kind = message.WhichOneof("kind")
    if kind is None:
        raise RefusalError(Reason.INVALID_FIELD, "spec.kind", "absent", f"one of {', '.join(_READERS)}")
    if kind not in _READERS:
        raise unimplemented(f"spec.{kind}", f"one of {', '.join(_READERS)}")
    return _READERS[kind](message)


def spec_message(spec: Spec) -> subscriptions_pb2.SubscriptionSpec:
    """Return the message of a spec."""
    message = _WRITERS[type(spec)](spec)
    if spec.window.duration_ms:
        message.window.duration_ms = spec.window.duration_ms
    elif spec.window.count:
        message.window.count = spec.window.count
    return message


def write_bound(bound: Bound, message: subscriptions_pb2.Delta) -> None:
    """Write the bound within which the objects that a device holds are exact."""
    if isinstance(bound, Reach):
        message.reach.length_m, message.reach.object_id = bound.length_m, bound.object_id
        if bound.idf_generation:
            message.reach.idf_generation = bound.idf_generation
    else:
        message.slack.slack_m, message.slack.too_many = bound


def score(spec: Spec, length_m: float, maxdist_m: float) -> float:
    """Return the score of a length, for display; 0 for kinds that do not score."""
    if not isinstance(spec, TopK):
        return 0.0
    return score_of(length_m, spec.alpha, distance_scale(spec.distance_scale_m, maxdist_m))


def _window_from(message: subscriptions_pb2.SubscriptionSpec) -> Window:
    """Return the window in a message.

    Raises
    ------
    RefusalError
        If the window is empty.
    """
    if not message.HasField("window"):
        return NO_WINDOW
    last = message.window.WhichOneof("last")
    if last is None:
        raise RefusalError(Reason.INVALID_FIELD, "spec.window.last", "absent", "duration_ms or count")
    value = getattr(message.window, last)
    if value <= 0:
        raise RefusalError(Reason.INVALID_FIELD, f"spec.window.{last}", value, "at least 1")
    return Window(**{last: value})


def _top_k_from(message: subscriptions_pb2.SubscriptionSpec) -> TopK:
    spec = message.top_k
    similarity = choice(Similarity, spec.similarity or Similarity.JACCARD, "spec.top_k.similarity")
    region = _region_from(message, RegionMode.ANCHORED, RegionMode.ELLIPSE, RegionMode.STATIONARY)
    window, words = _window_from(message), tuple(spec.keywords)
    return TopK(words, spec.k, spec.alpha, similarity, region, window, spec.distance_scale_m)


def _top_k_message(spec: TopK) -> subscriptions_pb2.SubscriptionSpec:
    return subscriptions_pb2.SubscriptionSpec(
        top_k=subscriptions_pb2.TopK(
            keywords=local_names(spec.keywords),
            k=spec.k,
            alpha=spec.alpha,
            similarity=subscriptions_pb2.Similarity.Name(int(spec.similarity)),
            distance_scale_m=spec.distance_scale_m,
        ),
        region=subscriptions_pb2.RegionMode.Name(int(spec.region)),
    )


def _boolean_from(message: subscriptions_pb2.SubscriptionSpec) -> Boolean:
    spec, field = message.boolean, "spec.boolean"
    if not spec.clauses:
        raise missing(f"{field}.clauses")
    region = _region_from(message, RegionMode.ANCHORED, RegionMode.NEAREST)
    clauses = tuple(Clause(tuple(one.required), tuple(one.excluded)) for one in spec.clauses)
    where, window = range_from(spec), _window_from(message)
    return Boolean(clauses, where, spec.moving, region, spec.dwell_ms, window)


def _boolean_message(spec: Boolean) -> subscriptions_pb2.SubscriptionSpec:
    message = subscriptions_pb2.Boolean(
        clauses=[
            subscriptions_pb2.Clause(required=local_names(words), excluded=local_names(others))
            for words, others in spec.clauses
        ],
        moving=spec.is_moving,
        dwell_ms=spec.dwell_ms,
    )
    write_range(spec.range, message)
    return subscriptions_pb2.SubscriptionSpec(
        boolean=message, region=subscriptions_pb2.RegionMode.Name(int(spec.region))
    )


def _region_from(message: subscriptions_pb2.SubscriptionSpec, *known: RegionMode) -> RegionMode:
    """Return the mode of the safe region.

    Raises
    ------
    RefusalError
        If subscriptions of the kind do not support the mode.
    """
    value = message.region or RegionMode.ANCHORED
    if value not in known:
        limit = ", ".join(f"{one.value} ({one.name})" for one in known)
        raise RefusalError(Reason.INVALID_FIELD, "spec.region", value, f"one of {limit}")
    return RegionMode(value)


_READERS: dict[str, Callable[[subscriptions_pb2.SubscriptionSpec], Spec]] = {
    "top_k": _top_k_from,
    "boolean": _boolean_from,
}
"""By the name of the field in the oneof."""

_WRITERS: dict[type[Spec], Callable[[Any], subscriptions_pb2.SubscriptionSpec]] = {
    TopK: _top_k_message,
    Boolean: _boolean_message,
}
