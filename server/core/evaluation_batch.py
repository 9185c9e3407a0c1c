"""Subscriptions that are to be evaluated together, with one row each.

Reports, hellos and subscribes add rows. A later row of the same subscription overwrites the earlier one,
as it has the current place of the device. Whether the subscriptions of a hello need rows is decided for
the whole batch at once: thousands of devices reconnect together. O(1) per row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np

from engine import Positions
from engine.contracts import Bools
from safe_region.earth.frame import Frame
from server.model import Cause, Place

_LON, _LAT, _MARGIN, _HEADING, _SPEED = range(5)


class EvaluationBatch:
    """The places at which subscriptions are to be evaluated, and the data to send to their devices."""

    __slots__ = ("arrivals", "causes", "places", "snapshots", "unplaced")

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        """By handle."""
        self.causes: dict[int, Cause] = {}
        """By handle, for rows that are not from reports: the cause of the delta."""
        self.snapshots: dict[int, Cause] = {}
        """Subscriptions that need a snapshot, whether evaluated in this batch or not."""
        self.arrivals: dict[int, Place] = {}
        """Subscriptions of devices with a hello, with the place of the hello: some need a row."""
        self.unplaced: set[int] = set()
        """Subscriptions that cannot be evaluated at the place of the hello, which is too vague."""

    def __len__(self) -> int:
        return len(self.places)

    def __bool__(self) -> bool:
        return bool(self.places or self.snapshots or self.unplaced)

    def forget(self, handle: int) -> None:
        """Remove the rows of a subscription that has ended."""
        self.places.pop(handle, None)
        self.causes.pop(handle, None)
        self.snapshots.pop(handle, None)
        self.arrivals.pop(handle, None)
        self.unplaced.discard(handle)

    def place(self, handle: int, place: Place) -> None:
        """Add the row of a subscription whose device is at a place. O(1)."""
        self.places[handle] = place
        self.causes.pop(handle, None)
        self.arrivals.pop(handle, None)
        self.unplaced.discard(handle)

    def divided(self, cost_us: Callable[[int], float], cost_max_us: float) -> list[EvaluationBatch]:
        """Return the same rows in batches, in order; each costs at most the maximum, or has one row.

        Parameters
        ----------
        cost_us
            Returns the cost of a subscription.
        cost_max_us
            Maximum cost of a batch.
        """
        found = [EvaluationBatch()]
        sum_us = 0.0
        for handle in {**self.places, **self.snapshots, **dict.fromkeys(self.unplaced)}:
            added_us = cost_us(handle)
            if sum_us and sum_us + added_us > cost_max_us:
                found.append(EvaluationBatch())
                sum_us = 0.0
            sum_us += added_us
            self._copy(handle, found[-1])
        return found

    def _copy(self, handle: int, other: EvaluationBatch) -> None:
        """Copy the rows of a subscription to another batch."""
        if handle in self.places:
            other.places[handle] = self.places[handle]
        if handle in self.causes:
            other.causes[handle] = self.causes[handle]
        if handle in self.snapshots:
            other.snapshots[handle] = self.snapshots[handle]
        if handle in self.unplaced:
            other.unplaced.add(handle)

    def set_aside(self, handles: Iterable[int]) -> None:
        """Remove the rows of subscriptions that cannot be evaluated where their devices are."""
        for handle in handles:
            self.forget(handle)
            self.unplaced.add(handle)

    def resume(self, are_awake: Bools, pending: Collection[int]) -> None:
        """Add a row for each arrival that needs one: it is parked and due a snapshot, or it is pending.

        Parameters
        ----------
        are_awake
            Whether each arrival is awake, in their order.
        pending
            Subscriptions with objects that wait for a position.
        """
        for (handle, place), is_awake in zip(self.arrivals.items(), are_awake.tolist(), strict=True):
            if (not is_awake and handle in self.snapshots) or handle in pending:
                self.places[handle] = place
                self.causes[handle] = Cause.RESUMED
        self.arrivals.clear()

    def positions(self, frame: Frame) -> Positions:
        """Return the rows as columns, on the plane."""
        handles = np.fromiter(self.places, dtype=np.int64, count=len(self.places))
        table = np.array(list(self.places.values()), dtype=np.float64).reshape(-1, 5)
        # The same expressions as in `Frame.project`, a column at a time.
        return Positions(
            handles,
            (table[:, _LON] - frame.lon0_deg) * frame.x_m_per_deg,
            (table[:, _LAT] - frame.lat0_deg) * frame.y_m_per_deg,
            np.radians(table[:, _HEADING]),
            np.ascontiguousarray(table[:, _SPEED]),
            np.ascontiguousarray(table[:, _MARGIN]),
        )
