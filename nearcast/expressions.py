"""Placeholder until the branch with the grammar is merged."""

from __future__ import annotations

from collections.abc import Collection

from nearcast.errors import invalid
from nearcast.model import Clause


def clauses_of(expression: str | Collection[str] | Collection[Clause]) -> tuple[Clause, ...]:
    """Return the clauses of an expression."""
    if isinstance(expression, str):
        raise invalid("spec.boolean.expression", expression, "a set")
    if isinstance(expression, tuple) and all(isinstance(one, Clause) for one in expression):
        return expression
    return (Clause(frozenset(expression)),)
