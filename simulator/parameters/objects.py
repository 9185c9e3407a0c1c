"""Parameters of the published objects: contents, positions and times."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from simulator.parameters.declared import Parameters

_TTL_S_MAX = 31_536_000


class ObjectParameters(Parameters):
    """Objects: their source, arrivals and lifetimes."""

    object_source: Literal["places", "texts", "synthetic"] | None = Field(
        None,
        description="Source of objects: places of the map, texts of a file, or synthetic objects with "
        "drawn keywords in clusters. By default texts if there is a file of texts, "
        "otherwise places.",
    )
    objects: int = Field(3_000, ge=1, le=10_000_000, description="Objects alive at the start.")
    arrivals_per_s: float = Field(
        2.0,
        ge=0,
        le=100_000,
        description="Objects published per second (Poisson); with a rhythm, the mean.",
    )
    rhythm: Literal["flat", "daily"] = Field(
        "flat",
        description="Rhythm of arrivals: constant, or with few objects at night and most in the "
        "evening, by the hours of UTC.",
    )
    hot_spots: int = Field(
        0, ge=0, le=10_000, description="Number of hot spots, where many objects arrive for some time."
    )
    hot_share: float = Field(
        0.3, ge=0, le=1, description="Share of the arrivals at hot spots, while there is one."
    )
    hot_spot_m: float = Field(
        200.0,
        ge=1,
        le=50_000,
        description="Standard deviation, on each axis, of objects around the middle of a hot spot.",
    )
    hot_spot_s: float = Field(600.0, ge=1, le=86_400, description="Duration of a hot spot in seconds.")
    ttl_s_mean: float = Field(
        1_500.0,
        ge=1,
        le=_TTL_S_MAX,
        description="Mean lifetime in seconds, exponential. With the default, objects expire at the "
        "rate of publication.",
    )
    ttl_s_min: float = Field(30.0, ge=1, le=_TTL_S_MAX, description="Minimum lifetime in seconds.")
    ttl_s_max: float = Field(14_400.0, ge=1, le=_TTL_S_MAX, description="Maximum lifetime in seconds.")
    offer_share: float = Field(
        0.5, ge=0, le=1, description="Share of the objects with an additional keyword for their offer."
    )
    retracted_share: float = Field(
        0.05, ge=0, le=1, description="Share of the objects that are retracted before they expire."
    )
    replaced_share: float = Field(
        0.05, ge=0, le=1, description="Share of the objects that are replaced, with the same key."
    )
    vocabulary: int = Field(
        50_000, ge=1, le=10_000_000, description="Number of different keywords of synthetic objects."
    )
    zipf: float = Field(
        1.0,
        ge=0,
        le=4,
        description="Exponent of the Zipf distribution of these keywords: the keyword of rank r has the "
        "frequency 1 / r to this power.",
    )
    object_keywords_mean: float = Field(
        5.0,
        ge=1,
        le=32,
        description="Mean number of keywords of a synthetic object; the maximum is twice the mean.",
    )
    clusters: int = Field(60, ge=1, le=1_000_000, description="Number of clusters of synthetic objects.")
    cluster_m: float = Field(
        1_000.0,
        ge=1,
        le=100_000,
        description="Standard deviation, on each axis, of synthetic objects around the middle of their "
        "cluster.",
    )

    @model_validator(mode="after")
    def _be_possible(self) -> ObjectParameters:
        if self.ttl_s_min > self.ttl_s_max:
            raise ValueError(
                f"ttl_s_min is {self.ttl_s_min}, must be at most ttl_s_max, which is {self.ttl_s_max}"
            )
        if (total := self.retracted_share + self.replaced_share) > 1.0:
            raise ValueError(f"retracted_share + replaced_share is {total}, must be at most 1")
        return self
