"""What came of a fault."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """What came of one fault."""

    fault: str
    injected: int = 0
    lists: int = 0
    """Lists compared with the oracle's."""
    commands: int = 0
    """Objects accepted and retracted under the load around it."""
    refused: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)
    lost: int = 0
    """Violations that are acknowledged objects or subscriptions that are gone. Of faults of a cluster, as
    what follows."""
    stale: int = 0
    """Violations that are accepted writes of a node that was not the owner any more."""
    writes: int = 0
    """Writes for slots whose owner was compared."""
    exact_s: list[float] = field(default_factory=list)
    """Seconds of each fault until all devices that it left without a server were exact again."""
