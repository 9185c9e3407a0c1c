"""Convert expressions of boolean subscriptions (texts, keywords or clauses) to clauses.

    coffee AND (wifi OR garden) AND NOT "live music"

is the same as the two clauses

    coffee AND garden AND NOT "live music"
    coffee AND wifi AND NOT "live music"

`nearcast.grammar` has the grammar as a table. `nearcast.normal_form` expands products and drops clauses.
Keywords are compared in their normal form. Each clause needs a keyword without NOT: the server finds
objects by the keywords that they have.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from nearcast.clause import Clause
from nearcast.errors import RefusedError, invalid
from nearcast.grammar import (
    FIELD,
    Negated,
    Node,
    Token,
    excerpt,
    keyword_of,
    keyword_text,
    parsed,
    refused,
)
from nearcast.normal_form import Clauses, NormalForm, TooManyClausesError
from safe_region.scoring.keywords import normalised_keyword

CLAUSES_MAX = 64
"""Default of the server's limit `Limits.clauses_max`."""


def clauses_of(
    expression: str | Collection[str] | Collection[Clause], clauses_max: int = CLAUSES_MAX
) -> tuple[Clause, ...]:
    """Return the clauses of an expression. An object must match one of them.

    Parameters
    ----------
    expression
        A text; or keywords, all of which an object must have; or clauses.
    clauses_max
        Largest number of clauses in the result.

    Returns
    -------
    tuple of Clause
        Sorted, with normalised keywords. No clause contradicts itself, and none implies another.

    Raises
    ------
    RefusedError
        If the expression is not well-formed, is too large, can never match, or has a clause without a
        required keyword. For a text the error gives the position of the mistake; the first character
        is 1.
    """
    form = NormalForm()
    text = expression if isinstance(expression, str) else ""
    not_at: dict[str, int] = {}
    try:
        if isinstance(expression, str):
            found = _Reading(text, form, not_at).clauses(parsed(text))
        else:
            found = _given(expression, form)
    except TooManyClausesError:
        raise _too_many(expression, clauses_max) from None
    if len(found) > clauses_max:
        raise _too_many(expression, clauses_max)
    if not found:
        shown = excerpt(text) if text else expression
        limit = "an expression that can match: each alternative requires a keyword and excludes it"
        raise invalid(FIELD, shown, limit)
    clauses = form.clauses(found)
    for clause in clauses:
        if not clause.required:
            raise _only_excluded(text, clause, not_at)
    return clauses


def text_of(clauses: Collection[Clause]) -> str:
    """Format clauses as a text.

    `clauses_of` parses the text of its own result to the same clauses, unless the text is too long to be
    parsed.
    """
    return " OR ".join(_clause_text(clause) for clause in clauses)


def _clause_text(clause: Clause) -> str:
    required = [keyword_text(keyword) for keyword in sorted(clause.required)]
    excluded = [f"NOT {keyword_text(keyword)}" for keyword in sorted(clause.excluded)]
    return " AND ".join(required + excluded)


def _given(expression: Collection[str] | Collection[Clause], form: NormalForm) -> Clauses:
    """Convert keywords or clauses to the normal form."""
    expected = "a text, keywords or clauses"
    if isinstance(expression, bytes) or not isinstance(expression, Collection):
        raise invalid(FIELD, expression, expected)
    if not expression:
        raise invalid(FIELD, expression, f"{expected}; it is empty")
    clauses = [one for one in expression if isinstance(one, Clause)]
    if not clauses:
        clauses = [Clause(frozenset(cast("Collection[str]", expression)))]
    elif len(clauses) != len(expression):
        raise invalid(FIELD, expression, expected)
    return form.any_of([_clause(one, form, expected) for one in clauses])


def _clause(clause: Clause, form: NormalForm, expected: str) -> Clauses:
    """Convert one clause to the normal form."""
    literals: set[tuple[str, bool]] = set()
    for is_excluded, keywords in enumerate((clause.required, clause.excluded)):
        if isinstance(keywords, str | bytes) or not isinstance(keywords, Collection):
            raise invalid(FIELD, keywords, expected)
        for keyword in keywords:
            if not isinstance(keyword, str):
                raise invalid(FIELD, keyword, expected)
            literals.add((normalised_keyword(keyword), bool(is_excluded)))
    if not literals:
        raise invalid(FIELD, clause, "clauses with keywords")
    return form.all_of([form.literal(keyword, is_excluded=no) for keyword, no in sorted(literals)])


class _Reading:
    """Converts a tree to clauses. NOT is pushed inwards, so that only keywords are negated.

    Parameters
    ----------
    text
        The parsed text, for errors.
    form
        Combines disjunctions.
    not_at
        Output: the index of the NOT that excludes a keyword.
    """

    def __init__(self, text: str, form: NormalForm, not_at: dict[str, int]) -> None:
        self._text = text
        self._form = form
        self._not_at = not_at

    def clauses(self, node: Node, not_at: int | None = None) -> Clauses:
        """Return the clauses of a node, or of its negation if `not_at` is the index of a NOT."""
        if isinstance(node, Token):
            return self._literal(node, not_at)
        if isinstance(node, Negated):
            return self.clauses(node.part, node.at if not_at is None else None)
        parts = [self.clauses(child, not_at) for child in node.parts]
        is_all = node.is_all == (not_at is None)
        return self._form.all_of(parts) if is_all else self._form.any_of(parts)

    def _literal(self, token: Token, not_at: int | None) -> Clauses:
        keyword = keyword_of(token, self._text)
        if not_at is not None:
            self._not_at.setdefault(keyword, not_at)
        return self._form.literal(keyword, is_excluded=not_at is not None)


def _too_many(expression: str | Collection[str] | Collection[Clause], clauses_max: int) -> RefusedError:
    if isinstance(expression, str):
        how = "written with OR outside and AND inside, it has too many clauses"
        return invalid(FIELD, excerpt(expression), f"at most {clauses_max} clauses; {how}")
    return invalid(FIELD, f"{len(expression)} clauses", f"at most {clauses_max} clauses")


def _only_excluded(text: str, clause: Clause, not_at: dict[str, int]) -> RefusedError:
    """Return the error for a clause without a required keyword."""
    must = "an expression that requires a keyword in each alternative"
    why = "NOT only filters what is found by another keyword, joined to it by AND"
    if text:
        return refused(text, min(not_at[keyword] for keyword in clause.excluded), why, must)
    return invalid(FIELD, clause, f"{must}: {why}")
