"""Measure the report rates of devices, and the traffic to them.

Every second objects expire, objects are published, and every device moves and checks the objects that it
holds. There is no server process: the engine returns the changes that a server would send, and messages
are counted. Messages sent upon subscribing are not counted.
"""

from __future__ import annotations

import time

import numpy as np

from bench.audits import Audit, audit_seconds, sample
from bench.benchmark import Benchmark, Estimate, Progress, Row, silent
from bench.datasets import source
from bench.engines import subscribe
from bench.errors import BenchError
from bench.silence.devices import Devices
from bench.silence.experiments import SilenceParameters
from bench.silence.fixes import Fixes
from bench.silence.variants import VARIANTS, Variant, Window
from bench.silence.wire_sizes import WireSizes, wire_sizes
from bench.silence.workload import FOREVER, SilenceWorkload, prepare
from bench.trajectories import offsets
from engine import Engine, Positions, Published
from engine.windows import Lasts

_TRIAL_DEVICES = 16
_TRIAL_SECONDS = 30


class SilenceRun:
    """Run one variant on one workload.

    Parameters
    ----------
    variant
        The measured variant.
    workload, parameters
        The workload, and the size and shape of the run.
    """

    def __init__(
        self, variant: Variant, workload: SilenceWorkload, parameters: SilenceParameters
    ) -> None:
        self.second = 0
        self.audit = Audit(workload.drawn, workload.data.maxdist_m)
        self._name = variant.name
        self._window = variant.window
        self._workload = workload
        self._parameters = parameters
        self._chance = np.random.default_rng([parameters.seed, 37])
        self.devices = self._anchored(variant)

    def _anchored(self, variant: Variant) -> Devices:
        """Publish the initial objects and evaluate all subscriptions."""
        engine = variant.make(self._workload.data)
        self._publish(engine)
        drawn = self._workload.drawn
        subscribe(engine, drawn, variant.region, self._lasts())
        engine.evaluate(Positions(drawn.handles, drawn.x_m, drawn.y_m))
        fixes = Fixes(len(drawn.handles), self._parameters.speed_max_mps)
        return variant.devices(engine, self._workload, fixes)

    def go(self, seconds: int, until_s: float, progress: Progress) -> None:
        """Let seconds pass, as many as the time allows; audit at several of them, outside this time."""
        deadline = time.perf_counter() + until_s
        due = audit_seconds(seconds, self._parameters.audits)
        is_due = False
        while self.second < seconds and (self.second == 0 or time.perf_counter() < deadline):
            self._pass()
            is_due |= self.second in due
            if is_due and self.devices.is_sure(self.second):
                began = time.perf_counter()
                self.compare_sample()
                deadline += time.perf_counter() - began
                is_due = False
            progress(self._name, self.second, seconds)

    def _pass(self) -> None:
        """Let a second pass."""
        self.second += 1
        engine = self.devices.engine
        gone = engine.advance(1000 * self.second)
        if self._window is Window.SECONDS:
            gone = self._workload.ending(self.second)
        if len(gone):
            self.audit.remove(gone)
            self.devices.lose()
        part = self._workload.part(self.second)
        if part.stop > part.start:
            self.devices.learn(self._publish(engine))
        self.devices.move(self.second, *self._workload.trajectories.at(self.second))

    def _publish(self, engine: Engine) -> Published:
        """Publish the objects of this second."""
        objects, expiry_ms = self._workload.arriving(self.second)
        if self._window is not Window.LIFETIMES:
            expiry_ms = np.full_like(expiry_ms, FOREVER)
        self.audit.publish(objects)
        if self._window is Window.COUNT:
            self.audit.remove(self._workload.crowded_out(self.second, self._parameters.objects))
        created_ms = self._workload.created_ms[self._workload.part(self.second)]
        return engine.publish(objects, expiry_ms, created_ms=created_ms)

    def _lasts(self) -> Lasts:
        """Return the windows of subscriptions."""
        lasts = Lasts.none(len(self._workload.drawn.handles))
        if self._window is Window.SECONDS:
            lasts.duration_ms[:] = self._workload.expiry_ms[0] - self._workload.created_ms[0]
        if self._window is Window.COUNT:
            lasts.count[:] = self._parameters.objects
        return lasts

    def compare_sample(self) -> None:
        """Audit some devices in their current state."""
        count = len(self._workload.drawn.handles)
        self.devices.compare(self.audit, sample(count, self._parameters.audited, self._chance))

    def figures(self, sizes: WireSizes) -> Row:
        """Return the measurements, per device and hour."""
        traffic, seconds = self.devices.traffic, len(self._workload.drawn.handles) * self.second
        return {
            **traffic.figures(sizes, seconds),
            **self.devices.fixes.figures(seconds),
            "held": round(self.devices.held(), 1),
            "lists_audited": self.audit.lists,
            "mismatches": self.audit.mismatches,
        }


