"""Parameters of devices and their movement."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from simulator.parameters.declared import Parameters

DEVICES_MAX = 1_000_000
"""Device ids have six digits."""

SLICE_ROWS = 4_000_000
"""About the rows of a slice of the trajectories: a replay holds one slice in memory at a time."""

TRIPS, BRINKHOFF, COMMUTERS = "trips", "brinkhoff", "commuters"
MOVEMENTS = (TRIPS, BRINKHOFF, COMMUTERS)

NETWORK, REGION = "network", "region"
STARTS = (NETWORK, REGION)

_CLASSES_MAX = 8
_KMH_LIMITS = (1.0, 300.0)
_DAY_S = 86_400
_SLOT_S_MIN = 10.0
_SLOTS_MAX = 10_000


def _one_of(known: tuple[str, ...], name: str) -> str:
    if name not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    return name


class MovementParameters(Parameters):
    """Devices, their classes and speeds, and the times of their positions."""

    devices: int = Field(500, ge=1, le=DEVICES_MAX, description="Number of devices.")
    seconds: int = Field(600, ge=1, le=31 * _DAY_S, description="Simulated time.")
    period_ms: int = Field(
        1_000, ge=100, le=3_600_000, description="Milliseconds between two positions of a device."
    )
    start_ms: int = Field(
        1_767_225_600_000, ge=0, le=2**53, description="Epoch milliseconds of the first position."
    )
    movement: str = Field(
        TRIPS,
        description="Movement model: trips (to places, with stops), brinkhoff (the network-based "
        "generator of Brinkhoff, with classes of objects and expected travel times) or "
        "commuters (home, work, errands, days).",
    )
    car_share: float = Field(0.6, ge=0, le=1, description="Share of the devices that are cars.")
    bicycle_share: float = Field(
        0.2, ge=0, le=1, description="Share of the devices that are bicycles; the rest walks."
    )
    mobility: float = Field(
        1.0, ge=0, le=1, description="Share of the devices that move; the others stay at their start."
    )
    velocity: float = Field(
        1.0, ge=0.01, le=100, description="Factor of speeds; 1 is as fast as roads and classes allow."
    )
    stop_s_mean: float = Field(
        45.0, ge=1, le=3_600, description="Mean seconds that a device stays at a destination."
    )
    load_slot_s: float = Field(
        0.0,
        ge=0,
        le=_DAY_S,
        description="Length of a slot in seconds for which load is counted. Speeds depend on the load "
        "in a slot, and routes are chosen again in each slot. 0 for speeds without load.",
    )
    vehicles_per_device: float = Field(
        1.0, ge=0, le=1e6, description="Number of vehicles that a simulated car represents in the load."
    )
    weather: int = Field(
        0,
        ge=0,
        le=100,
        description="Moving rectangles of bad weather, in which all devices are slower.",
    )
    start: str = Field(
        NETWORK,
        description="Starts of the objects of brinkhoff: network (nodes, uniformly) or region (points "
        "of the area, uniformly, moved to the nearest node).",
    )
    class_speeds_kmh: str = Field(
        "130,100,80,60,50,30",
        description="Maximum speeds of brinkhoff's classes of cars in km/h, separated by commas, at "
        f"most {_CLASSES_MAX}.",
    )
    trip_s_mean: float = Field(
        600.0, ge=1, le=_DAY_S, description="Mean travel time that objects of brinkhoff expect."
    )
    appear_share: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of the objects of brinkhoff that appear during the run.",
    )
    vanish: bool = Field(
        default=False, description="Whether objects of brinkhoff disappear at their first destination."
    )
    slice_ticks: int | None = Field(
        None,
        ge=1,
        le=10_000_000,
        description="Ticks per folder of trajectories; by default a folder has some million rows.",
    )

    @field_validator("movement")
    @classmethod
    def _know_movement(cls, name: str) -> str:
        return _one_of(MOVEMENTS, name)

    @field_validator("start")
    @classmethod
    def _know_start(cls, name: str) -> str:
        return _one_of(STARTS, name)

    @field_validator("class_speeds_kmh")
    @classmethod
    def _know_speeds(cls, text: str) -> str:
        low, high = _KMH_LIMITS
        message = f"must be 1 to {_CLASSES_MAX} numbers within {low}..{high}, separated by commas"
        try:
            speeds = [float(one) for one in text.split(",")]
        except ValueError:
            raise ValueError(message) from None
        if len(speeds) > _CLASSES_MAX or not all(low <= one <= high for one in speeds):
            raise ValueError(message)
        return text

    @model_validator(mode="after")
    def _fit(self) -> MovementParameters:
        if (total := self.car_share + self.bicycle_share) > 1.0:
            raise ValueError(f"car_share + bicycle_share is {total}, must be at most 1")
        if self.run_ms % self.period_ms:
            raise ValueError(f"period_ms is {self.period_ms}, must divide the run of {self.run_ms} ms")
        if 0 < self.load_slot_s < _SLOT_S_MIN:
            raise ValueError(f"load_slot_s is {self.load_slot_s}, must be 0 or at least {_SLOT_S_MIN}")
        if self.load_slot_s * _SLOTS_MAX < self.seconds and self.load_slot_s:
            raise ValueError(
                f"load_slot_s is {self.load_slot_s}, must divide {self.seconds} s into at most "
                f"{_SLOTS_MAX} slots"
            )
        return self

    @property
    def run_ms(self) -> int:
        """Length of the run."""
        return self.seconds * 1000

    @property
    def tick_count(self) -> int:
        """The number of positions of each device: one per period, both ends included."""
        return self.run_ms // self.period_ms + 1

    @property
    def ticks_of_slice(self) -> int:
        """The number of ticks of a slice of the trajectories."""
        return self.slice_ticks or max(1, SLICE_ROWS // self.devices)

    @property
    def class_speeds_kmh_max(self) -> list[float]:
        """The maximum speeds of classes of cars."""
        return [float(one) for one in self.class_speeds_kmh.split(",")]
