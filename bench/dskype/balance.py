"""Count the balance and the traffic of a division into partitions, in plain Python.

The division gives the partition of each keyword or place. The cost is that of Equations 15 and 16 of
skype.txt: the subscriptions of a partition times the messages sent to it, or, where all messages are sent
to it, times those that lie within it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from streaming.arrays.blocks import Block
from streaming.distribution import Distribution, Sample
from streaming.distribution.keywords import Replicated
from streaming.distribution.location import Location


class Balance(NamedTuple):
    """Effects of a division on a sample."""

    cost_max_mean: float
    """The greatest cost of a partition, divided by the mean."""
    replication: float
    """Partitions of a subscription, on average."""
    tuples: float
    """Partitions that a message is sent to, on average."""
    costs: list[int]


def balance_of(distribution: Distribution, sample: Sample, prefixes: Sequence[bool]) -> Balance:
    """Return the effects of a division on a sample.

    Parameters
    ----------
    distribution
        The division.
    sample
        The subscriptions and messages to divide.
    prefixes
        For each of the subscriptions' keywords, whether it is in the loose prefix.
    """
    placed, sent = Counter[int](), Counter[int]()
    copies = tuples = 0
    for row, words in enumerate(_lists(sample.subscriptions)):
        found = _homes(distribution, sample, row, words, prefixes)
        placed.update(found)
        copies += len(found)
    for row, words in enumerate(_lists(sample.messages)):
        found, count = _targets(distribution, sample, row, words)
        sent.update(found)
        tuples += count
    costs = [placed[one] * sent[one] for one in range(distribution.partitions)]
    mean = sum(costs) / len(costs)
    return Balance(
        max(costs) / mean if mean else 1.0,
        copies / max(1, len(sample.subscriptions)),
        tuples / max(1, len(sample.messages)),
        costs,
    )


def _lists(block: Block) -> list[range]:
    """Return the range of keyword positions of each row."""
    ends = block.offsets.tolist()
    return [range(start, end) for start, end in pairwise(ends)]


def _homes(
    distribution: Distribution, sample: Sample, row: int, words: range, prefixes: Sequence[bool]
) -> set[int]:
    """Return the partitions that have a subscription, or a replica of it."""
    block = sample.subscriptions
    if not isinstance(distribution, Replicated):
        single = block.part([row])  # type: ignore[arg-type]
        return {
            part for part, subscriptions in distribution.place(single) if not subscriptions.is_end.all()
        }
    found = [at for at in words if prefixes[at] or not distribution.uses_prefix]
    if not found:
        return set()
    parts, _ = distribution.look_up(block.high[block.words[found]])
    places = block.x_m[[row] * len(found)], block.y_m[[row] * len(found)]
    return set(distribution.cells(parts, *places).tolist())


def _targets(distribution: Distribution, sample: Sample, row: int, words: range) -> tuple[set[int], int]:
    """Return the partitions whose cost a message adds to, and the number it is sent to."""
    block = sample.messages
    if isinstance(distribution, Location):
        return set(
            distribution.owners(block.x_m[[row]], block.y_m[[row]]).tolist()
        ), distribution.partitions
    if not isinstance(distribution, Replicated):
        return set(range(distribution.partitions)), distribution.partitions
    parts, _ = distribution.look_up(block.high[block.words[list(words)]])
    found = {part for parts_of in distribution.sent_to(parts) for part in parts_of.tolist()}
    return found, len(found)
