"""Experiments on the report rates of devices with moving ranges, as data."""

from __future__ import annotations

from pydantic import Field

from bench import experiment as e
from bench.silence.experiments import TRAFFIC, DrivingParameters


class RangesParameters(DrivingParameters):
    """Size and shape of a run."""

    radius_m: float = Field(
        500.0,
        ge=1.0,
        le=50_000.0,
        description="Radius of the ranges, which are circles around the devices.",
    )


RANGES = e.Suite(
    "ranges",
    "reports of devices with moving ranges and messages to them, per device and hour",
    "bench.ranges.run:RangesBenchmark",
    RangesParameters,
    metrics={
        "devices": "devices",
        "objects": "objects",
        **TRAFFIC,
        "server_us_per_device_s": "us per device and second",
    },
    plots=(
        e.Scatter(
            "reports_per_device_hour", "objects_per_device_hour", r"anchored-[\d.]+$", each="radius_m"
        ),
    ),
    reduced={"devices": 200, "seconds": 120, "objects": 20_000, "arrivals_per_s": 5, "expiries_per_s": 5},
    experiments=(
        e.Experiment(
            "radius",
            "",
            "all methods of keeping results exact, by the radius of ranges",
            sweep=e.Over("radius_m", (500.0,)),
        ),
    ),
    about="Each device requests all objects with one or two keywords within a circle around itself. "
    "Variants: set-constant (the device reports only when its result changes), periodic-5 and "
    "periodic-30 (a position every 5 and 30 seconds), ap-plus-periodic-30 (the same with an "
    "AP+-Tree, which pushes new objects), ap-plus-safe (safe regions that end where an object "
    "would enter or leave, and location requests to devices), anchored-0.0625 to anchored-8 (the "
    "slack, in radii), anchored-cost (slack by cost) and anchored-cost-ahead (and anchors ahead, "
    "as the server does). Bytes are those of messages without payloads.",
)