class SilenceBenchmark(Benchmark[SilenceParameters]):
    """Measure ways of keeping devices exact, all on one workload."""

    VARIANTS = tuple(VARIANTS)

    @classmethod
    def check(cls, variant: str, parameters: SilenceParameters) -> None:
        """Require a window for variants that have one."""
        if VARIANTS[variant].window is not Window.LIFETIMES and not parameters.window_s:
            raise BenchError(f"variant is {variant!r}, which needs window_s above 0")

    def workload(self, parameters: SilenceParameters) -> tuple[SilenceWorkload, WireSizes]:
        """Return the workload of a series, which is drawn once, and the sizes of its messages."""
        whole = self.whole(parameters, "devices")

        def make() -> tuple[SilenceWorkload, WireSizes]:
            data = source(whole.data)
            offsets_m = offsets(whole.trajectories, whole.seconds, whole.seed)
            drawn = prepare(data, offsets_m, whole)
            return drawn, wire_sizes(data, drawn.objects, whole.seed)

        workload, sizes = self.kept("workload", whole, make)
        return workload.first(parameters.devices), sizes

    def trial(self, variant: str, parameters: SilenceParameters) -> Estimate | None:
        """Let one device, and then several devices, move for some seconds."""
        if not VARIANTS[variant].is_slow:
            return None
        workload, _ = self.workload(parameters)
        seconds = min(_TRIAL_SECONDS, parameters.seconds)
        small = parameters.changed(audited=1, audits=1)
        spent_s = []
        for devices in (1, _TRIAL_DEVICES):
            run = SilenceRun(VARIANTS[variant], workload.first(devices), small)
            began_s = time.perf_counter()
            run.go(seconds, parameters.budget_s, silent)
            spent_s.append((time.perf_counter() - began_s) * parameters.seconds / seconds)
        each_s = max(0.0, spent_s[1] - spent_s[0]) / (_TRIAL_DEVICES - 1)
        return lambda other: spent_s[0] + float(other.devices * each_s)

    def smaller(self, variant: str, parameters: SilenceParameters) -> SilenceParameters | None:
        """Return parameters with half as many devices, for a slow variant; None otherwise."""
        if not VARIANTS[variant].is_slow or parameters.devices <= _TRIAL_DEVICES:
            return None
        return parameters.changed(devices=parameters.devices // 2)

    def measure(self, variant: str, parameters: SilenceParameters) -> list[Row]:
        """Let time pass; if it takes too long, the row has the number of seconds that were run."""
        way = VARIANTS[variant]
        workload, sizes = self.workload(parameters)
        run = SilenceRun(way, workload, parameters)
        run.go(parameters.seconds, parameters.budget_s, self.progress)
        names = ("devices", "objects", "window_s", "arrivals_per_s", "expiries_per_s", "k_max")
        return [
            {
                **{name: getattr(parameters, name) for name in names},
                "seconds": run.second,
                "buffer_extra": way.buffer_extra,
                **run.figures(sizes),
            }
        ]
