"""What is wrong with a simulation in a folder."""


class SimulationError(Exception):
    """A folder that does not hold a simulation; the message names what is wrong with it."""


class StageError(OSError):
    """A stage that could not be finished; the message names it and the reason. Nothing of it remains."""
