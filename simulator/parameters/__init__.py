"""The parameters of a simulation, checked before any work starts.

Equal parameters and maps give equal rows.
"""

from __future__ import annotations

from pydantic import model_validator

from simulator.parameters.declared import ParameterError
from simulator.parameters.movement import MovementParameters
from simulator.parameters.places import PlaceParameters
from simulator.parameters.workload import WorkloadParameters

__all__ = ["ParameterError", "SimulationParameters"]


class SimulationParameters(WorkloadParameters, MovementParameters, PlaceParameters):
    """Everything that determines a simulation."""

    @model_validator(mode="after")
    def _have_texts(self) -> SimulationParameters:
        if self.object_source == "texts" and self.texts_file is None:
            raise ValueError("object_source is texts, which requires a texts_file")
        return self
