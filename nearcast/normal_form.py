"""Convert expressions to disjunctive normal form.

A clause is an integer here, a set of bits: bit 2i requires keyword i, and bit 2i + 1 excludes it. A
disjunction is a set of clauses. No clause contradicts itself, and none implies another.

    A OR A AND B    A           a clause that implies another one is dropped
    A AND NOT A     nothing     a clause that contradicts itself is dropped; other clauses remain

A product of disjunctions is as long as the product of their lengths, until clauses are dropped. Two
bounds limit the work for any expression: no intermediate disjunction is longer than `INTERMEDIATE_MAX`,
and no expression takes more than `STEPS_MAX` unions and comparisons of two clauses.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from nearcast.clause import Clause

INTERMEDIATE_MAX = 4096
"""Clauses of an intermediate disjunction: 12 alternatives of two have that many. The final disjunction is
far shorter."""

STEPS_MAX = 1_000_000
"""Half a second on a slow core. An expression of 64 clauses seldom takes more than a few thousand."""

Clauses = set[int]


class TooManyClausesError(Exception):
    """The normal form of an expression exceeds the bounds."""


class NormalForm:
    """Keywords of one expression, and operations on its disjunctions."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._required = 0
        self._steps = 0

    def literal(self, keyword: str, *, is_excluded: bool = False) -> Clauses:
        """Return one clause with one keyword."""
        number = self._numbers.setdefault(keyword, len(self._numbers))
        self._required |= 1 << 2 * number
        return {1 << 2 * number + is_excluded}

    def any_of(self, parts: Iterable[Clauses]) -> Clauses:
        """Return a disjunction that matches if at least one part matches."""
        return self._absorbed(set().union(*parts))

    def all_of(self, parts: Iterable[Clauses]) -> Clauses:
        """Return a disjunction that matches if all parts match.

        The shortest part comes first: its clauses absorb others.
        """
        found = {0}
        for part in sorted(parts, key=len):
            found = self._product(found, part)
        return found

    def clauses(self, found: Clauses) -> tuple[Clause, ...]:
        """Return clauses as keywords, sorted."""
        keywords = list(self._numbers)

        def chosen(bits: int) -> frozenset[str]:
            return frozenset(keyword for i, keyword in enumerate(keywords) if bits >> 2 * i & 1)

        clauses = [Clause(chosen(one), chosen(one >> 1)) for one in found]
        return tuple(sorted(clauses, key=lambda one: (sorted(one.required), sorted(one.excluded))))

    def _product(self, left: Clauses, right: Clauses) -> Clauses:
        found: Clauses = set()
        for one in right:
            self._spend(len(left))
            both = (one | other for other in left)
            found.update(clause for clause in both if not clause & clause >> 1 & self._required)
            if len(found) > INTERMEDIATE_MAX:
                found = self._absorbed(found)
        return self._absorbed(found)

    def _absorbed(self, clauses: Clauses) -> Clauses:
        """Drop each clause that has all bits of another, smaller clause."""
        kept: list[int] = []
        for _, alike in groupby(sorted(clauses, key=int.bit_count), key=int.bit_count):
            shorter = tuple(kept)
            for one in alike:
                self._spend(len(shorter))
                if not any(other & one == other for other in shorter):
                    kept.append(one)
        if len(kept) > INTERMEDIATE_MAX:
            raise TooManyClausesError
        return set(kept)

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > STEPS_MAX:
            raise TooManyClausesError
