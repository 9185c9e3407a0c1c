"""Choose the initial size of a stationary subscription's buffer: theta, and the objects below it.

cost, ours, holds the number of objects with the least total cost. With n objects below theta, n arrive
and n leave in the time in which the window turns over. Each costs a *pair*: it is matched, inserted, and
removed. The number at a time is a queue with as many servers as customers (M/M/inf) and mean n, so from n
on it takes

    tau(n) = sum over j from k to n of  P(N >= j) / (j P(N = j)),   N of Poisson's law with mean n

turns until fewer than k are left, and the buffer is rebuilt. So C(n) = n * pair + retrieval / tau(n): for
expiries as for moves (`engine.top_k.choice_kernels`) the cost of held objects is weighed against the cost
that they save. Both costs are running means of measurements.

The others are the policies that skype.txt compares (sections 2.3, 6.2, 8.1.2):

cskyband
    The number with the least cost, by equation 13 in looks at an entry. A message reaches the length
    behind the n-th, theta, with prob(theta) = h n / |W|: the fraction of the window, and h, the factor by
    which the messages since the last time have differed from it (`history`). With m = |W| prob(theta), at
    least k,

        C(n) = prob(theta) * k (1 + ln(m/k))  +  cost / Z(m)

    where the size of a k-skyband is |s.A| (equation 9 has 0 for it at m = k), and Z is the time until a
    random walk from m, with a barrier at 2 m, reaches k - 1. Of all recent arrivals and departures of
    messages, a fraction a are arrivals. With a = 1/2, as in a window of a fixed number of messages, Z is
    that of equation 12; this is assumed of every window (section 6.3 estimates a for windows of time).
    |W| does not affect the minimum of C. `cost` is that of earlier retrievals of the same subscription,
    each time the mean of the previous estimate and the last one: under this policy each subscription is
    retrieved, and timed, alone.
skyband
    All objects with at least a fraction of the k-th best score (0.95 is the sweet spot of figure 10), at
    most 8 k, which is not in the paper.
kmax
    k_max objects, of which none is left out: three times k (60 for 20, figure 10). A message enters if it
    is below the reach of the last refill, also if it is worse than all that are held; the paper does not
    say.

Operations: a retrieval each, for skyband two; choosing n O(log n) a subscription.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from index.batches import Floats, Ints, Ranking

N_FACTOR_MAX = 8
"""A buffer by cost starts with at most this many times k objects."""
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_STEPS = 24
_RATIO_STEPS = 2
"""Costs of retrievals are distinguished by half powers of two, up to `_RATIO_MAX` steps."""
_RATIO_MAX = 40
_RATIO_IS_ONE = 1e-3
"""This near to 1 the general formula loses digits."""
_TAIL = 12
"""The queue is assumed to end this many standard deviations above its mean."""


class Cost:
    """The mean cost of an operation; recent measurements count most.

    Parameters
    ----------
    first
        The assumed cost of the first ones.
    count
        The number of these.
    """

    def __init__(self, first: float, count: float) -> None:
        self._total = first * count
        self._count = count
        self._memory = count

    @property
    def mean(self) -> float:
        """Return the mean cost of one operation."""
        return self._total / self._count

    def note(self, total: float, count: int) -> None:
        """Record the total cost of `count` operations; older ones fade with each record."""
        kept = self._memory / (self._memory + count)
        self._total = kept * (self._total + total)
        self._count = kept * (self._count + count)


class InitialBuffers(NamedTuple):
    """The initial objects of buffers, row i at `ranking.offsets[i] : offsets[i + 1]`, and reaches."""

    ranking: Ranking
    reach_m: Floats
    reach_id: Ints


def cheapest_counts(
    k: Ints, cost: Floats, factor: Floats | float = 1.0, ratio: Floats | float = 1.0
) -> Ints:
    """Return the numbers of objects of least cost, by golden section: C has one minimum.

    Parameters
    ----------
    k
        Of each subscription.
    cost
        Of a retrieval, in looks at an entry.
    factor
        How much more often messages reach theta than the window predicts.
    ratio
        The number of arriving messages for each departing one.
    """
    low, high = k.astype(np.float64), N_FACTOR_MAX * k.astype(np.float64)
    for _ in range(_STEPS):
        one, other = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        is_left = _cost(one, k, cost, factor, ratio) < _cost(other, k, cost, factor, ratio)
        high, low = np.where(is_left, other, high), np.where(is_left, low, one)
    found: Ints = np.rint((low + high) / 2.0).astype(np.int64)
    return found


def _cost(n: Floats, k: Ints, cost: Floats, factor: Floats | float, ratio: Floats | float) -> Floats:
    """Return C, times |W|."""
    reached = factor * n
    held = np.maximum(reached, k)
    found: Floats = reached * (k * (1.0 + np.log(held / k)) + cost / steps_below(held, k, ratio))
    return found


def steps_below(held: Floats, k: Ints, ratio: Floats | float) -> Floats:
    """Return the expected arrivals and departures that reach theta until fewer than k are held.

    A step up is `ratio` times as frequent as a step down; there is none from twice the initial number.
    From j the expected number of steps until there is one less is the sum over i from 0 to 2 * held - j
    of ratio^i, divided by the fraction of steps down. The result is the sum of these from k to `held`.

    Parameters
    ----------
    held
        The initial number, at least k.
    k
        The number of objects that the subscription requests.
    ratio
        The frequency of steps up, divided by that of steps down.
    """
    down = 1.0 / (1.0 + ratio)
    spare = held - k + 1.0
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        rest = ratio ** (held + 1.0) * (1.0 - ratio**spare) / (1.0 - ratio)
        found = (spare - rest) / (1.0 - ratio) / down
    is_one = np.abs(np.subtract(ratio, 1.0)) < _RATIO_IS_ONE
    return np.where(is_one, spare * (3.0 * held - k + 2.0), found)


def steady_counts(k: Ints, ratio: Floats) -> Ints:
    """Return the numbers of objects with the least total cost.

    Parameters
    ----------
    k
        Of each subscription.
    ratio
        The cost of a retrieval, in pairs.
    """
    steps = np.clip(np.rint(_RATIO_STEPS * np.log2(ratio)), -_RATIO_MAX, _RATIO_MAX).astype(np.int64)
    both, inverse = np.unique(np.stack([k, steps]), axis=1, return_inverse=True)
    found = [_steady_count(one, step) for one, step in both.T.tolist()]
    return np.array(found, dtype=np.int64)[inverse.reshape(-1)]


@functools.lru_cache(maxsize=100_000)
def _steady_count(k: int, step: int) -> int:
    """Return the number of objects for one subscription: C has one minimum."""
    ratio = 2.0 ** (step / _RATIO_STEPS)
    low, high = k, N_FACTOR_MAX * k
    while low < high:
        middle = (low + high) // 2
        if middle + ratio / _turns(middle, k) <= middle + 1 + ratio / _turns(middle + 1, k):
            high = middle
        else:
            low = middle + 1
    return low


@functools.lru_cache(maxsize=100_000)
def _turns(n: int, k: int) -> float:
    """Return tau. O(n)."""
    most = n + int(_TAIL * math.sqrt(n)) + _TAIL
    numbers = np.arange(1, most + 1)
    chance = np.exp(np.concatenate([[-n], np.cumsum(np.log(n / numbers)) - n]))
    at_least = np.cumsum(chance[::-1])[::-1]
    sizes = np.arange(k, n + 1)
    with np.errstate(divide="ignore", over="ignore"):  # infinity: never
        return float((at_least[sizes] / (sizes * chance[sizes])).sum())


def initial_buffers(ranking: Ranking, count: Ints) -> InitialBuffers:
    """Return buffers of the `count` best; the ranking has one object more, which is the reach."""
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
    return InitialBuffers(best, reach_m, reach_id)
