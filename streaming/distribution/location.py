"""By the positions of subscriptions: a KD-tree with a leaf a partition (section 7.3.2, Algorithm 3).

A node's cost is the number of its subscriptions times the fraction of messages that fall into it
(Equation 15). A line divides a node where the costs of both sides differ least. Deviations from the
paper: a number of partitions that is no power of two divides unevenly, with costs in proportion to the
leaves of each side; a subscription counts one more message than there are, so that nodes without messages
divide as well; lines lie between positions, and a position on a line belongs above it.

Operations: choose O(sample * log(sample) * log(partitions)), place O(log(partitions)) a subscription.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from index.batches import Floats, Ints
from streaming.arrays.blocks import Messages, Subscriptions
from streaming.distribution.contract import Sample

LEAF = -1
"""The axis of a node that is not divided: its line is the number of a partition."""


@dataclass(frozen=True, slots=True)
class Location:
    """A `Distribution` by place. Nodes are in preorder: the lower side follows, then `above`."""

    partitions: int
    axis: tuple[int, ...]
    line: tuple[float, ...]
    above: tuple[int, ...]

    @classmethod
    def choose(cls, partitions: int, sample: Sample, first_level: int = 0) -> Self:  # noqa: ARG003
        """Build the tree from a sample."""
        nodes: list[tuple[int, float, int]] = []
        places = [np.stack([one.x_m, one.y_m]) for one in (sample.subscriptions, sample.messages)]
        _divide(nodes, 0, (0, partitions), *places)
        axis, line, above = zip(*nodes, strict=True)
        return cls(partitions, axis, line, above)

    def place(self, block: Subscriptions) -> Sequence[tuple[int, Subscriptions]]:
        """Send each subscription to its partition, and an end of it to all other partitions.

        The former position of a subscription that ends or is replaced is not known.
        """
        owners = self.owners(block.x_m, block.y_m)
        is_elsewhere = [(block.is_end == 0) & (owners != one) for one in range(self.partitions)]
        return [
            (one, replace(block, is_end=block.is_end | elsewhere.astype(np.int8)))
            for one, elsewhere in enumerate(is_elsewhere)
        ]

    def owners(self, x_m: Floats, y_m: Floats) -> Ints:
        """Return the partition of each position."""
        axis, line, above = np.array(self.axis), np.array(self.line), np.array(self.above)
        nodes = np.zeros(len(x_m), dtype=np.int64)
        while (inner := axis[nodes] != LEAF).any():
            at = nodes[inner]
            place = np.where(axis[at] == 0, x_m[inner], y_m[inner])
            nodes[inner] = np.where(place < line[at], at + 1, above[at])
        return line[nodes].astype(np.int64)

    def route(self, block: Messages) -> Sequence[tuple[int, Ints | None]]:  # noqa: ARG002
        """Send all messages to all partitions: a distant message may still be among the best."""
        return [(one, None) for one in range(self.partitions)]

    def encoded(self) -> Any:  # noqa: ANN401
        """Return the nodes."""
        return [list(node) for node in zip(self.axis, self.line, self.above, strict=True)]

    @classmethod
    def decoded(cls, partitions: int, kept: Any) -> Self:  # noqa: ANN401
        """Return the distribution from its encoded form."""
        axis, line, above = zip(*kept, strict=True)
        return cls(partitions, axis, line, above)


def _divide(
    nodes: list[tuple[int, float, int]], depth: int, leaves: tuple[int, int], wanted: Floats, sent: Floats
) -> None:
    """Append a node that has these partitions, and all nodes below it.

    Parameters
    ----------
    nodes
        Axis, line and the node above the line, of each.
    depth
        Even: divided by x.
    leaves
        Partitions from and to.
    wanted, sent
        Coordinates of subscriptions and of messages, a row for x and one for y.
    """
    start, end = leaves
    if end - start == 1:
        nodes.append((LEAF, float(start), LEAF))
        return
    axis, middle = depth % 2, (start + end) // 2
    line = _line(wanted[axis], sent[axis], (middle - start) / (end - start))
    own = len(nodes)
    nodes.append((axis, line, LEAF))
    low = wanted[axis] < line, sent[axis] < line
    _divide(nodes, depth + 1, (start, middle), wanted[:, low[0]], sent[:, low[1]])
    nodes[own] = (axis, line, len(nodes))
    _divide(nodes, depth + 1, (middle, end), wanted[:, ~low[0]], sent[:, ~low[1]])


def _line(wanted: Floats, sent: Floats, share: float) -> float:
    """Return the line that divides the cost by `share`; 0 if there are no subscriptions."""
    lines = np.unique(wanted)
    if len(lines) < 2:  # noqa: PLR2004 - nothing to divide
        return float(lines[0]) if len(lines) else 0.0
    lines = (lines[:-1] + lines[1:]) / 2.0
    below = np.searchsorted(np.sort(wanted), lines) * (1.0 + np.searchsorted(np.sort(sent), lines))
    above = (len(wanted) - np.searchsorted(np.sort(wanted), lines)) * (
        1.0 + len(sent) - np.searchsorted(np.sort(sent), lines)
    )
    return float(lines[np.argmin(np.abs(below * (1.0 - share) - above * share))])
