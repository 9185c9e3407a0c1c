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
