"""Compare specs by the normal form that the server gives them.

A text equals the clauses that the server returns for it. The case of keywords does not matter, nor does
it matter whether a position is a list or a tuple, or whether a ring repeats its first corner. Values that
cannot be normalised are compared as they are; the server refuses them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable
from dataclasses import fields
from functools import lru_cache
from typing import Any

from nearcast.clause import Clause
from nearcast.errors import RefusedError
from nearcast.expressions import clauses_of, text_of
from nearcast.milliseconds import milliseconds
from safe_region.earth.shapes import Polygon, opened
from safe_region.scoring.keywords import normalised_keyword

_TEXTS_MAX = 256
"""Parsed texts in the cache of clauses."""


def spec_key(spec: Any) -> tuple[object, ...]:  # noqa: ANN401 - a dataclass of any kind of spec
    """Return a key that is equal for specs that request the same result."""
    found: list[object] = []
    for field in fields(spec):
        value = getattr(spec, field.name)
        try:
            value = _NORMAL.get(field.name, _as_it_is)(value)
        except (RefusedError, TypeError, ValueError, AttributeError, OverflowError):
            value = "unreadable", repr(value)
        found.append(value)
    return tuple(found)


def expression_text(expression: str | Collection[str] | Collection[Clause]) -> str:
    """Return an expression as a text in quotes; return the `repr` of any other value."""
    try:
        return repr(expression if isinstance(expression, str) else text_of(clauses_of(expression)))
    except (RefusedError, TypeError, ValueError):
        return repr(expression)


def _as_it_is(value: object) -> object:
    return value


@lru_cache(_TEXTS_MAX)
def _clauses_of_text(text: str) -> frozenset[Clause]:
    return frozenset(clauses_of(text))


def _clauses(expression: Any) -> Hashable:  # noqa: ANN401
    return (
        _clauses_of_text(expression) if isinstance(expression, str) else frozenset(clauses_of(expression))
    )


def _words(keywords: Any) -> Hashable:  # noqa: ANN401
    if isinstance(keywords, str | bytes):
        raise TypeError
    return frozenset(map(normalised_keyword, keywords))


def _duration(seconds: float) -> Hashable:
    return milliseconds(seconds) if math.isfinite(seconds) else repr(seconds)


def _window(window: Any) -> Hashable:  # noqa: ANN401
    if window is None:
        return None
    return None if window.seconds is None else _duration(window.seconds), window.count


def _range(where: Any) -> Hashable:  # noqa: ANN401
    if isinstance(where, Polygon):
        return Polygon, tuple(map(opened, where.rings))
    return type(where), tuple(_frozen(getattr(where, field.name)) for field in fields(where))


def _frozen(value: Any) -> Hashable:  # noqa: ANN401
    """Return positions and rings as nested tuples of numbers."""
    return value if value is None or isinstance(value, int | float) else tuple(map(_frozen, value))


_NORMAL: dict[str, Callable[[Any], object]] = {
    "keywords": _words,
    "expression": _clauses,
    "range": _range,
    "dwell_s": _duration,
    "window": _window,
    "moving": bool,
}
"""Normalising functions by the name of the field. Other fields are compared as they are."""
