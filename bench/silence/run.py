"""`bench silence`: how often devices speak, and what they are sent.

Every second objects expire, objects arrive, and every device moves and looks at what it holds. There is
no server process: the engine says what would be sent, and messages are counted. What a device is sent
when it subscribes is not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench.audits import Audit, sample
from bench.datasets import SOURCES
from bench.engines import subscribe
from bench.errors import BenchError
from bench.reports import Progress, Row
from bench.silence.devices import Devices
from bench.silence.variants import VARIANTS, Variant, Window
from bench.silence.wire_sizes import WireSizes, wire_sizes
from bench.silence.workload import FOREVER, SilenceParameters, SilenceWorkload, prepare
from bench.trajectories import offsets
from bench.variants import chosen
from engine import Engine, Positions, Published
from engine.windows import Lasts
from safe_region.scoring import Similarity

_TRIAL_DEVICES = 16
_TRIAL_SECONDS = 30
_HOUR_S = 3600.0


def measure(
    variant: Variant,
    workload: SilenceWorkload,
    parameters: SilenceParameters,
    sizes: WireSizes,
    budget_s: float,
    progress: Progress,
) -> Row:
    """Run a variant.

    Parameters
    ----------
    variant
        What is measured.
    workload, parameters
        What happens; a slow variant takes the first devices only, by halves, if the time does not do.
    sizes
        Of messages.
    budget_s
        How long the run may take; when it is over, the row says how many seconds were run.
    progress
        Is told how far it is.
    """
    devices = len(workload.drawn.handles)
    if variant.is_slow and devices > _TRIAL_DEVICES:
        devices = _affordable(variant, workload, parameters, budget_s)
    run = SilenceRun(variant, workload.first(devices), parameters)
    run.go(parameters.seconds, budget_s, progress)
    return {
        "variant": variant.name,
        "devices": devices,
        "seconds": run.second,
        "objects": parameters.objects,
        "window_s": parameters.window_s,
        "arrivals_per_s": parameters.arrivals_per_s,
        "expiries_per_s": parameters.expiries_per_s,
        "k_max": parameters.k_max,
        "buffer_extra": variant.buffer_extra,
        **run.figures(sizes),
    }


def _affordable(
    variant: Variant, workload: SilenceWorkload, parameters: SilenceParameters, budget_s: float
) -> int:
    """Halve the number of devices until what two trial runs extrapolate to fits the time."""
    seconds = min(_TRIAL_SECONDS, parameters.seconds)
    parameters_of_trial = replace(parameters, audited=1, audits=1)
    spent = []
    for devices in (1, 1, _TRIAL_DEVICES):  # the first run compiles kernels
        run = SilenceRun(variant, workload.first(devices), parameters_of_trial)
        began = time.perf_counter()
        run.go(seconds, budget_s, lambda _stage, _done, _total: None)
        spent.append((time.perf_counter() - began) * parameters.seconds / seconds)
    fixed_s = spent[1]
    per_device_s = max(0.0, spent[2] - fixed_s) / (_TRIAL_DEVICES - 1)
    devices = len(workload.drawn.handles)
    while devices > _TRIAL_DEVICES and fixed_s + devices * per_device_s > budget_s:
        devices //= 2
    return devices


class SilenceRun:
    """One variant on one workload.

    Parameters
    ----------
    variant
        What is measured.
    workload, parameters
        What happens.
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
        """Publish what is there and evaluate all subscriptions."""
        engine = variant.make(self._workload.data)
        self._publish(engine)
        drawn = self._workload.drawn
        subscribe(engine, drawn, variant.region, self._lasts())
        engine.evaluate(Positions(drawn.handles, drawn.x_m, drawn.y_m))
        return variant.devices(engine, self._workload)

    def go(self, seconds: int, until_s: float, progress: Progress) -> None:
        """Let so many seconds pass, or as many as there is time for; audit on the way, which is free."""
        deadline = time.perf_counter() + until_s
        audits = self._parameters.audits
        due = {max(1, seconds * number // audits) for number in range(1, audits + 1)}
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
        """Publish what arrives at this second."""
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
        """Audit some devices as they are."""
        count = len(self._workload.drawn.handles)
        self.devices.compare(self.audit, sample(count, self._parameters.audited, self._chance))

    def figures(self, sizes: WireSizes) -> Row:
        """Summarise, per device and hour."""
        traffic = self.devices.traffic
        device_seconds = len(self._workload.drawn.handles) * self.second
        counts = {
            "reports": traffic.reports,
            "objects": traffic.objects,
            "pushes": traffic.pushes,
            "questions": traffic.location_requests,
            "answers": traffic.answers,
            "drops": traffic.drops,
        }
        hours = device_seconds / _HOUR_S
        row: Row = {f"{name}_per_device_hour": round(count / hours, 2) for name, count in counts.items()}
        up = sizes.up(traffic.reports + traffic.answers, traffic.deltas)
        down = sizes.down(traffic.deltas, traffic.objects, traffic.drops, traffic.location_requests)
        row |= {"bytes_up": round(up / hours, 1), "bytes_down": round(down / hours, 1)}
        row["held"] = round(self.devices.held(), 1)
        row["stale_share"] = round(traffic.stale / device_seconds, 4)
        row |= {"lists_audited": self.audit.lists, "mismatches": self.audit.mismatches}
        return row


def run(
    progress: Progress,
    *,
    variants: Sequence[str],
    data: str,
    trajectories: str,
    similarity: str,
    budget_s: float,
    **shape: Any,  # noqa: ANN401
) -> list[Row]:
    """Run variants on one workload; `shape` are fields of SilenceParameters.

    Raises
    ------
    BenchError
        If a variant is not known, a file is not there, or no taxi trace is as long as the run.
    """
    wanted = chosen(variants, VARIANTS)
    source = SOURCES[data]()
    parameters = SilenceParameters(similarity=Similarity[similarity.upper()], **shape)
    if not parameters.window_s:
        wanted = _without_windows(wanted, variants)
    elif parameters.arrivals_per_s or parameters.expiries_per_s:
        raise BenchError(
            "window_s says how many objects come and go: arrivals_per_s, expiries_per_s must be 0"
        )
    offsets_m = offsets(trajectories, parameters.seconds, parameters.seed)
    workload = prepare(source, offsets_m, parameters)
    sizes = wire_sizes(source, workload.objects, parameters.seed)
    given = {"experiment": "silence", "data": source.name, "trajectories": trajectories}
    rows: list[Row] = []
    for number, name in enumerate(wanted):
        progress("variants", number, len(wanted))
        rows.append(given | measure(VARIANTS[name], workload, parameters, sizes, budget_s, progress))
    progress("variants", len(wanted), len(wanted))
    return rows


def _without_windows(wanted: Sequence[str], named: Sequence[str]) -> list[str]:
    """Return the variants that need no window; whoever names another is told."""
    for name in named:
        if VARIANTS[name].window is not Window.LIFETIMES:
            raise BenchError(f"variant is {name!r}, which needs window_s above 0")
    return [name for name in wanted if VARIANTS[name].window is Window.LIFETIMES]
