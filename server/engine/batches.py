"""What goes into the engine and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints
from index.contracts import ObjectIndex, SubscriptionIndex
from index.naive import NaiveObjectIndex, NaiveSubscriptionIndex
from server.engine.layout import Rows


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine works.

    Parameters
    ----------
    buffer_extra
        b: how many objects beyond k a device is given. More of them, fewer reports and more pushes.
    object_index, subscription_index
        What makes the two indexes.
    margin_extra_max
        How many objects beyond k a device may be given so that the margin of its position is covered.
    """

    buffer_extra: int = 8
    object_index: Callable[[], ObjectIndex] = NaiveObjectIndex
    subscription_index: Callable[[], SubscriptionIndex] = NaiveSubscriptionIndex
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
    """Where the devices of subscriptions are, in plane metres; `margin_m` is how far off at most."""

    handles: Ints
    x_m: Floats
    y_m: Floats
    margin_m: Floats | None = None

    def part(self, rows: slice | npt.NDArray[np.bool_]) -> Positions:
        """Return some of them."""
        margin_m = None if self.margin_m is None else self.margin_m[rows]
        return Positions(self.handles[rows], self.x_m[rows], self.y_m[rows], margin_m)
