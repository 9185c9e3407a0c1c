"""What a simulation is made from, checked before any work begins.

Equal parameters and maps give equal rows.
"""

from simulator.parameters.declared import ParameterError
from simulator.parameters.movement import MovementParameters
from simulator.parameters.places import PlaceParameters
from simulator.parameters.workload import WorkloadParameters

__all__ = ["ParameterError", "SimulationParameters"]


class SimulationParameters(WorkloadParameters, MovementParameters, PlaceParameters):
    """Everything that determines a simulation."""
