"""Devices of the suite ranges: the events that make them report, and the traffic.

The engine stands for the server; the devices hold the objects that the engine has for them.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from bench.boolean_specs import boolean_of
from bench.ranges.workload import RangesWorkload
from bench.silence.traffic import InformedDevices, Traffic
from engine import Engine, Published
from engine.boolean.pairs import PAIR_BITS, Places
from engine.contracts import Bools
from index.batches import Floats, Ints
from safe_region.regions.ranges import ROUNDING_M, ROUNDING_SHARE, STEP_SHARE
from safe_region.scoring.formulas import REACH_SLACK


def results(engine: Engine, workload: RangesWorkload, x_m: Floats, y_m: Floats) -> Ints:
    """Return the true results of all devices at given positions: pairs of a device and an object's id."""
    matcher = boolean_of(engine)
    slots = matcher.subscriptions.slots(workload.handles)
    reach_m = np.full(len(slots), workload.radius_m)
    found = matcher.tables.find(Places(slots, x_m, y_m, reach_m))
    ids = engine.objects.table.rows["id"][found.objects]
    pairs: Ints = np.sort(found.rows << PAIR_BITS | ids)
    return pairs


class RangeDevices(Protocol):
    """All devices of a run."""

    traffic: Traffic

    def move(self, second: int) -> None:
        """Move devices to their positions at a second, and let them report."""

    def learn(self, published: Published) -> None:
        """Let the server notify devices of the effects of new objects."""

    def shown(self, row: int) -> set[int] | None:
        """Return the ids that a device shows; None if it knows that they are incomplete."""

    def is_sure(self, second: int) -> bool:
        """Return whether devices show exact results at a second."""


class AnchoredDevices:
    """Devices that report when they have left their safe region.

    Parameters
    ----------
    engine
        The engine, with all subscriptions anchored at the first positions of devices.
    workload
        Trajectories and subscriptions.
    """

    def __init__(self, engine: Engine, workload: RangesWorkload) -> None:
        self.traffic = Traffic()
        self._engine = engine
        self._workload = workload
        self._second = 0
        self._x_m, self._y_m = workload.positions(0)

    def move(self, second: int) -> None:
        """Move devices to their positions at a second, and let them report."""
        self._second = second
        self._x_m, self._y_m = self._workload.positions(second)
        self._report()

    def learn(self, published: Published) -> None:
        """Push deltas, and answer the server's location requests."""
        notified = np.unique(np.concatenate([published.changes["handle"], published.rebound]))
        self.traffic.pushes += len(notified)
        self.traffic.count(len(notified), published.changes)
        self._answer(published.pending)
        if len(published.rebound):
            self._report()  # a smaller slack makes the region smaller

    def is_sure(self, second: int) -> bool:
        """Return whether devices show exact results at a second: always."""
        del second
        return True

    def shown(self, row: int) -> set[int] | None:
        """Return the held objects within a device's range; None if it knows that they are incomplete."""
        handle = self._workload.handles[row : row + 1]
        bounds = self._engine.bounds(handle)
        if bounds.bound_id[0]:
            return None
        ids, _ = self._engine.held(int(handle[0]))
        table = self._engine.objects.table
        rows = table.rows[table.slots(ids)]
        away_m = np.hypot(rows["x_m"] - self._x_m[row], rows["y_m"] - self._y_m[row])
        return set(ids[away_m <= self._workload.radius_m].tolist())

    def _answer(self, pending: Ints) -> None:
        """Report the positions that the server requested."""
        self.traffic.location_requests += len(pending)
        self.traffic.answers += len(pending)
        self._evaluate(pending - self._workload.handles[0])

    def _report(self) -> None:
        leaving = np.flatnonzero(self._must_report())
        self.traffic.reports += len(leaving)
        self._evaluate(leaving)

    def _evaluate(self, rows: Ints) -> None:
        """Let the server evaluate the positions of devices, and send them the changes."""
        if len(rows):
            places = self._workload.happens.trajectories.positions(rows + 1, self._second)
            changes = self._engine.evaluate(places._replace(handles=self._workload.handles[rows]))
            self.traffic.count(len(rows), changes)

    def _must_report(self) -> Bools:
        """Return whether each device has left its safe region."""
        return ~self._are_silent()

    def _are_silent(self) -> Bools:
        """Apply the test of `safe_region.regions.ranges.RangeRegion` to all devices."""
        bounds = self._engine.bounds(self._workload.handles)
        radius_m = self._workload.radius_m
        moved_m = np.hypot(self._x_m - bounds.x_m, self._y_m - bounds.y_m)
        rounding_m = ROUNDING_M + ROUNDING_SHARE * (np.abs(self._x_m) + np.abs(self._y_m))
        held_m = (radius_m + bounds.bound_m) * (1.0 - REACH_SLACK)
        is_exact = (moved_m == 0.0) | (radius_m + moved_m + rounding_m < held_m)
        is_capped = bounds.bound_id > 0
        found: Bools = np.where(is_capped, moved_m < radius_m * STEP_SHARE, is_exact)
        return found


