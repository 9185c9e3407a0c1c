"""Parameters of subscriptions."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from safe_region.scoring.formulas import SET_SIMILARITIES
from simulator.parameters.declared import Parameters

_ORDERED = (
    ("subscription_keywords_min", "subscription_keywords_max"),
    ("k_min", "k_max"),
    ("alpha_min", "alpha_max"),
    ("range_area_min", "range_area_max"),
)


class SubscriptionParameters(Parameters):
    """Subscriptions of both kinds."""

    subscriptions_per_device: int = Field(1, ge=1, le=100, description="Subscriptions per device.")
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
    window_s: float | None = Field(
        None,
        ge=1,
        le=31_536_000,
        description="Length of all windows in seconds; by default lengths differ.",
    )
    window_count: int | None = Field(
        None,
        ge=1,
        le=100_000_000,
        description="Number of objects of all windows; by default numbers differ.",
    )
    stationary_share: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Share of the top-k subscriptions that are stationary; the others move with their "
        "devices.",
    )
    subscription_keywords_min: int = Field(
        1, ge=1, le=16, description="Minimum number of keywords of a subscription."
    )
    subscription_keywords_max: int = Field(
        5, ge=1, le=16, description="Maximum number of keywords of a subscription; numbers are uniform."
    )
    k_min: int = Field(1, ge=1, le=100, description="Minimum k.")
    k_max: int = Field(10, ge=1, le=100, description="Maximum k; uniform.")
    alpha_min: float = Field(
        0.05, ge=0.001, le=0.999, description="Minimum alpha; uniform in (0, 1), then clamped."
    )
    alpha_max: float = Field(0.95, ge=0.001, le=0.999, description="Maximum alpha.")
    similarity: str = Field(
        "jaccard", description="Text similarity of top-k subscriptions: jaccard, dice or cosine."
    )
    tfidf_share: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Share of the top-k subscriptions with tf-idf as text similarity.",
    )
    moving_share: float = Field(
        0.25,
        ge=0,
        le=1,
        description="Share of the ranges that move with their devices; the others are fixed.",
    )
    fixed_rectangle_share: float = Field(
        2.0 / 3.0,
        ge=0,
        le=1,
        description="Share of rectangles among the fixed ranges; the others are circles.",
    )
    moving_rectangle_share: float = Field(
        0.32,
        ge=0,
        le=1,
        description="Share of rectangles among the moving ranges; the others are circles.",
    )
    range_area_min: float = Field(
        0.0001,
        ge=1e-9,
        le=1,
        description="Minimum range of a boolean subscription, as a fraction of the area.",
    )
    range_area_max: float = Field(
        0.01, ge=1e-9, le=1, description="Maximum range, as a fraction of the area; uniform."
    )
    range_aspect_max: float = Field(
        1.0,
        ge=1,
        le=100,
        description="Maximum ratio of the sides of fixed rectangles.",
    )
    either_share: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Share of OR expressions among those with several keywords.",
    )
    excluding_share: float = Field(
        0.2, ge=0, le=1, description="Share of the expressions that exclude an offer keyword."
    )

    @field_validator("similarity")
    @classmethod
    def _know_similarity(cls, name: str) -> str:
        known = [one.name.lower() for one in SET_SIMILARITIES]
        if name not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return name

    @model_validator(mode="after")
    def _be_ordered(self) -> SubscriptionParameters:
        for low, high in _ORDERED:
            lower, upper = getattr(self, low), getattr(self, high)
            if lower > upper:
                raise ValueError(f"{low} is {lower}, must be at most {high}, which is {upper}")
        if (total := self.either_share + self.excluding_share) > 1.0:
            raise ValueError(f"either_share + excluding_share is {total}, must be at most 1")
        if self.window_s is not None and self.window_count is not None:
            raise ValueError(f"window_s is {self.window_s}, which excludes a window_count")
        return self
