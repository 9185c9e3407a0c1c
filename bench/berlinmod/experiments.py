"""Experiments with three queries of BerlinMOD as a stream, against stationary ranges, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from bench import experiment as e

Query = Literal["q3", "q4", "q7"]

PAIRS_MAX = 400_000_000
"""Limit of vehicles times ranges: the state of all pairs is an array."""
_SECONDS_MAX = 86_400


class BerlinModParameters(e.BudgetParameters):
    """Size and shape of a run."""

    query: Query = Field("q3", description="Which query: experiments say it.")
    ranges: int = e.count(1, "Stationary ranges.")
    batch: int = e.count(1_000, "Events that the engine is given together.", most=100_000)
    events: int = e.count(
        216_075, "How many there are; each vehicle has as many as the others, a second apart."
    )
    vehicles: int = e.count(5, "How many drive.", most=100_000)
    distance_m: float = Field(
        100.0, ge=1.0, le=10_000.0, description="Of Q3: a vehicle is within this of a point."
    )
    region_m: float = Field(
        100.0, ge=1.0, le=10_000.0, description="Of Q4: from the middle of a region to its corners."
    )
    poi_m: float = Field(
        50.0, ge=1.0, le=10_000.0, description="Of Q7: so near has passed a point of interest."
    )
    audited: int = e.count(40, "Ranges whose answers are compared with plain Python's.")

    @model_validator(mode="after")
    def _fit(self) -> BerlinModParameters:
        if self.vehicles * self.ranges > PAIRS_MAX:
            raise ValueError(
                f"ranges is {self.ranges}, must be at most {PAIRS_MAX // self.vehicles:,} with "
                f"{self.vehicles} vehicles"
            )
        if -(-self.events // self.vehicles) > _SECONDS_MAX:
            raise ValueError(
                f"events is {self.events}, must be at most {self.vehicles * _SECONDS_MAX:,} of "
                f"{self.vehicles} vehicles: a day has no more seconds"
            )
        return self


_SIZES = e.Each(e.Over("ranges", (1, 1_000, 100_000, 1_000_000)), e.Over("batch", (1, 1_000)))


def _experiment(query: Query, what: str) -> e.Experiment:
    return e.Experiment(
        query,
        f"BerlinMOD, {query.upper()}",
        f"{what}, by the number of ranges and the size of batches",
        changes={"query": query},
        sweep=_SIZES,
    )


BERLINMOD = e.Suite(
    "berlinmod",
    "queries of BerlinMOD against stationary ranges: events a second",
    "bench.berlinmod.run:BerlinModBenchmark",
    BerlinModParameters,
    metrics={
        "events": "events",
        "events_per_s": "events/s",
        "events_per_s_published": "events/s of MobilityFlink",
        "us_per_event": "us an event",
        "answers_per_event": "answers an event",
        "build_s": "s",
        "memory_mb": "MB",
    },
    plots=(e.Lines("ranges", ("events_per_s",), by="batch", log="x"),),
    reduced={"events": 50_000, "ranges": (1, 1_000, 100_000), "batch": 1_000, "budget_s": 20},
    about="Vehicles drive through a generated city, an event a second each; ranges are boolean "
    "subscriptions that stay, in an engine as the server has it, in one thread. Q3 tells each event "
    "within a distance of a point, Q4 each entry into a region, Q7 the first passage of each point of "
    "interest. MobilityFlink's published figures, one range, one task on a machine of 16 cores, stand "
    "beside. Of a sample of the ranges all answers are compared with plain Python's.",
    experiments=(
        _experiment("q3", "each event within a distance of a point"),
        _experiment("q4", "each entry into a region"),
        _experiment("q7", "the first passage of points of interest"),
    ),
)
