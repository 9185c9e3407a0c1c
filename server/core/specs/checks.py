"""Checks that specs and objects share."""

from __future__ import annotations

from collections.abc import Iterable

from safe_region.scoring.keywords import normalised_keyword
from server.errors import Reason, RefusalError

_SPELLINGS_MAX = 8
"""Keywords that may be given for each allowed one: different spellings of a keyword count as one."""


def require(condition: bool, field: str, value: object, limit: str) -> None:  # noqa: FBT001
    """Raise RefusalError (INVALID_FIELD) unless the condition holds."""
    if not condition:
        raise RefusalError(Reason.INVALID_FIELD, field, value, limit)


def checked_keywords(
    keywords: Iterable[str], field: str, count_max: int, length_max: int
) -> tuple[str, ...]:
    """Return sorted, unique, normalised keywords: 1 to `count_max`, each printable and short enough."""
    given = list(keywords)
    # The count limits the number of keywords that are checked, so that a huge list costs nothing.
    if not 1 <= len(given) <= count_max * _SPELLINGS_MAX:
        raise _wrong_count(len(given), field, count_max)
    found: set[str] = set()
    for i, keyword in enumerate(given):
        # NFKC may expand one character to 18; a longer input cannot become short enough.
        word = normalised_keyword(keyword) if len(keyword) <= 4 * length_max else ""
        if not (0 < len(word) <= length_max and word.isprintable()):
            limit = f"1 to {length_max} printable characters"
            raise RefusalError(Reason.INVALID_FIELD, f"{field}[{i}]", repr(keyword), limit)
        found.add(word)
    if len(found) > count_max:
        raise _wrong_count(len(found), field, count_max)
    return tuple(sorted(found))


def _wrong_count(count: int, field: str, count_max: int) -> RefusalError:
    shown = f"{count} keywords" if count else "empty"
    return RefusalError(Reason.INVALID_FIELD, field, shown, f"1 to {count_max} keywords")
