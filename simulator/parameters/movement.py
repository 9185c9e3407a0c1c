"""Who moves, and how."""

from __future__ import annotations

from pydantic import Field, model_validator

from simulator.parameters.declared import Parameters

DEVICES_MAX = 1_000_000
"""Device ids have six digits."""

SLICE_ROWS = 4_000_000
"""About the rows of a slice of the trajectories: what a replay holds in memory at a time."""


class MovementParameters(Parameters):
    """Devices, their classes and speeds, and when positions are noted."""

    devices: int = Field(500, ge=1, le=DEVICES_MAX, description="Devices that move.")
    seconds: int = Field(600, ge=1, le=86_400, description="Simulated time.")
    period_ms: int = Field(
        1_000, ge=100, le=60_000, description="Milliseconds between two positions of a device."
    )
    start_ms: int = Field(
        1_767_225_600_000, ge=0, le=2**53, description="Epoch milliseconds of the first position."
    )
    car_share: float = Field(0.6, ge=0, le=1, description="Share of the devices that are cars.")
    bicycle_share: float = Field(
        0.2, ge=0, le=1, description="Share of the devices that are bicycles; the rest walks."
    )
    mobility: float = Field(
        1.0, ge=0, le=1, description="Share of the devices that drive; the others stay where they begin."
    )
    velocity: float = Field(1.0, ge=0.01, le=100, description="Times as fast as roads and classes allow.")
    stop_s_mean: float = Field(
        45.0, ge=1, le=3_600, description="Mean seconds that a device stays at a destination."
    )

    slice_ticks: int | None = Field(
        None,
        ge=1,
        le=10_000_000,
        description="Ticks of a folder of trajectories; as many as make some million rows if not given.",
    )

    @model_validator(mode="after")
    def _fit(self) -> MovementParameters:
        if (total := self.car_share + self.bicycle_share) > 1.0:
            raise ValueError(f"car_share + bicycle_share is {total}, must be at most 1")
        if self.run_ms % self.period_ms:
            raise ValueError(f"period_ms is {self.period_ms}, must divide the run of {self.run_ms} ms")
        return self

    @property
    def run_ms(self) -> int:
        """Length of the run."""
        return self.seconds * 1000

    @property
    def tick_count(self) -> int:
        """How many positions each device has: one per period, both ends included."""
        return self.run_ms // self.period_ms + 1

    @property
    def ticks_of_slice(self) -> int:
        """How many ticks a slice of the trajectories has."""
        return self.slice_ticks or max(1, SLICE_ROWS // self.devices)
