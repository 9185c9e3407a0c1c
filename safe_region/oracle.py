"""The oracle: results from the definition, in plain Python.

It imports no kernel and shares no code with what it judges, so it cannot share a bug. Tests, audits
and benchmarks compare with it. Cost: O(objects) per call, a set intersection each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class OracleObject(NamedTuple):
    """An object as the definition sees it. Positions in plane metres, times in milliseconds."""

    object_id: int
    x_m: float
    y_m: float
    keywords: frozenset[str]
    created_ms: int
    expiry_ms: int


class OracleSubscription(NamedTuple):
    """A top-k subscription as the definition sees it."""

    keywords: frozenset[str]
    k: int
    alpha: float
    similarity: str
    """One of "jaccard", "dice", "cosine"."""


class OracleRange(NamedTuple):
    """A boolean subscription as the definition sees it: all keywords, in a circle about the device."""

    keywords: frozenset[str]
    radius_m: float


class OracleMatch(NamedTuple):
    """One object of a result: its length in metres, and its id, which decides ties."""

    length_m: float
    object_id: int


def is_alive(candidate: OracleObject, now_ms: int) -> bool:
    """Whether created <= now < expiry."""
    return candidate.created_ms <= now_ms < candidate.expiry_ms


def text_distance(similarity: str, left: frozenset[str], right: frozenset[str]) -> float:
    """One minus the similarity of two keyword sets."""
    common = len(left & right)
    if similarity == "jaccard":
        return 1.0 - common / len(left | right)
    if similarity == "dice":
        return 1.0 - 2.0 * common / (len(left) + len(right))
    if similarity == "cosine":
        return 1.0 - common / math.sqrt(len(left) * len(right))
    raise ValueError(f"similarity is {similarity!r}, must be jaccard, dice or cosine")


def ranked(
    subscription: OracleSubscription,
    x_m: float,
    y_m: float,
    maxdist_m: float,
    objects: Iterable[OracleObject],
    now_ms: int,
) -> list[OracleMatch]:
    """Every live qualifying object, best first: by length, then by id."""
    weight = (1.0 - subscription.alpha) / subscription.alpha * maxdist_m
    wanted = subscription.keywords
    found = []
    for candidate in objects:
        if wanted.isdisjoint(candidate.keywords) or not is_alive(candidate, now_ms):
            continue
        dx = x_m - candidate.x_m
        dy = y_m - candidate.y_m
        r = weight * text_distance(subscription.similarity, wanted, candidate.keywords)
        found.append(OracleMatch(math.sqrt(dx * dx + dy * dy) + r, candidate.object_id))
    found.sort()
    return found


def top_k(
    subscription: OracleSubscription,
    x_m: float,
    y_m: float,
    maxdist_m: float,
    objects: Iterable[OracleObject],
    now_ms: int,
) -> Sequence[OracleMatch]:
    """Return the k best live qualifying objects at a position, best first (fewer if there are)."""
    return ranked(subscription, x_m, y_m, maxdist_m, objects, now_ms)[: subscription.k]


def matching(
    subscription: OracleRange, x_m: float, y_m: float, objects: Iterable[OracleObject], now_ms: int
) -> Sequence[OracleMatch]:
    """Return every live object that has all keywords and lies in the range, nearest first."""
    found = []
    for candidate in objects:
        if not subscription.keywords <= candidate.keywords or not is_alive(candidate, now_ms):
            continue
        dx = x_m - candidate.x_m
        dy = y_m - candidate.y_m
        distance_m = math.sqrt(dx * dx + dy * dy)
        if distance_m <= subscription.radius_m:
            found.append(OracleMatch(distance_m, candidate.object_id))
    return sorted(found)
