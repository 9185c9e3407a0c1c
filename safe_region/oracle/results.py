"""Compute results from the definition, in plain Python: the oracle.

It imports no kernel and shares no code with the modules that it checks, so it cannot share a bug with
them. Tests, audits and benchmarks compare with it. Cost: O(objects) a call, with a set intersection each;
for polygons, as many fractions as they have vertices (`plane`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from safe_region.oracle import plane
from safe_region.oracle.plane import OracleCircle, OracleExtent, OraclePolygon, OracleRectangle

Word = TypeVar("Word", str, int)


class OracleObject(NamedTuple):
    """An object in the sense of the definition. Positions in plane metres, times in milliseconds.

    An object with an area, a rectangle or a polygon without holes, has its position at a point inside the
    area; distances are measured to this point.
    """

    object_id: int
    x_m: float
    y_m: float
    keywords: frozenset[str]
    created_ms: int
    expiry_ms: int
    area: OracleRectangle | OraclePolygon | None = None


@dataclass(frozen=True, slots=True)
class OracleWindow:
    """The live objects that count: of the last `duration_ms`, the last `count` published, or both."""

    duration_ms: int | None = None
    count: int | None = None
    latest_id: int = 0
    """The id published last, whether or not its object still lives."""


class OracleSubscription(NamedTuple):
    """A top-k subscription in the sense of the definition."""

    keywords: frozenset[str]
    k: int
    alpha: float
    similarity: str
    """One of "jaccard", "dice", "cosine"; "tfidf" with `weights`."""
    weights: Callable[[str], float] | None = None
    """The weight of a keyword; None for 1."""
    window: OracleWindow = OracleWindow()
    distance_scale_m: float | None = None
    """The divisor of distances, metres; None or 0 for the diagonal of the service area."""


class OracleClause(NamedTuple):
    """A condition on the keywords of an object: it has all required and no excluded ones."""

    required: frozenset[str]
    excluded: frozenset[str] = frozenset()


class OracleRange(NamedTuple):
    """A boolean subscription in the sense of the definition: any of the clauses, within the range."""

    clauses: tuple[OracleClause, ...]
    range: OracleCircle | OracleRectangle | OracleExtent | OraclePolygon
    """Fixed in place; a circle or an extent without a centre is about the device."""
    window: OracleWindow = OracleWindow()


class OracleMatch(NamedTuple):
    """One object of a result: its length in metres, and its id, which decides ties."""

    length_m: float
    object_id: int


def is_alive(candidate: OracleObject, now_ms: int) -> bool:
    """Return whether created <= now < expiry."""
    return candidate.created_ms <= now_ms < candidate.expiry_ms


def does_count(window: OracleWindow, candidate: OracleObject, now_ms: int) -> bool:
    """Return whether a live object is in the window."""
    if window.duration_ms is not None and now_ms >= candidate.created_ms + window.duration_ms:
        return False
    return window.count is None or candidate.object_id > window.latest_id - window.count


def text_distance(similarity: str, left: frozenset[str], right: frozenset[str]) -> float:
    """Return one minus the similarity of two keyword sets."""
    common = len(left & right)
    if similarity == "jaccard":
        return 1.0 - common / len(left | right)
    if similarity == "dice":
        return 1.0 - 2.0 * common / (len(left) + len(right))
    if similarity == "cosine":
        return 1.0 - common / math.sqrt(len(left) * len(right))
    raise ValueError(f"similarity is {similarity!r}, must be jaccard, dice or cosine")


def tfidf_distance(weights: Mapping[Word, float], left: frozenset[Word], right: frozenset[Word]) -> float:
    """Return one minus the cosine of two keyword sets, each keyword weighted by how rare it is.

    `weights` has a weight for every keyword of the two sets.
    """
    common = sum(weights[word] ** 2 for word in left & right)
    norms = [sum(weights[word] ** 2 for word in words) for words in (left, right)]
    return 1.0 - common / math.sqrt(norms[0] * norms[1])


def _distance(subscription: OracleSubscription, keywords: frozenset[str]) -> float:
    if subscription.similarity != "tfidf":
        return text_distance(subscription.similarity, subscription.keywords, keywords)
    weigh = subscription.weights or (lambda _word: 1.0)
    words = subscription.keywords | keywords
    return tfidf_distance({word: weigh(word) for word in words}, subscription.keywords, keywords)


def ranked(
    subscription: OracleSubscription,
    x_m: float,
    y_m: float,
    maxdist_m: float,
    objects: Iterable[OracleObject],
    now_ms: int,
) -> list[OracleMatch]:
    """Return every live qualifying object, best first: by length, then by id."""
    scale = subscription.distance_scale_m or maxdist_m
    weight = (1.0 - subscription.alpha) / subscription.alpha * scale
    wanted = subscription.keywords
    found = []
    for candidate in objects:
        if wanted.isdisjoint(candidate.keywords) or not is_alive(candidate, now_ms):
            continue
        if not does_count(subscription.window, candidate, now_ms):
            continue
        dx = x_m - candidate.x_m
        dy = y_m - candidate.y_m
        r = weight * _distance(subscription, candidate.keywords)
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
    """Return the k best live qualifying objects at a position, best first; fewer if there are fewer."""
    return ranked(subscription, x_m, y_m, maxdist_m, objects, now_ms)[: subscription.k]


def score(subscription: OracleSubscription, length_m: float, maxdist_m: float) -> float:
    """Return the score of a length, for display to users."""
    return length_m * subscription.alpha / (subscription.distance_scale_m or maxdist_m)


def matching(
    subscription: OracleRange, x_m: float, y_m: float, objects: Iterable[OracleObject], now_ms: int
) -> Sequence[OracleMatch]:
    """Return every live object that matches a clause and lies in the range, nearest first.

    Lengths are distances of the objects' points from the range's centre. This is the device, if the range
    moves with it; the centre of a circle; the middle of the box about any other range.

    Parameters
    ----------
    subscription
        The subscription.
    x_m, y_m
        The device's position. It does not matter if the range is fixed in place.
    objects
        Objects, including dead ones.
    now_ms
        The time.
    """
    wanted = subscription.range
    if isinstance(wanted, OracleCircle | OracleExtent) and wanted.center is None:
        wanted = wanted._replace(center=(x_m, y_m))
    center_x, center_y = plane.center(wanted)
    found = []
    for candidate in objects:
        if not is_alive(candidate, now_ms) or not has_clause(subscription.clauses, candidate.keywords):
            continue
        if not does_count(subscription.window, candidate, now_ms):
            continue
        if plane.is_within(wanted, (candidate.x_m, candidate.y_m), candidate.area):
            dx = center_x - candidate.x_m
            dy = center_y - candidate.y_m
            found.append(OracleMatch(math.sqrt(dx * dx + dy * dy), candidate.object_id))
    return sorted(found)


def dwelling(
    subscription: OracleRange,
    path: Sequence[tuple[int, float, float]],
    objects: Iterable[OracleObject],
    now_ms: int,
    dwell_ms: int,
) -> Sequence[OracleMatch]:
    """Return the matches at the end of a path that have matched for the dwell time, nearest first.

    Parameters
    ----------
    subscription
        The subscription.
    path
        (time, x, y) of each position that the device reported since the subscription started, in order.
    objects
        Objects, including dead ones.
    now_ms
        The time.
    dwell_ms
        The time for which an object must have matched: since it was created, and since the first position
        after which there is none where it did not match.
    """
    found: list[OracleMatch] = []
    for candidate in objects:
        since_ms = None
        for given_ms, x_m, y_m in path:
            if not matching(subscription, x_m, y_m, [candidate], max(now_ms, candidate.created_ms)):
                since_ms = None
            elif since_ms is None:
                since_ms = given_ms
        if since_ms is not None and now_ms - max(since_ms, candidate.created_ms) >= dwell_ms:
            found += matching(subscription, *path[-1][1:], [candidate], now_ms)
    return sorted(found)


def has_clause(clauses: Iterable[OracleClause], keywords: frozenset[str]) -> bool:
    """Return whether a set of keywords matches any of the clauses."""
    return any(one.required <= keywords and one.excluded.isdisjoint(keywords) for one in clauses)
