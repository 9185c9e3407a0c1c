"""Devices of the suite silence: the events that make them report, and the traffic.

Every device has one subscription, whose handle is its number. The engine stands for the server; the
devices hold the objects that the engine has for them.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from bench import device_kernels
from bench.audits import Audit
from bench.device_kernels import NOBODY
from bench.devices import leaving, spares
from bench.engines import top_k_of
from bench.silence.fixes import Fixes
from bench.silence.traffic import InformedDevices, Traffic
from bench.silence.workload import SilenceWorkload
from engine import Engine, Positions, Published
from index.batches import Floats, Ints


class Devices(Protocol):
    """All devices of a run."""

    traffic: Traffic
    fixes: Fixes
    engine: Engine

    def move(self, second: int, x_m: Floats, y_m: Floats) -> None:
        """Move devices to their positions at a second, and let them report."""

    def lose(self) -> None:
        """Handle expired objects, of which the server does not notify devices."""

    def learn(self, published: Published) -> None:
        """Let the server notify devices of the effects of new objects."""

    def is_sure(self, second: int) -> bool:
        """Return whether devices show exact results at a second, so that they can be audited."""

    def compare(self, audit: Audit, handles: Ints) -> None:
        """Audit some devices."""

    def held(self) -> float:
        """Return the number of objects that a device holds, on average."""


class RegionDevices:
    """Devices that report when they have left their safe region.

    Parameters
    ----------
    engine
        The engine, with all subscriptions anchored at the first positions of devices.
    workload
        Trajectories and subscriptions.
    fixes
        Counts the fixes of devices.
    """

    def __init__(self, engine: Engine, workload: SilenceWorkload, fixes: Fixes) -> None:
        self.traffic = Traffic()
        self.fixes = fixes
        self.engine = engine
        self._handles = workload.drawn.handles
        self._k_max = int(workload.drawn.k.max())
        self._trajectories = workload.trajectories
        self._second = 0
        self._x_m, self._y_m = workload.trajectories.at(0)
        self._reported = np.zeros(len(self._handles), dtype=np.bool_)
        self._counts = self._held()

    def move(self, second: int, x_m: Floats, y_m: Floats) -> None:
        """Move devices to their positions at a second, and let them report."""
        self._second = second
        self._x_m, self._y_m = x_m, y_m
        looking = self.fixes.looking(second)
        self._report()
        spares_m = spares(self.engine, self._handles, x_m, y_m, self._k_max)
        self.fixes.settle(second, looking, self._handles[self._reported], spares_m)
        self._reported[:] = False
        self._counts = self._held()

    def lose(self) -> None:
        """Let devices that hold too few objects report."""
        counts = self._held()
        self.fixes.expire(self._handles[counts < self._counts])
        self._report()

    def learn(self, published: Published) -> None:
        """Push deltas to anchored devices; request the positions of the others."""
        changes = np.concatenate([published.left, published.changes])
        notified = np.unique(np.concatenate([changes["handle"], published.rebound]))
        self.traffic.pushes += len(notified)
        self.traffic.count(len(notified), changes)
        pending = published.pending
        self.fixes.inform(np.union1d(notified, pending))
        self.traffic.location_requests += len(pending)
        self.traffic.answers += len(pending)
        if len(pending):
            self.traffic.count(len(pending), self.engine.evaluate(self._positions(pending)))
        if len(notified):
            self._report()  # a lower reach makes the region smaller

    def is_sure(self, second: int) -> bool:
        """Return whether devices show exact results at a second: always."""
        del second
        return True

    def compare(self, audit: Audit, handles: Ints) -> None:
        """Audit the results that some devices compute from the objects that they hold."""
        audit.compare(self.engine, handles, self._x_m[handles - 1], self._y_m[handles - 1])

    def held(self) -> float:
        """Return the number of objects that a device holds, on average."""
        return float(self._held().mean())

    def _held(self) -> Ints:
        """Return the number of objects that each device holds."""
        subscriptions = top_k_of(self.engine).subscriptions
        return subscriptions.rows["buffer_count"][subscriptions.slots(self._handles)].astype(np.int64)

    def _report(self) -> None:
        reporting = leaving(self.engine, self._handles, self._x_m, self._y_m, self._k_max)
        self.traffic.reports += len(reporting)
        self._reported[reporting - 1] = True
        if len(reporting):
            self.traffic.count(len(reporting), self.engine.evaluate(self._positions(reporting)))

    def _positions(self, handles: Ints) -> Positions:
        """Return the reported positions and movements of devices."""
        return self._trajectories.positions(handles, self._second)


class SetDevices(InformedDevices):
    """Devices that hold only their result, and are updated when it has changed, or periodically.

    They know when it changes: no region that is re-evaluated when the device leaves it can do better, and
    no such region is as large. An engine with large buffers finds the true result at every second; its
    own traffic is not counted.

    Parameters
    ----------
    engine
        The engine, with all subscriptions anchored at the first positions of devices, in the mode
        ANCHORED.
    workload
        Trajectories and subscriptions.
    fixes
        Counts the fixes of devices: at every second, or at those of their reports.
    period_s
        See `InformedDevices`.
    """

    def __init__(
        self, engine: Engine, workload: SilenceWorkload, fixes: Fixes, period_s: int | None = None
    ) -> None:
        super().__init__(len(workload.drawn.handles), period_s)
        self.fixes = fixes
        self.engine = engine
        self._handles = workload.drawn.handles
        self._k_max = int(workload.drawn.k.max())
        self._starts: Ints = np.zeros(len(self._handles) + 1, dtype=np.int64)
        np.cumsum(workload.drawn.k, out=self._starts[1:])
        self._x_m, self._y_m = workload.trajectories.at(0)
        self._shown = self._true()

    def move(self, second: int, x_m: Floats, y_m: Floats) -> None:
        """Move devices to their positions at a second, and let them report."""
        self._x_m, self._y_m = x_m, y_m
        if self.is_sure(second):
            self.fixes.taken += len(self._handles)
        self.report(second)

    def lose(self) -> None:
        """Let devices whose result has lost an object report."""
        if self.period_s is None:
            self.traffic.reports += self.update()

    def held(self) -> float:
        """Return the number of objects that a device holds, on average."""
        return float((self._shown != NOBODY).sum() / len(self._handles))

    def compare(self, audit: Audit, handles: Ints) -> None:
        """Audit the results that some devices show."""
        shown = [self._shown[self._starts[one - 1] : self._starts[one]] for one in handles.tolist()]
        lists = [[one for one in ids.tolist() if one != NOBODY] for ids in shown]
        audit.compare_sets(handles, lists, self._x_m[handles - 1], self._y_m[handles - 1])

    def _true(self) -> Ints:
        """Return the current true results, one after the other."""
        engine = self.engine
        unsure = leaving(engine, self._handles, self._x_m, self._y_m, self._k_max)
        engine.evaluate(Positions(unsure, self._x_m[unsure - 1], self._y_m[unsure - 1]))
        best = np.empty(self._starts[-1], dtype=np.int64)
        matcher = top_k_of(engine)
        device_kernels.best_held(
            engine.objects.table.rows,
            matcher.subscriptions.rows,
            matcher.buffers.holdings,
            matcher.subscriptions.slots(self._handles),
            self._x_m,
            self._y_m,
            self._starts,
            best,
        )
        return best

    def _compare(self, true: Ints) -> tuple[Ints, Ints]:
        """Count the objects that entered and left each result since it was shown."""
        counts = np.empty((2, len(self._handles)), dtype=np.int32)
        device_kernels.compare_sets(self._starts, self._shown, true, counts[0], counts[1])
        return counts[0].astype(np.int64), counts[1].astype(np.int64)

    def stale(self) -> int:
        """Return the number of devices that show a wrong result."""
        entered, left = self._compare(self._true())
        return int(((entered > 0) | (left > 0)).sum())

    def update(self) -> int:
        """Replace the shown results by the true ones; return the number of devices with a change."""
        true = self._true()
        entered, left = self._compare(true)
        changed = int(((entered > 0) | (left > 0)).sum())
        self._shown = true
        self.traffic.deltas += changed
        self.traffic.objects += int(entered.sum())
        self.traffic.drops += int(left.sum())
        return changed
