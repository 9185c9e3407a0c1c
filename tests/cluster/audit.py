"""Results of a job after every batch, against the definition, and every change looked at."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

from feeds.schemas import FEEDS
from safe_region.earth.frame import Frame
from streaming.result.audit import Definition
from streaming.window_size import WindowSize
from tests.cluster.feed import AREA
from tests.support.stream_results import changes_of, complete, follow, manifest, read_feed

_SCORE_ERROR_MAX = 1e-9


class Audited(NamedTuple):
    """What was found."""

    batches: int
    results: int
    """Compared, over all batches."""
    changes: int
    evaluated: list[float]
    """Of each batch with messages: the share of subscriptions that owners evaluated besides."""
    wrong: list[str]


def audited(out: Path, window: int, sample: int, seed: int = 1) -> Audited:
    """Follow a job batch by batch; compare a sample of results behind each with the definition."""
    definition = Definition(Frame.of(AREA), WindowSize(count=window), lambda _word: 1.0)
    lists: dict[int, dict[int, float]] = {}
    chosen: list[int] = []
    evaluated: list[float] = []
    wrong: list[str] = []
    results = changes = 0
    for number in complete(out):
        about = manifest(out, number)
        rows = {
            name: [row for where in about["files"][name] for row in read_feed(_path(where), name)]
            for name in FEEDS
        }
        definition.apply(rows["subscriptions"], rows["messages"])
        if not chosen and definition.subscriptions:
            known = sorted(definition.subscriptions)
            chosen = random.Random(seed).sample(known, min(sample, len(known)))
        count, problems = follow(lists, changes_of(out, number))
        changes += count
        wrong += [f"batch {number}: {problem}" for problem in problems]
        if rows["messages"] and about.get("subscriptions"):
            evaluated.append(about.get("evaluated", 0) / about["subscriptions"])
        expected = definition.results(chosen)
        results += len(chosen)
        wrong += [
            f"batch {number}: subscription {one} has {lists.get(one, {})}, must have {expected[one]}"
            for one in chosen
            if not _are_same(lists.get(one, {}), expected[one])
        ]
    return Audited(len(complete(out)), results, changes, evaluated, wrong)


def _path(where: str) -> Path:
    return Path(unquote(urlparse(where).path))


def _are_same(held: dict[int, float], expected: dict[int, float]) -> bool:
    return held.keys() == expected.keys() and all(
        abs(score - expected[one]) <= _SCORE_ERROR_MAX for one, score in held.items()
    )
