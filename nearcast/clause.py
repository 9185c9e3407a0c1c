"""A clause: one way to match a boolean expression."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clause:
    """One way to match a boolean expression.

    Parameters
    ----------
    required
        Keywords that an object must have, at least one.
    excluded
        Keywords that it must not have.
    """

    required: frozenset[str]
    excluded: frozenset[str] = frozenset()
