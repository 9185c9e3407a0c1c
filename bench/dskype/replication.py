"""Compute independently the number of replicas that subscriptions need: plain Python, by the definitions.

Given are the division of keywords (Algorithm 4) and the results of the subscriptions. A subscription
needs a replica on each partition that has one of its keywords, or one of its loose prefix (after
Definition 12). The prefix takes keywords, rarest first, as long as a keyword and those after it can make
a message as good as the k-th.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from bench.skype.workload import SkypeWorkload
from streaming.arrays.blocks import digests
from streaming.distribution.keywords import Keyword


def expected_replication(
    mechanism: Keyword,
    workload: SkypeWorkload,
    maxdist_m: float,
    worst: Mapping[int, float],
    sample: Sequence[int],
) -> float:
    """Return the number of replicas that a subscription of a sample needs, on average.

    Parameters
    ----------
    mechanism
        Gives the partition of each keyword and the order by rarity.
    workload
        The subscriptions; they compare texts by tf-idf.
    maxdist_m
        The maximum distance of the job.
    worst
        The k-th score of the subscriptions with a full result.
    sample
        Numbers of subscriptions.
    """
    words = sorted({word for one in sample for word in _words(workload, one)})
    high = digests([str(word) for word in words])[:, 0].copy()
    parts, rank = mechanism.look_up(np.ascontiguousarray(high))
    part_of = dict(zip(words, parts[0].tolist(), strict=True))
    rank_of = dict(zip(words, rank.tolist(), strict=True))
    count = 0
    for one in sample:
        own = sorted(_words(workload, one), key=rank_of.__getitem__)
        if mechanism.uses_prefix:
            own = own[: _prefix(own, one, workload, maxdist_m, worst.get(one, math.inf))]
        count += len({part_of[word] for word in own})
    return count / len(sample)


def _words(workload: SkypeWorkload, subscription: int) -> list[int]:
    offsets = workload.interests.keywords.offsets
    found: list[int] = workload.interests.keywords.ids[
        offsets[subscription] : offsets[subscription + 1]
    ].tolist()
    return found


def _prefix(own: Sequence[int], one: int, workload: SkypeWorkload, maxdist_m: float, score: float) -> int:
    """Return the number of keywords in the loose prefix."""
    alpha = float(workload.alpha[one])
    # A message at distance 0: alpha * 0 + (1 - alpha) * (1 - similarity) must be below the score.
    weight = (1.0 - alpha) / alpha * maxdist_m
    most_distance = score * (maxdist_m + weight) / weight
    squares = [float(workload.weights[word]) ** 2 for word in own]
    for place in range(len(own)):
        similarity = math.sqrt(sum(squares[place:]) / sum(squares))
        if 1.0 - similarity > most_distance:
            return place
    return len(own)
