"""A clause of a boolean expression."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clause:
    """One alternative of a boolean expression: an object that satisfies it matches the expression.

    Parameters
    ----------
    required
        Keywords that an object must have, at least one keyword.
    excluded
        Keywords that an object must not have.
    """

    required: frozenset[str]
    excluded: frozenset[str] = frozenset()
