"""Weigh keywords by how rare they are: tables of inverse document frequencies.

    weight(w) = 1 + ln((1 + n) / (1 + d(w)))        n documents, d(w) of which have w

A word that no document has gets the weight for d = 0. Weights are rounded to multiples of WEIGHT_STEP, so
that sums of their squares are exact. As keywords are sets, tf-idf needs nothing else: tf = 1.

Plain Python: the SDK and the server both read tables. Operations: O(words).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_region.scoring.formulas import WEIGHT_MAX, WEIGHT_STEP
from safe_region.scoring.keywords import is_text, normalised_keyword

WORDS_MAX = 2_000_000
"""The most words of a table."""

_FORMAT = "nearcast-idf"
_VERSION = 1


class IdfError(ValueError):
    """A table cannot be used.

    Parameters
    ----------
    field
        The part that is wrong.
    value
        Its value, for display.
    limit
        The allowed values.
    """

    def __init__(self, field: str, value: object, limit: str) -> None:
        self.field = field
        self.value = value
        self.limit = limit
        super().__init__(f"{field} is {value}, must be {limit}")


@dataclass(frozen=True, slots=True)
class IdfTable:
    """Weights of keywords.

    Parameters
    ----------
    weights
        By normalised keyword.
    unknown
        The weight of all other keywords.

    Raises
    ------
    IdfError
        If a weight is not a number from WEIGHT_STEP to WEIGHT_MAX, a keyword is not normalised, or there
        are too many keywords.
    """

    weights: Mapping[str, float]
    unknown: float = 1.0

    def __post_init__(self) -> None:
        self._set(self.weights, self.unknown)
        for word in self.weights:
            if not is_text(word):
                raise IdfError("weights", f"of {word!r}", "of text without lone surrogates")
            if not word or normalised_keyword(word) != word:
                raise IdfError("weights", f"of {word!r}", f"of {normalised_keyword(word)!r}, normalised")

    def _set(self, weights: Mapping[str, object], unknown: object) -> None:
        """Set rounded weights."""
        if len(weights) > WORDS_MAX:
            raise IdfError("weights", f"{len(weights)} keywords", f"at most {WORDS_MAX} keywords")
        rounded = {word: _rounded(f"weights[{word!r}]", one) for word, one in weights.items()}
        object.__setattr__(self, "weights", rounded)
        object.__setattr__(self, "unknown", _rounded("unknown", unknown))

    @classmethod
    def of_documents(cls, documents: Iterable[Collection[str]]) -> IdfTable:
        """Count the documents that have each keyword and return the table of weights."""
        total = 0
        found: Counter[str] = Counter()
        for keywords in documents:
            total += 1
            found.update({normalised_keyword(word) for word in keywords} - {""})
        return cls.of_counts(total, found)

    @classmethod
    def of_counts(cls, total: int, counts: Mapping[str, int]) -> IdfTable:
        """Return the table of weights for a number of documents and the count of documents by keyword."""
        weights = {word: _weight(total, count) for word, count in sorted(counts.items())}
        return cls(weights, _weight(total, 0))

    def weight(self, word: str) -> float:
        """Return the weight of a keyword."""
        return self.weights.get(word, self.unknown)

    def as_json(self) -> str:
        """Return a table as text."""
        found = {"format": _FORMAT, "version": _VERSION, "unknown": self.unknown, "weights": self.weights}
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> IdfTable:
        """Read a table from the text that `as_json` returns.

        Raises
        ------
        IdfError
            If the text is not a table, or is one of another version, or one that cannot be used.
        """
        return cls(*_parsed(text))

    @classmethod
    def from_stored(cls, text: str) -> IdfTable:
        """Read a table that was made before, from the text that `as_json` returned.

        Its keywords are normalised as the version of Python that made it normalises them. Others may
        normalise further characters.

        Raises
        ------
        IdfError
            If the text is not a table, or is one of another version.
        """
        found = object.__new__(cls)
        found._set(*_parsed(text))
        return found

    @classmethod
    def read(cls, path: Path) -> IdfTable:
        """Read a file.

        Raises
        ------
        OSError
            If the file cannot be read.
        IdfError
            If it is not a table that can be used.
        """
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except UnicodeError as error:
            raise IdfError(str(path), error, "text in UTF-8") from error


def _parsed(text: str) -> tuple[dict[str, Any], Any]:
    """Return the weights of a text, and that of unknown keywords."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise IdfError("the table", error, "JSON") from error
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise IdfError("the table", "of another format", f"one of format {_FORMAT!r}")
    if found.get("version") != _VERSION:
        raise IdfError("version", repr(found.get("version")), str(_VERSION))
    weights = found.get("weights")
    if not isinstance(weights, dict):
        raise IdfError("weights", "not an object", "one of keywords and their weights")
    return weights, found.get("unknown", 1.0)


def _weight(total: int, count: int) -> float:
    return 1.0 + math.log((1.0 + total) / (1.0 + count))


def _rounded(name: str, weight: object) -> float:
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not (is_number and WEIGHT_STEP <= weight <= WEIGHT_MAX):  # type: ignore[operator]
        raise IdfError(name, repr(weight), f"{WEIGHT_STEP:g} to {WEIGHT_MAX:g}")
    return round(float(weight) / WEIGHT_STEP) * WEIGHT_STEP  # type: ignore[arg-type]
