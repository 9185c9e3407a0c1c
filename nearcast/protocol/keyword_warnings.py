"""Warnings of keywords that are likely meant as expressions.

`TopK({"parcel AND cold"})` is valid: it requests objects with this one keyword, which contains blanks.
The app's developer probably meant two keywords, so the SDK warns.

Operations: O(characters of the keywords).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from nearcast.clause import Clause
from nearcast.grammar import has_operator
from nearcast.model import Spec, TopK


class KeywordWarning(UserWarning):
    """A keyword of a spec contains AND, OR or NOT, and is likely meant as an expression."""


def warn_of_operators(spec: Spec, stacklevel: int) -> None:
    """Warn of each keyword of a valid spec with an operator; `stacklevel` is that of `warnings.warn`."""
    for keyword in _keywords(spec):
        if has_operator(keyword):
            message = (
                f"{keyword!r} is one keyword, with its blanks; AND, OR and NOT are operators in the text "
                f"of a boolean subscription only: Boolean({keyword!r}, ...)"
            )
            warnings.warn(message, KeywordWarning, stacklevel=stacklevel + 1)


def _keywords(spec: Spec) -> Iterable[str]:
    """Yield the keywords of a spec as the app wrote them; none of a text, which has been parsed."""
    if isinstance(spec, TopK):
        yield from spec.keywords
    elif not isinstance(spec.expression, str):
        for part in spec.expression:
            yield from (*part.required, *part.excluded) if isinstance(part, Clause) else (part,)
