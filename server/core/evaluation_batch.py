"""Subscriptions that are to be evaluated together: a row each, wherever they come from.

Reports, hellos and subscribes put rows in; a later one of the same subscription overwrites the row, as it
says where the device is now. Which hellos need rows is asked for all of a batch at once, when they are
in: thousands of devices come back together. O(1) a row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from engine import Positions
from engine.contracts import Bools
from safe_region.frame import Frame
from server.model import Cause, Place

_LON, _LAT, _MARGIN, _HEADING, _SPEED = range(5)


class EvaluationBatch:
    """Where subscriptions are to be evaluated, and what their devices are to be told."""

    __slots__ = ("arrivals", "causes", "places", "snapshots", "unplaced")

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        """By handle."""
        self.causes: dict[int, Cause] = {}
        """By handle, for what is no report: why the device is told."""
        self.snapshots: dict[int, Cause] = {}
        """Subscriptions whose devices are to be given everything, evaluated here or not."""
        self.arrivals: dict[int, Place] = {}
        """Subscriptions whose devices have said hello, where that was: some need a row."""
        self.unplaced: set[int] = set()
        """Subscriptions that cannot be evaluated where their devices have said hello: too vaguely."""

    def __len__(self) -> int:
        return len(self.places)

    def __bool__(self) -> bool:
        return bool(self.places or self.snapshots or self.unplaced)

    def forget(self, handle: int) -> None:
        """Leave out a subscription that has ended."""
        self.places.pop(handle, None)
        self.causes.pop(handle, None)
        self.snapshots.pop(handle, None)
        self.arrivals.pop(handle, None)
        self.unplaced.discard(handle)

    def place(self, handle: int, place: Place) -> None:
        """Put in the row of a subscription whose device is at a place. O(1)."""
        self.places[handle] = place
        self.causes.pop(handle, None)
        self.arrivals.pop(handle, None)
        self.unplaced.discard(handle)

    def set_aside(self, handles: Iterable[int]) -> None:
        """Take out the rows of subscriptions that cannot be evaluated where their devices are now."""
        for handle in handles:
            self.forget(handle)
            self.unplaced.add(handle)

    def resume(self, are_awake: Bools, pending: Collection[int]) -> None:
        """Put in a row for each arrival that needs one: it is parked, or something waits for its place.

        Parameters
        ----------
        are_awake
            Of each arrival, in their order.
        pending
            Subscriptions for which something waits.
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
        # The same expressions as `Frame.project`, a column at a time.
        return Positions(
            handles,
            (table[:, _LON] - frame.lon0_deg) * frame.x_m_per_deg,
            (table[:, _LAT] - frame.lat0_deg) * frame.y_m_per_deg,
            np.radians(table[:, _HEADING]),
            np.ascontiguousarray(table[:, _SPEED]),
            np.ascontiguousarray(table[:, _MARGIN]),
        )
