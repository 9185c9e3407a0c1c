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

    query: Query = Field("q3", description="Query; experiments set it.")
    ranges: int = e.count(1, "Stationary ranges.")
    batch: int = e.count(1_000, "Events per batch.", most=100_000)
    events: int = e.count(216_075, "Number of events; all vehicles have equally many, one second apart.")
    vehicles: int = e.count(5, "Number of vehicles.", most=100_000)
    distance_m: float = Field(
        100.0, ge=1.0, le=10_000.0, description="Q3: maximum distance of a vehicle from a point."
    )
    region_m: float = Field(
        100.0, ge=1.0, le=10_000.0, description="Q4: distance from the middle of a region to its corners."
    )
    poi_m: float = Field(
        50.0,
        ge=1.0,
        le=10_000.0,
        description="Q7: maximum distance of a vehicle that passes a point of interest.",
    )
    audited: int = e.count(
        40, "Number of ranges with results that are compared with those of plain Python."
    )

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
                f"{self.vehicles} vehicles: an event per second of a day"
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
    "queries of BerlinMOD against stationary ranges: events per second",
    "bench.berlinmod.run:BerlinModBenchmark",
    BerlinModParameters,
    metrics={
        "events": "events",
        "events_per_s": "events/s",
        "events_per_s_published": "events/s of MobilityFlink",
        "us_per_event": "us per event",
        "answers_per_event": "results per event",
        "build_s": "s",
        "memory_mb": "MB",
    },
    plots=(e.Lines("ranges", ("events_per_s",), by="batch", log="x"),),
    reduced={"events": 50_000, "ranges": (1, 1_000, 100_000), "batch": 1_000, "budget_s": 20},
    about="Vehicles drive through a generated city, with one event per second each. Ranges are "
    "stationary boolean subscriptions in the engine of the server, in one thread. Q3 reports each "
    "event within a distance of a point, Q4 each entry into a region, Q7 the first passage of "
    "each point of interest. For comparison there are the published figures of MobilityFlink: one "
    "range, one task, on a machine with 16 cores. For a sample of the ranges, all results are "
    "compared with those of plain Python.",
    experiments=(
        _experiment("q3", "each event within a distance of a point"),
        _experiment("q4", "each entry into a region"),
        _experiment("q7", "the first passage of points of interest"),
    ),
)
