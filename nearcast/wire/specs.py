"""Specs of each kind of subscription, and their bounds. A new kind is a line in each table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nearcast.canonical import NO_WINDOW, Boolean, Bound, Clause, Reach, Spec, TopK, Window
from nearcast.v1 import subscriptions_pb2
from nearcast.wire.geometry import range_from, write_range
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity


def spec_from(message: subscriptions_pb2.SubscriptionSpec) -> Spec | None:
    """Return the spec of a subscription in a message; None if a part of it is unknown here."""
    read = _READERS.get(message.WhichOneof("kind") or "")
    try:
        return None if read is None else read(message)
    except ValueError:
        return None


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


def _top_k_from(message: subscriptions_pb2.SubscriptionSpec) -> TopK:
    spec = message.top_k
    similarity = Similarity(spec.similarity or Similarity.JACCARD)
    region, window = _region_from(message, TopK), _window_from(message)
    keywords = tuple(spec.keywords)
    return TopK(keywords, spec.k, spec.alpha, similarity, region, window, spec.distance_scale_m)


def _top_k_message(spec: TopK) -> subscriptions_pb2.SubscriptionSpec:
    return subscriptions_pb2.SubscriptionSpec(
        top_k=subscriptions_pb2.TopK(
            keywords=spec.keywords,
            k=spec.k,
            alpha=spec.alpha,
            similarity=subscriptions_pb2.Similarity.Name(int(spec.similarity)),
            distance_scale_m=spec.distance_scale_m,
        ),
        region=subscriptions_pb2.RegionMode.Name(int(spec.region)),
    )


def _boolean_from(message: subscriptions_pb2.SubscriptionSpec) -> Boolean:
    spec, where = message.boolean, range_from(message.boolean)
    if where is None:
        raise ValueError("the range is of an unknown shape")
    clauses = tuple(Clause(tuple(one.required), tuple(one.excluded)) for one in spec.clauses)
    region, window = _region_from(message, Boolean), _window_from(message)
    return Boolean(clauses, where, spec.moving, region, spec.dwell_ms, window)


def _boolean_message(spec: Boolean) -> subscriptions_pb2.SubscriptionSpec:
    message = subscriptions_pb2.Boolean(
        clauses=[
            subscriptions_pb2.Clause(required=required, excluded=excluded)
            for required, excluded in spec.clauses
        ],
        moving=spec.is_moving,
        dwell_ms=spec.dwell_ms,
    )
    write_range(spec.range, message)
    region = subscriptions_pb2.RegionMode.Name(int(spec.region))
    return subscriptions_pb2.SubscriptionSpec(boolean=message, region=region)


def _region_from(message: subscriptions_pb2.SubscriptionSpec, kind: type[Spec]) -> RegionMode:
    region = RegionMode(message.region or RegionMode.ANCHORED)
    if region not in kind.region_modes:
        raise ValueError(f"subscriptions of this kind have no mode {region.name}")
    return region


def _window_from(message: subscriptions_pb2.SubscriptionSpec) -> Window:
    if not message.HasField("window"):
        return NO_WINDOW
    match message.window.WhichOneof("last"):
        case "duration_ms":
            return Window(duration_ms=message.window.duration_ms)
        case "count":
            return Window(count=message.window.count)
        case _:
            raise ValueError("the window is of an unknown sort")


_READERS: dict[str, Callable[[subscriptions_pb2.SubscriptionSpec], Spec]] = {
    "top_k": _top_k_from,
    "boolean": _boolean_from,
}
"""By the name of the field in the oneof."""

KINDS = tuple(_READERS)
"""Names of the known kinds."""

_WRITERS: dict[type[Spec], Callable[[Any], subscriptions_pb2.SubscriptionSpec]] = {
    TopK: _top_k_message,
    Boolean: _boolean_message,
}