class PeriodicDevices(AnchoredDevices):
    """Devices that hold the result of their last report, and report at a fixed period.

    They are those of ap-tree.txt section 4.1: they compute nothing. The server pushes a new object to the
    devices whose range at the last report contains it.

    Parameters
    ----------
    engine, workload
        As for `AnchoredDevices`.
    period_s
        Seconds between two reports.
    """

    def __init__(self, engine: Engine, workload: RangesWorkload, period_s: int) -> None:
        super().__init__(engine, workload)
        self._period_s = period_s

    def is_sure(self, second: int) -> bool:
        """Return whether devices show exact results at a second: at multiples of the period."""
        return second % self._period_s == 0

    def move(self, second: int) -> None:
        """Move devices to their positions at a second, and let them report."""
        super().move(second)
        if not self.is_sure(second):
            bounds = self._engine.bounds(self._workload.handles)
            shown = results(self._engine, self._workload, bounds.x_m, bounds.y_m)
            true = results(self._engine, self._workload, self._x_m, self._y_m)
            changed = np.setxor1d(true, shown, assume_unique=True)
            self.traffic.stale += len(np.unique(changed >> PAIR_BITS))

    def _must_report(self) -> Bools:
        return np.full(len(self._workload.handles), self.is_sure(self._second))


class SetDevices(InformedDevices):
    """Devices that hold only their result, and are updated when it has changed, or periodically.

    Parameters
    ----------
    engine
        The engine that finds the true results.
    workload
        Trajectories and subscriptions.
    period_s
        See `InformedDevices`; without it, no device that holds only its result can do better.
    """

    def __init__(self, engine: Engine, workload: RangesWorkload, period_s: int | None = None) -> None:
        super().__init__(len(workload.handles), period_s)
        self._engine = engine
        self._workload = workload
        self._second = 0
        self._shown = results(engine, workload, *workload.positions(0))

    def move(self, second: int) -> None:
        """Move devices to their positions at a second, and let them report."""
        self._second = second
        self.report(second)

    def shown(self, row: int) -> set[int] | None:
        """Return the ids that a device shows."""
        mine = self._shown[self._shown >> PAIR_BITS == row]
        return set((mine & ((1 << PAIR_BITS) - 1)).tolist())

    def _true(self) -> Ints:
        return results(self._engine, self._workload, *self._workload.positions(self._second))

    def stale(self) -> int:
        """Return the number of devices that show a wrong result."""
        changed = np.setxor1d(self._true(), self._shown, assume_unique=True)
        return len(np.unique(changed >> PAIR_BITS))

    def update(self) -> int:
        """Replace the shown results by the true ones; return the number of devices with a change."""
        true = self._true()
        alive = self._engine.objects.table.ids.present(self._shown & ((1 << PAIR_BITS) - 1))
        self._shown = self._shown[alive]  # devices know when objects expire
        entered = np.setdiff1d(true, self._shown, assume_unique=True)
        left = np.setdiff1d(self._shown, true, assume_unique=True)
        self._shown = true
        changed = len(np.unique(np.concatenate([entered, left]) >> PAIR_BITS))
        self.traffic.deltas += changed
        self.traffic.objects += len(entered)
        self.traffic.drops += len(left)
        return changed
