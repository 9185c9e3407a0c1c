"""How much a buffer of a subscription that stands begins with: theta, and what lies below it.

Each policy is one that skype.txt compares (sections 2.3, 6.2, 8.1.2):

cskyband
    As many as cost least. With n objects below theta, a share n / |W| of the window,

        C(n) = n/|W| * k (1 + ln(n/k))  +  cost * n/|W| / ((n - k + 1) (2 n + n - k + 2))

    which is equation 13 with the size of a k-skyband for |s.A| (equation 9 has 0 for it at n = k) and
    equation 12 for Z, in looks at an entry; |W| does not matter to where it is least. The cost of a
    retrieval is the running mean of what those of the subscription took. With windows of so many seconds
    arrivals and expiries are as frequent as each other in the long run (section 6.3): the same n.
skyband
    Whatever has at least a share of the k-th best score (0.95 is the sweet spot of figure 10).
kmax
    k_max objects, of which none is left out: three times k (60 for 20, figure 10).

Operations: a retrieval each, for skyband two; choosing n O(log n) a subscription.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from index.batches import Floats, Ints, Ranking

N_FACTOR_MAX = 8
"""A buffer by cost begins with so many times k at most."""
KMAX_FACTOR = 3
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_STEPS = 24


class Begin(NamedTuple):
    """What buffers begin with, row i at `ranking.offsets[i] : offsets[i + 1]`, and their reaches."""

    ranking: Ranking
    reach_m: Floats
    reach_id: Ints


def cheapest_counts(k: Ints, cost: Floats) -> Ints:
    """Return how many objects it costs least to hold, by golden section: C has one minimum.

    Parameters
    ----------
    k
        Of each subscription.
    cost
        Of a retrieval, in looks at an entry.
    """
    low, high = k.astype(np.float64), N_FACTOR_MAX * k.astype(np.float64)
    for _ in range(_STEPS):
        one, other = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        is_left = _cost(one, k, cost) < _cost(other, k, cost)
        high, low = np.where(is_left, other, high), np.where(is_left, low, one)
    found: Ints = np.rint((low + high) / 2.0).astype(np.int64)
    return found


def _cost(n: Floats, k: Ints, cost: Floats) -> Floats:
    spare = n - k + 1.0
    found: Floats = n * (k * (1.0 + np.log(n / k)) + cost / (spare * (2.0 * n + spare + 1.0)))
    return found


def begun(ranking: Ranking, count: Ints) -> Begin:
    """Return buffers of the `count` best, of which one more was looked for: that is the reach."""
    found = np.diff(ranking.offsets)
    is_all = found <= count
    last = ranking.offsets[1:] - 1
    reach_m = np.full(len(count), np.inf)
    reach_id = np.zeros(len(count), dtype=np.int64)
    reach_m[~is_all] = ranking.length_m[last[~is_all]]
    reach_id[~is_all] = ranking.ids[last[~is_all]]
    kept = np.ones(len(ranking.ids), dtype=np.bool_)
    kept[last[~is_all]] = False
    offsets = np.zeros_like(ranking.offsets)
    np.cumsum(np.minimum(found, count), out=offsets[1:])
    best = Ranking(offsets, ranking.ids[kept], ranking.length_m[kept], ranking.r_m[kept])
    return Begin(best, reach_m, reach_id)
