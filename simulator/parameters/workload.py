"""What is published, and who subscribes to what."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from safe_region.scoring import SET_SIMILARITIES
from simulator.parameters.declared import Parameters

_TTL_S_MAX = 31_536_000


class WorkloadParameters(Parameters):
    """Objects with lifetimes, and subscriptions of both kinds."""

    objects: int = Field(3_000, ge=1, le=10_000_000, description="Objects alive at the start.")
    arrivals_per_s: float = Field(
        2.0, ge=0, le=100_000, description="Objects published a second (Poisson)."
    )
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
    subscriptions_per_device: int = Field(1, ge=1, le=100, description="Subscriptions of a device.")
    boolean_share: float = Field(
        0.4,
        ge=0,
        le=1,
        description="Share of the subscriptions that are boolean: an expression and a range; the others "
        "are top-k.",
    )
    window_share: float = Field(
        0.3,
        ge=0,
        le=1,
        description="Share of the subscriptions that have a window: only the latest objects count.",
    )
    standing_share: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Share of the top-k subscriptions that stand at a place, the others move with their "
        "devices.",
    )
    subscription_keywords_max: int = Field(
        5, ge=1, le=16, description="Most keywords of a subscription; uniform from 1."
    )
    k_max: int = Field(10, ge=1, le=100, description="Largest k; uniform from 1.")
    alpha_min: float = Field(
        0.05, ge=0.001, le=0.999, description="Least preference; uniform in (0, 1), then clamped."
    )
    alpha_max: float = Field(0.95, ge=0.001, le=0.999, description="Largest preference.")
    similarity: str = Field(
        "jaccard", description="Text similarity of top-k subscriptions: jaccard, dice or cosine."
    )
    tfidf_share: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Share of the top-k subscriptions that compare texts by tf-idf instead.",
    )
    range_area_min: float = Field(
        0.0001,
        ge=1e-9,
        le=1,
        description="Least range of a boolean subscription, as a share of the area.",
    )
    range_area_max: float = Field(
        0.01, ge=1e-9, le=1, description="Largest range, as a share of the area; uniform between them."
    )

    @field_validator("similarity")
    @classmethod
    def _know_similarity(cls, name: str) -> str:
        known = [one.name.lower() for one in SET_SIMILARITIES]
        if name not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return name

    @model_validator(mode="after")
    def _be_ordered(self) -> WorkloadParameters:
        for low, high in (
            ("ttl_s_min", "ttl_s_max"),
            ("alpha_min", "alpha_max"),
            ("range_area_min", "range_area_max"),
        ):
            lower, upper = getattr(self, low), getattr(self, high)
            if lower > upper:
                raise ValueError(f"{low} is {lower}, must be at most {high}, which is {upper}")
        if (total := self.retracted_share + self.replaced_share) > 1.0:
            raise ValueError(f"retracted_share + replaced_share is {total}, must be at most 1")
        return self
