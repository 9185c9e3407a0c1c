"""Errors of a simulation in a folder."""


class SimulationError(Exception):
    """A folder does not contain a valid simulation; the message names the problem."""


class StageError(OSError):
    """A stage could not be finished; the message names it and the reason. None of its output remains."""
