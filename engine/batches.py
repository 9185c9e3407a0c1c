"""What goes into the engine and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.top_k.layout import Rows
from index.batches import Floats, Ints
from index.contracts import ObjectIndex, SubscriptionIndex
from index.naive import NaiveObjectIndex, NaiveSubscriptionIndex


@dataclass(frozen=True, slots=True)
class CostModel:
    """What the choice of buffers and anchors weighs; see `engine.top_k.choice_kernels`.

    Parameters
    ----------
    report
        Price of a report and its answer.
    object
        Price of an object sent.
    held
        Price of a second of holding an object: memory on both sides, longer snapshots.
    extra_max
        The largest b.
    ahead
        How much of the way that an anchor may lie ahead of the device is made use of; 0 for none.
    speed_mps
        Assumed of devices of which nothing is known yet.
    """

    report: float = 2.0
    object: float = 1.0
    held: float = 0.0002
    extra_max: int = 32
    ahead: float = 0.9
    speed_mps: float = 10.0


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine works.

    Parameters
    ----------
    buffer_extra
        b: how many objects beyond k a device is given. More of them, fewer reports and more objects
        sent. None to choose it by cost, for each subscription, at each anchor.
    object_index, subscription_index
        What makes the two indexes.
    costs
        What the choice weighs.
    margin_extra_max
        How many objects beyond k a device may be given so that the margin of its position is covered.
    """

    buffer_extra: int | None = 8
    object_index: Callable[[], ObjectIndex] = NaiveObjectIndex
    subscription_index: Callable[[], SubscriptionIndex] = NaiveSubscriptionIndex
    costs: CostModel = CostModel()
    margin_extra_max: int = 200


class Pending(NamedTuple):
    """Pairs of a subscription in the mode ELLIPSE and an object that may enter its result."""

    handles: Ints
    object_ids: Ints


class Published(NamedTuple):
    """What new objects did.

    Parameters
    ----------
    changes
        What entered and left buffers.
    lowered
        Subscriptions whose reach was lowered: their devices must know even if nothing else changed.
    pending
        What has to wait for the position of a device.
    """

    changes: Rows
    lowered: Ints
    pending: Pending


class Positions(NamedTuple):
    """Where the devices of subscriptions are, in plane metres, and how they move, as far as is known."""

    handles: Ints
    x_m: Floats
    y_m: Floats
    heading_rad: Floats | None = None
    """Clockwise from north; NaN or None where unknown."""
    speed_mps: Floats | None = None
    """NaN or None where unknown."""
    margin_m: Floats | None = None
    """How far off the positions may be, at most; None for not at all."""

    def part(self, rows: slice | npt.NDArray[np.bool_]) -> Positions:
        """Return some of them."""
        columns = (self.heading_rad, self.speed_mps, self.margin_m)
        heading, speed, margin = (None if column is None else column[rows] for column in columns)
        return Positions(self.handles[rows], self.x_m[rows], self.y_m[rows], heading, speed, margin)
