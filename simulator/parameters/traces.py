"""Parameters of real traces: cleaning, cutting, sampling and matching."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import Field, field_validator, model_validator

from safe_region.earth.frame import Area, Frame
from simulator.parameters.declared import Parameters
from simulator.parameters.places import PlaceParameters
from simulator.parameters.workload import WorkloadParameters

TRIP, VEHICLE = "trip", "vehicle"
CLOCK, START = "clock", "start"


class TraceOptions(Parameters):
    """Options for the conversion of points of files to positions at ticks."""

    columns: str | None = Field(
        None,
        description="Names of the columns, in order and separated by commas, for CSV files without a "
        "header, or in place of the names in Parquet files: time, lon, lat, vehicle, trip; "
        "columns with other names are ignored.",
    )
    area: str | None = Field(
        None,
        description="Area if there is no map: west,south,east,north in degrees; other points are "
        "dropped. By default the area that contains nearly all points.",
    )
    by: str = Field(
        TRIP,
        description="Unit that becomes a device: a trip of a vehicle, if files distinguish trips, or a "
        "vehicle. Both end at a gap in time.",
    )
    period_ms: int | None = Field(
        None,
        ge=100,
        le=3_600_000,
        description="Milliseconds between two positions of a device; by default the median of the files.",
    )
    gap_s: float = Field(
        300.0, ge=1, le=86_400, description="Gap in seconds after which a new trace starts."
    )
    speed_mps_max: float = Field(
        50.0,
        ge=1,
        le=1_000,
        description="Maximum speed; points that cannot be reached at this speed are dropped.",
    )
    points_min: int = Field(2, ge=2, le=10_000, description="Traces with fewer points are dropped.")
    align: str = Field(
        CLOCK,
        description="Whether devices keep their times (clock), or all start at the first tick (start).",
    )
    begin: str | None = Field(
        None, description="Points before this time are omitted: ISO 8601, UTC by default."
    )
    end: str | None = Field(None, description="Points from this time on are omitted.")
    polyline_step_s: float = Field(
        15.0,
        ge=0.1,
        le=3_600,
        description="Seconds between the points of a row that holds a whole trip (a column polyline).",
    )
    match: bool = Field(
        True, description="Whether traces are matched to the roads of the map, if there is one."
    )
    mode: str = Field(
        "car", description="Class of the roads to which points are matched: car, bicycle or pedestrian."
    )
    match_radius_m: float = Field(
        50.0, ge=1, le=1_000, description="Maximum distance of a point from its road."
    )
    match_sigma_m: float = Field(
        10.0, ge=0.1, le=500, description="Standard deviation of positions from their road."
    )
    match_beta_m: float = Field(
        40.0,
        ge=0.1,
        le=5_000,
        description="Mean difference between the route and the straight line between two points.",
    )

    @field_validator("by", "align", "mode")
    @classmethod
    def _be_known(cls, value: str, info: object) -> str:
        known = {"by": (TRIP, VEHICLE), "align": (CLOCK, START), "mode": ("car", "bicycle", "pedestrian")}
        allowed = known[getattr(info, "field_name", "")]
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return value

    @field_validator("begin", "end")
    @classmethod
    def _be_a_time(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                datetime.fromisoformat(value)
            except ValueError:
                raise ValueError("must be a time such as 2008-05-18 or 2008-05-18T07:00:00Z") from None
        return value

    @field_validator("area")
    @classmethod
    def _be_an_area(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                area = Area(*map(float, value.split(",")))
            except (TypeError, ValueError):
                raise ValueError("must be west,south,east,north in degrees") from None
            Frame.of(area)
        return value

    @model_validator(mode="after")
    def _end_after_the_begin(self) -> TraceOptions:
        begin_ms, end_ms = self.begin_ms, self.end_ms
        if begin_ms is not None and end_ms is not None and begin_ms >= end_ms:
            raise ValueError(f"begin is {self.begin}, must be before end, which is {self.end}")
        return self

    @property
    def chosen_area(self) -> Area | None:
        """The requested area."""
        return None if self.area is None else Area(*map(float, self.area.split(",")))

    @property
    def begin_ms(self) -> int | None:
        """Epoch milliseconds before which points are left out."""
        return _epoch_ms(self.begin)

    @property
    def end_ms(self) -> int | None:
        """Epoch milliseconds from which points are left out."""
        return _epoch_ms(self.end)


class TraceParameters(WorkloadParameters, TraceOptions, PlaceParameters):
    """Everything that determines a simulation made from traces, except the files."""

    arrivals_per_s: float = Field(
        0.1,
        ge=0,
        le=100_000,
        description="Objects published per second (Poisson): fewer than usual, because traces may span "
        "weeks.",
    )

    @model_validator(mode="after")
    def _have_degrees_and_texts(self) -> TraceParameters:
        if self.object_source == "texts" and self.texts_file is None:
            raise ValueError("object_source is texts, which requires a texts_file")
        if self.area is not None and self.map_file is not None:
            raise ValueError(f"area is {self.area}, which excludes a map_file, which has its own area")
        if self.unit_m is not None:
            raise ValueError(
                f"unit_m is {self.unit_m}, but traces are in degrees: a map must be in degrees too"
            )
        return self


def _epoch_ms(value: str | None) -> int | None:
    if value is None:
        return None
    found = datetime.fromisoformat(value)
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return round(found.timestamp() * 1000.0)
