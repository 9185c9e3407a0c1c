"""Parameters of the published objects and the subscriptions."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from simulator.parameters.objects import ObjectParameters
from simulator.parameters.presets import PRESETS, preset_beside
from simulator.parameters.subscriptions import SubscriptionParameters


class WorkloadParameters(ObjectParameters, SubscriptionParameters):
    """Objects with lifetimes, and subscriptions of both kinds."""

    preset: str | None = Field(
        None,
        description=f"Subscriptions as in a paper's experiments: {', '.join(PRESETS)}. Other options "
        "override it.",
    )

    @model_validator(mode="before")
    @classmethod
    def _begin_with_preset(cls, given: dict[str, Any]) -> dict[str, Any]:
        name = given.get("preset")
        if name is None:
            return given
        if name not in PRESETS:
            raise ValueError(f"preset is {name!r}, must be one of {', '.join(PRESETS)}")
        known = {
            key: value for key, value in preset_beside(name, given).items() if key in cls.model_fields
        }
        return known | given
