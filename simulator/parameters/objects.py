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
        description="Where objects come from: places of the map, texts of a file, or synthetic ones: "
        "drawn keywords in clusters. Texts if there is a file of them, else places, if nothing is said.",
    )
    objects: int = Field(3_000, ge=1, le=10_000_000, description="Objects alive at the start.")
    arrivals_per_s: float = Field(
        2.0, ge=0, le=100_000, description="Objects published a second (Poisson); of a rhythm the mean."
    )
    rhythm: Literal["flat", "daily"] = Field(
        "flat",
        description="Whether as many objects arrive at all times, or few at night and most in the "
        "evening, by the hours of UTC.",
    )
    hot_spots: int = Field(
        0, ge=0, le=10_000, description="Places where many objects arrive for some time."
    )
    hot_share: float = Field(
        0.3, ge=0, le=1, description="Share of the arrivals that are at a hot spot, if there is one."
    )
    hot_spot_m: float = Field(
        200.0, ge=1, le=50_000, description="How far objects of a hot spot lie from its middle, usually."
    )
    hot_spot_s: float = Field(600.0, ge=1, le=86_400, description="Seconds that a hot spot lasts.")
    ttl_s_mean: float = Field(
        1_500.0,
        ge=1,
        le=_TTL_S_MAX,
        description="Mean lifetime in seconds, exponential. With the default as many objects expire as "
        "are published.",
    )
    ttl_s_min: float = Field(30.0, ge=1, le=_TTL_S_MAX, description="Least lifetime in seconds.")
    ttl_s_max: float = Field(14_400.0, ge=1, le=_TTL_S_MAX, description="Longest lifetime in seconds.")
    offer_share: float = Field(
        0.5, ge=0, le=1, description="Share of the objects that carry one more word for their offer."
    )
    retracted_share: float = Field(
        0.05, ge=0, le=1, description="Share of the objects that are taken back while they live."
    )
    replaced_share: float = Field(
        0.05, ge=0, le=1, description="Share of the objects that are replaced under the same key."
    )
    vocabulary: int = Field(
        50_000, ge=1, le=10_000_000, description="Different keywords of synthetic objects."
    )
    zipf: float = Field(
        1.0,
        ge=0,
        le=4,
        description="How unequally often these come: the keyword of rank r as 1 / r to this power.",
    )
    object_keywords_mean: float = Field(
        5.0, ge=1, le=32, description="Mean number of keywords of a synthetic object; at most twice that."
    )
    clusters: int = Field(60, ge=1, le=1_000_000, description="Clusters of synthetic objects.")
    cluster_m: float = Field(
        1_000.0,
        ge=1,
        le=100_000,
        description="How far synthetic objects lie from the middle of their cluster, usually.",
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
