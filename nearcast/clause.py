"""A clause of a boolean expression."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
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

    Examples
    --------
    ::

        coffee_or_tea = [Clause({"coffee"}, excluded={"decaf"}), Clause({"tea"})]
    """

    required: AbstractSet[str]
    excluded: AbstractSet[str] = frozenset()
