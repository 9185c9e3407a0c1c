"""Experiments on the report rates of devices, as data."""

from __future__ import annotations

from pydantic import Field, model_validator

from bench import experiment as e


class DrivingParameters(e.DataParameters, e.TrajectoryParameters):
    """Parameters of the suites whose devices drive while objects are published and expire."""

    devices: int = e.count(2_000, "Number of devices, each with one subscription.", most=1_000_000)
    objects: int = e.count(100_000, "Number of objects at the start.")
    seconds: int = e.count(
        600, "Time for which devices move; each checks its region every second.", least=2, most=3_600
    )
    arrivals_per_s: float = Field(0.0, ge=0.0, le=100_000.0, description="Objects published per second.")
    expiries_per_s: float = Field(0.0, ge=0.0, le=100_000.0, description="Objects removed per second.")
    audited: int = e.count(
        40, "Number of devices compared with the oracle at each of some moments.", least=0
    )
    audits: int = e.count(5, "Number of these moments.")


class SilenceParameters(DrivingParameters, e.TopKParameters, e.BudgetParameters):
    """Size and shape of a run."""

    window_s: float = Field(
        0.0,
        ge=0.0,
        le=3_600.0,
        description="Length of the window in seconds; objects arrive by Poisson's law at the rate that "
        "keeps their number, in place of arrivals_per_s and expiries_per_s. 0 for no window.",
    )

    speed_max_mps: float = Field(
        36.0,
        gt=0.0,
        le=350.0,
        description="The highest speed that devices assume of themselves, in metres a second.",
    )

    @model_validator(mode="after")
    def _do_not_contradict(self) -> SilenceParameters:
        if self.window_s and (self.arrivals_per_s or self.expiries_per_s):
            raise ValueError(
                "window_s determines the rates of objects: arrivals_per_s and expiries_per_s must be 0"
            )
        return self


TRAFFIC = {
    "reports_per_device_hour": "reports",
    "objects_per_device_hour": "objects",
    "pushes_per_device_hour": "deltas",
    "questions_per_device_hour": "location requests",
    "positions_per_device_hour": "positions",
    "bytes_up": "bytes per device and hour",
    "bytes_down": "bytes per device and hour, without payloads",
    "stale_share": "of the time with a wrong result",
}
"""Metrics of devices, with their units."""

_FIXES = {
    "fixes_per_device_hour": "fixes",
    "wake_ups_per_device_hour": "messages that wake a device",
    "reports_without_fix": "reports of devices that would not have looked",
}

_LIFETIMES = (
    *("asr", "lsr", "set-constant"),
    *(f"anchored-{extra}" for extra in (0, 2, 5, 10, 20)),
    *("anchored-cost", "anchored-cost-ahead", "anchored-10-unpruned", "anchored-cost-ahead-unpruned"),
    *("periodic-1", "periodic-5", "periodic-30"),
)

SILENCE = e.Suite(
    "silence",
    "reports of devices and messages to them, per device and hour",
    "bench.silence.run:SilenceBenchmark",
    SilenceParameters,
    metrics={
        "devices": "devices",
        "objects": "objects",
        "seconds": "s",
        "held": "objects",
        **TRAFFIC,
        **_FIXES,
    },
    plots=(e.Scatter("reports_per_device_hour", "objects_per_device_hour", r"anchored-[\d.]+$"),),
    reduced={
        "devices": 500,
        "seconds": 300,
        "objects": 50_000,
        "arrivals_per_s": 5,
        "expiries_per_s": 5,
        "budget_s": 30,
    },
    experiments=(
        e.Experiment(
            "lifetimes",
            "",
            "all methods of keeping results exact, for objects with lifetimes",
            _LIFETIMES,
        ),
        e.Experiment(
            "windows",
            "",
            "the same for windows of time, compared with lifetimes",
            (*_LIFETIMES, "anchored-cost-ahead-seconds", "anchored-cost-ahead-count"),
            {"window_s": 600.0},
            reduced={"arrivals_per_s": 0, "expiries_per_s": 0, "seconds": 120},
        ),
    ),
    about="Variants: asr, lsr, set-constant (the device reports only when its result set changes), "
    "anchored-0 to anchored-20 (b), anchored-cost and anchored-cost-ahead (b by cost), the same "
    "unpruned (dominated objects are held, too), and with windows of seconds or of a count in "
    "place of lifetimes, periodic-1 to periodic-30 (a position every 1 to 30 seconds; stale_share "
    "is the share of the time with a wrong result). A device finds its position (a fix) when "
    "next_fix_in is over, and after a message or an expiry; with lsr and set-constant at every second, "
    "with periodic ones at their reports. Bytes are those of messages without payloads.",
)
