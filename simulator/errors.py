"""Errors of a simulation in a folder."""


class SimulationError(Exception):
    """A folder does not contain a valid simulation; the message names the problem."""


class StageError(OSError):
    """A stage could not be finished, or its folder is somebody else's; the message names the reason.

    None of the output of the stage remains.
    """
